//! Lookahead: prefetch the memory that upcoming events need. Results do not depend on it.

use ackclock_core::event::Foresight;
use ackclock_core::prefetch::{prefetch, prefetch_all};
use ackclock_core::Packet;
use ackclock_net::{PacketId, Pool};

use super::agenda::{ARRIVAL, CROSSING, KIND_BITS, KIND_MASK, LINK, TIMER};
use super::ends::{End, SLOT_MASK};
use super::net::{LinkSlot, Net, Origin};
use super::{World, RECEIVER, SENDER};

/// Data that events access.
struct Places<'a> {
    pool: &'a Pool,
    links: &'a [LinkSlot],
    ends: &'a [Option<End>],
    origins: &'a [Origin],
}

/// Minimum number of flows whose state exceeds the caches. Test builds look ahead in every run.
const CROWD: usize = if cfg!(test) { 1 } else { 1000 };

/// Number of events between two lookaheads.
const STEP: u32 = 3;

impl World {
    /// Number of events between two lookaheads; `None` if lookahead is off.
    pub(super) fn foresees(&self) -> Option<u32> {
        (self.net.origins.len() >= CROWD && self.net.shortcuts.foresees).then_some(STEP)
    }

    /// Prefetch data for the next events.
    #[inline(never)]
    pub(super) fn foresee(&mut self) {
        self.net.catch_up_soon(self.now);
        let Net { pool, links, origins, agenda, .. } = &mut self.net;
        agenda.foresee(&Places { pool, links, ends: &self.ends, origins });
    }
}

impl Places<'_> {
    /// Index of the end that a packet is sent to.
    #[inline]
    fn end_of(&self, packet: &Packet) -> usize {
        2 * (packet.conn & SLOT_MASK) as usize + if packet.forward { RECEIVER } else { SENDER }
    }

    /// End at which an event takes place; `None` for events of links and others.
    #[inline]
    fn end(&self, id: u32) -> Option<(usize, &End)> {
        let number = id >> KIND_BITS;
        let index = match id & KIND_MASK {
            ARRIVAL => self.end_of(&self.pool[PacketId::of(number)]),
            TIMER => number as usize,
            _ => return None,
        };
        Some((index, self.ends.get(index)?.as_ref()?))
    }
}

impl Foresight for Places<'_> {
    #[inline(always)]
    fn far_off(&self, id: u32) {
        let number = id >> KIND_BITS;
        match id & KIND_MASK {
            ARRIVAL | CROSSING => self.pool.prefetch(PacketId::of(number)),
            TIMER => self.ends.get(number as usize).into_iter().for_each(prefetch_all),
            LINK => self.links.get(number as usize).into_iter().for_each(prefetch_all),
            _ => {}
        }
    }

    #[inline(always)]
    fn soon(&self, id: u32) {
        let (kind, id) = (id & KIND_MASK, PacketId::of(id >> KIND_BITS));
        match kind {
            ARRIVAL => {
                let packet = &self.pool[id];
                self.ends.get(self.end_of(packet)).into_iter().for_each(prefetch_all);
                let origin = &self.origins[packet.flow as usize];
                match packet.forward {
                    true => prefetch(origin),
                    false => prefetch_all(origin),
                }
            }
            CROSSING => prefetch_all(&self.links[self.pool.goes_to(id) as usize]),
            _ => {}
        }
    }

    #[inline(always)]
    fn next(&self, id: u32) {
        if let Some((index, end)) = self.end(id) {
            end.transport.prefetch(index % 2 == SENDER);
            let first = self.origins[end.flow as usize].first[(index % 2 == SENDER) as usize];
            prefetch_all(&self.links[first as usize]);
        }
    }

    #[inline(always)]
    fn last(&self, id: u32) {
        if let Some((index, end)) = self.end(id) {
            end.transport.prefetch_lists(index % 2 == SENDER);
        }
    }
}
