//! Reading and resetting the counters of links and flows.

use std::rc::Rc;

use ackclock_core::Time;
use ackclock_net::{Counters, Pool, Underway};

use super::LinkSlot;
use crate::world::agenda::Agenda;
use crate::world::gauges::Gauges;
use crate::world::World;

impl World {
    /// Measure delays, round-trip times and losses of each flow; called after the last way is laid.
    pub fn measure(&mut self, from: Time) {
        self.net.gauges = Some(Box::new(Gauges::new(from, self.net.origins.len())));
        self.takes_notes = true;
    }

    /// Measurements of the flows, if requested.
    pub fn gauges(&self) -> Option<&Gauges> {
        self.net.gauges.as_deref()
    }

    /// Packets that wait at a link.
    pub fn waiting(&mut self, link: usize) -> u32 {
        self.net.links[link].link.waiting(&mut self.net.pool, self.now)
    }

    /// The sums of every link, each in a box: of many links these fit into the room that connections have left, unlike a vector.
    pub fn link_counters(&mut self) -> Vec<Box<Counters>> {
        let underway = self.net.underway();
        let links = self.net.links.iter_mut().zip(underway);
        let count = |(slot, underway): (&mut LinkSlot, Underway)| {
            Box::new(slot.link.counters(&mut self.net.pool, self.now, underway))
        };
        links.map(count).collect()
    }

    /// Return the room of links, which are not needed any more and which tables may need.
    pub fn forget_links(&mut self) {
        (self.net.links, self.net.names) = (Vec::new(), Rc::default());
        (self.net.pool, self.net.agenda, self.net.junctions) =
            (Pool::default(), Agenda::default(), Vec::new());
    }

    /// Reset the counters of links.
    pub fn count_links_from_now(&mut self) {
        let underway = self.net.underway();
        for (slot, underway) in self.net.links.iter_mut().zip(underway) {
            slot.link.count_from(&mut self.net.pool, self.now, underway);
        }
    }
}
