//! Everything between the hosts: links, where packets go behind each, and what they refuse.

use ackclock_core::{FlowId, Packet, Stream, Time};
use ackclock_net::host::Departures;
use ackclock_net::{Link, LinkConfig, Refused};

use super::agenda::{Agenda, KIND_BITS, LINK};
use super::World;

/// A packet that a link refused.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// When.
    pub t: Time,
    /// Where.
    pub link: u32,
    /// What.
    pub packet: Packet,
    /// Why.
    pub reason: Refused,
}

impl World {
    /// Lay the way of the next flow (they count from 0): links forward and back, neither empty, none twice.
    pub fn add_route(&mut self, forward: &[u32], backward: &[u32]) {
        let flow = self.net.origins.len();
        let line = self.net.links[forward[0] as usize].link.rate();
        self.net.origins.push(Origin { first: [backward[0], forward[0]], departures: Departures::new(line) });
        for (direction, way) in [backward, forward].into_iter().enumerate() {
            for (i, &link) in way.iter().enumerate() {
                let next = way.get(i + 1).copied().unwrap_or(ARRIVED);
                self.net.links[link as usize].next.learn(2 * flow + direction, next);
            }
        }
    }

    /// Restart the loss models on the way of `flow`, as the `k`-th of their sequences.
    pub fn restart_losses(&mut self, flow: FlowId, k: u32) {
        let seed = Stream::new(self.seed, &format!("fetch.{k}")).next_u64();
        for direction in [0, 1] {
            let mut link = self.net.origins[flow as usize].first[direction];
            while link != ARRIVED {
                let slot = &mut self.net.links[link as usize];
                slot.link.restart_loss(seed);
                link = slot.next.of(2 * flow as usize + direction);
            }
        }
    }
}

/// Everything between the hosts.
pub(super) struct Net {
    pub(super) links: Vec<LinkSlot>,
    pub(super) agenda: Agenda,
    /// By flow.
    pub(super) origins: Vec<Origin>,
    pub(super) framing_bytes: u32,
    pub(super) drops: Option<Vec<Dropped>>,
}

/// Where the packets of a flow come from.
pub(super) struct Origin {
    /// The first link of its way back and of its way forward.
    pub(super) first: [u32; 2],
    pub(super) departures: Departures,
}

impl Net {
    /// These links, on no way yet.
    pub(super) fn new(links: &[LinkConfig], framing_bytes: u32, seed: u64, drops: bool) -> Net {
        let slot =
            |config| LinkSlot { link: Link::new(config, seed), armed: Time::NEVER, next: Next::Unused };
        Net {
            links: links.iter().map(slot).collect(),
            agenda: Agenda::with_capacity(2 * links.len() + 64),
            origins: Vec::new(),
            framing_bytes,
            drops: drops.then(Vec::new),
        }
    }

    /// A packet leaves its host.
    pub(super) fn depart(&mut self, now: Time, packet: Packet) {
        self.note_departure(now, &packet);
        let first = self.origins[packet.flow as usize].first[packet.forward as usize];
        self.offer(now, first, packet);
    }

    #[inline]
    pub(super) fn note_departure(&mut self, now: Time, packet: &Packet) {
        if packet.forward && packet.header.payload() > 0 {
            self.origins[packet.flow as usize].departures.add(now, packet.bytes);
        }
    }

    #[inline]
    pub(super) fn offer(&mut self, now: Time, link: u32, packet: Packet) {
        let slot = &mut self.links[link as usize];
        let outcome = slot.link.offer(now, packet);
        let next = slot.link.next_event().max(now);
        if next < slot.armed {
            slot.armed = next;
            self.agenda.add(next, link << KIND_BITS | LINK);
        }
        if let (Err(reason), Some(drops)) = (outcome, &mut self.drops) {
            drops.push(Dropped { t: now, link, packet, reason });
        }
        self.collect_head_drops(now, link as usize);
    }

    /// Write down what an AQM dropped from the head of its queue.
    #[inline]
    pub(super) fn collect_head_drops(&mut self, now: Time, link: usize) {
        if self.links[link].link.drops_from_head() {
            self.write_down_head_drops(now, link);
        }
    }

    #[inline(never)]
    fn write_down_head_drops(&mut self, now: Time, link: usize) {
        while let Some((packet, reason)) = self.links[link].link.take_head_drops() {
            if let Some(drops) = &mut self.drops {
                drops.push(Dropped { t: now, link: link as u32, packet, reason });
            }
        }
    }
}

pub(super) struct LinkSlot {
    pub(super) link: Link,
    /// Time of the link's entry in the queue.
    pub(super) armed: Time,
    pub(super) next: Next,
}

/// Where packets go behind a link, by way: twice the flow, plus one if forward. Packets carry no position: one that
/// is not written to between two links is copied without a stall.
pub(super) enum Next {
    Unused,
    /// All ways lead there.
    Same(u32),
    /// Ways part.
    ByWay(Vec<u32>),
}

impl Next {
    #[inline]
    pub(super) fn of(&self, way: usize) -> u32 {
        match self {
            Next::Same(next) => *next,
            Next::ByWay(table) => table[way],
            Next::Unused => unreachable!("invariant: packets come only where ways lead"),
        }
    }

    /// `way` goes on to `next`.
    fn learn(&mut self, way: usize, next: u32) {
        match self {
            Next::Unused => *self = Next::Same(next),
            Next::Same(same) if *same == next => {}
            Next::Same(same) => {
                // ways before this one that come here at all go on to `same`
                let mut table = vec![*same; way];
                table.push(next);
                *self = Next::ByWay(table);
            }
            Next::ByWay(table) => {
                table.resize(way.max(table.len()), ARRIVED);
                table.push(next);
            }
        }
    }
}

/// End of a way.
pub(super) const ARRIVED: u32 = u32::MAX;

/// Most links: their number must fit an event id.
pub const MAX_LINKS: usize = 1 << 22;
