//! Packets from the start of their transmission until they reach the far end: one chain in order of delivery, and a
//! second chain for packets that the link holds back on purpose (see `reorder`), so that reordering costs nothing
//! when it is off.
//!
//! A held-back packet is delayed by a constant beyond a delivery time that never decreases, so the second chain is
//! also in order of delivery and no heap is needed.

use ackclock_core::{Packet, Time};

use crate::pool::{Chain, PacketId, Pool};

/// Packets on the wire, with their delivery times.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    in_order: Chain,
    late: Chain,
}

impl Wire {
    /// Put a packet on the wire. `delivery` must not precede that of any packet pushed earlier.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut Pool, id: PacketId, delivery: Time, offered: Time) {
        self.in_order.push(pool, id, delivery, offered);
    }

    /// Put a held-back packet on the wire. `delivery` must not precede that of any packet held back earlier.
    pub(crate) fn push_late(&mut self, pool: &mut Pool, id: PacketId, delivery: Time, offered: Time) {
        self.late.push(pool, id, delivery, offered);
    }

    /// Put a packet on the wire behind the packet `before`, or at the front if it is `None`. Used if packets overtake
    /// one another.
    pub(crate) fn put_behind(
        &mut self,
        pool: &mut Pool,
        before: Option<PacketId>,
        id: PacketId,
        delivery: Time,
        offered: Time,
    ) {
        self.late.insert(pool, before, id, delivery, offered);
    }

    /// Earliest delivery time, and the time at which that packet was offered to the link.
    #[inline]
    pub(crate) fn next(&self, pool: &Pool) -> (Time, Time) {
        let first = self.in_order.first(pool).unwrap_or(NOTHING);
        if self.late.is_empty() {
            return first;
        }
        // At equal times the held-back packet goes first: it entered the link earlier.
        let late = self.late.first(pool).unwrap_or(NOTHING);
        if late.0 <= first.0 {
            late
        } else {
            first
        }
    }

    /// Packet with the earliest delivery. Must not be called while any packet is held back.
    #[inline]
    pub(crate) fn first<'a>(&self, pool: &'a Pool) -> Option<(Time, &'a Packet)> {
        debug_assert!(self.late.is_empty());
        self.in_order.iter(pool).next()
    }

    /// Take the packet with the earliest delivery.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let late = !self.late.is_empty() && {
            let first = self.in_order.first(pool).unwrap_or(NOTHING);
            self.late.first(pool).is_some_and(|late| late.0 <= first.0)
        };
        if late { &mut self.late } else { &mut self.in_order }.pop(pool)
    }

    /// Number of segments and bytes on the wire.
    pub(crate) fn load(&self, pool: &Pool) -> (u64, u64) {
        let all = self.in_order.iter(pool).chain(self.late.iter(pool));
        all.fold((0, 0), |(segments, bytes), (_, packet)| {
            (segments + packet.segments() as u64, bytes + packet.bytes as u64)
        })
    }

    /// Number of packets that have reached the far end by `now` and have not been taken.
    pub(crate) fn due(&self, pool: &Pool, now: Time) -> usize {
        let due = |chain: &Chain| chain.iter(pool).take_while(|&(at, _)| at <= now).count();
        due(&self.in_order) + due(&self.late)
    }
}

const NOTHING: (Time, Time) = (Time::NEVER, Time::NEVER);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_packets_are_merged_by_time_and_win_ties() {
        let (mut wire, mut pool) = (Wire::default(), Pool::default());
        let [a, b, c] = [1, 2, 3].map(|conn| pool.insert(&Packet { conn, ..Packet::default() }));
        wire.push_late(&mut pool, a, Time(30), Time(0));
        wire.push(&mut pool, b, Time(20), Time(1));
        wire.push(&mut pool, c, Time(30), Time(2));
        assert_eq!(wire.next(&pool), (Time(20), Time(1)));
        assert_eq!((wire.due(&pool, Time(20)), wire.due(&pool, Time(30))), (1, 3));
        let order: Vec<u32> = std::iter::from_fn(|| wire.pop(&pool)).map(|id| pool[id].conn).collect();
        assert_eq!(order, [2, 1, 3]);
        assert_eq!(wire.next(&pool), (Time::NEVER, Time::NEVER));
    }
}
