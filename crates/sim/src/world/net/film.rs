//! Recording of packets on links for a film of the network: see `crate::runs::film`.

use ackclock_core::{FlowId, Time};
use ackclock_net::Leg;

use super::next::Hop;
use crate::world::World;

impl World {
    /// Record the packets on each link from `from` on. Called once the last path has been added.
    pub fn film(&mut self, from: Time) {
        self.net.links.iter_mut().for_each(|slot| slot.link.film(from));
        (self.net.knows_sources, self.net.horizon) = (false, Time::ZERO);
    }

    /// Take the legs recorded since the last call: by link, in order of departure.
    pub fn take_legs(&mut self) -> Vec<Vec<Leg>> {
        self.net.links.iter_mut().map(|slot| slot.link.take_legs()).collect()
    }

    /// Links of a flow's forward path and of its return path.
    pub fn ways(&self, flow: FlowId) -> [Vec<u32>; 2] {
        [1, 0].map(|direction| {
            let mut hop = Hop(self.net.origins[flow as usize].first[direction]);
            let mut way = Vec::new();
            while hop.is_link() {
                way.push(hop.link());
                hop = self.net.links[hop.link() as usize]
                    .next
                    .of(2 * flow as usize + direction, &self.net.tables);
            }
            way
        })
    }
}
