//! Reading and resetting the counters of links and flows.

use std::rc::Rc;

use ackclock_core::Time;
use ackclock_net::{Counters, Pool, Underway};

use super::LinkSlot;
use crate::world::agenda::Agenda;
use crate::world::gauges::Gauges;
use crate::world::World;

impl World {
    /// Start measuring delays, round-trip times and losses of each flow. Called once the last path has been added.
    pub fn measure(&mut self, from: Time) {
        self.net.gauges = Some(Box::new(Gauges::new(from, self.net.origins.len())));
        self.takes_notes = true;
    }

    /// Measurements of the flows; `None` unless requested.
    pub fn gauges(&self) -> Option<&Gauges> {
        self.net.gauges.as_deref()
    }

    /// Number of packets queued at a link.
    pub fn waiting(&mut self, link: usize) -> u32 {
        self.net.links[link].link.waiting(&mut self.net.pool, self.now)
    }

    /// Counters of every link. Each is boxed: with many links, small boxes fit into memory freed by connections,
    /// where a vector would not.
    pub fn link_counters(&mut self) -> Vec<Box<Counters>> {
        let underway = self.net.underway();
        let links = self.net.links.iter_mut().zip(underway);
        let count = |(slot, underway): (&mut LinkSlot, Underway)| {
            Box::new(slot.link.counters(&mut self.net.pool, self.now, underway))
        };
        links.map(count).collect()
    }

    /// Free the memory of all links, which the tables may need.
    pub fn forget_links(&mut self) {
        (self.net.links, self.net.names) = (Vec::new(), Rc::default());
        (self.net.pool, self.net.agenda, self.net.junctions) =
            (Pool::default(), Agenda::default(), Vec::new());
    }

    /// Reset the counters of all links.
    pub fn count_links_from_now(&mut self) {
        let underway = self.net.underway();
        for (slot, underway) in self.net.links.iter_mut().zip(underway) {
            slot.link.count_from(&mut self.net.pool, self.now, underway);
        }
    }
}
