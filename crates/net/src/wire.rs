//! The packets between the start of their transmission and the far end: a ring in order of delivery, and a second one
//! for packets that the link holds back on purpose (see `reorder`), so that reordering costs nothing when it is off.
//!
//! A held-back packet is late by a constant over a delivery time that never decreases, so the second ring is in
//! order of delivery as well, and no heap is needed.

use std::collections::VecDeque;

use ackclock_core::{Packet, Time};

struct Entry {
    delivery: Time,
    packet: Packet,
}

/// Packets by value, with the instant at which each leaves the far end.
#[derive(Default)]
pub(crate) struct Wire {
    in_order: VecDeque<Entry>,
    late: VecDeque<Entry>,
    /// Segments in them.
    segments: u64,
}

impl Wire {
    /// Put a packet on the wire; `delivery` is at or after that of every packet pushed before.
    #[inline]
    pub(crate) fn push(&mut self, delivery: Time, packet: Packet) {
        debug_assert!(self.in_order.back().is_none_or(|e| e.delivery <= delivery));
        self.segments += packet.segments() as u64;
        self.in_order.push_back(Entry { delivery, packet });
    }

    /// Put a held-back packet on the wire; `delivery` is at or after that of every packet held back before.
    pub(crate) fn push_late(&mut self, delivery: Time, packet: Packet) {
        debug_assert!(self.late.back().is_none_or(|e| e.delivery <= delivery));
        self.segments += packet.segments() as u64;
        self.late.push_back(Entry { delivery, packet });
    }

    /// The earliest delivery.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        let at = |ring: &VecDeque<Entry>| ring.front().map_or(Time::NEVER, |e| e.delivery);
        if self.late.is_empty() {
            return at(&self.in_order);
        }
        at(&self.in_order).min(at(&self.late))
    }

    /// Take the earliest packet if its delivery is at or before `now`. At equal times the one held back goes first:
    /// it entered the link earlier.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<Packet> {
        let next = self.next();
        if next > now || next == Time::NEVER {
            return None;
        }
        let from = match self.late.front().is_some_and(|e| e.delivery == next) {
            true => &mut self.late,
            false => &mut self.in_order,
        };
        let packet = from.pop_front().expect("invariant: it has the earliest delivery").packet;
        self.segments -= packet.segments() as u64;
        Some(packet)
    }

    /// Packets on the wire.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    /// Segments in these packets.
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// Of the packets, how many have reached the far end at `now` without having been taken yet.
    pub(crate) fn due(&self, now: Time) -> usize {
        let due = |ring: &VecDeque<Entry>| ring.iter().take_while(|e| e.delivery <= now).count();
        due(&self.in_order) + due(&self.late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(conn: u32) -> Packet {
        Packet { conn, ..Packet::default() }
    }

    #[test]
    fn late_packets_are_merged_by_time_and_win_ties() {
        let mut wire = Wire::default();
        wire.push_late(Time(30), packet(1));
        wire.push(Time(20), packet(2));
        wire.push(Time(30), packet(3));
        assert_eq!(wire.next(), Time(20));
        assert!(wire.pop(Time(19)).is_none());
        assert_eq!((wire.due(Time(20)), wire.due(Time(30)), wire.len()), (1, 3, 3));
        let order: Vec<u32> = std::iter::from_fn(|| wire.pop(Time(30))).map(|p| p.conn).collect();
        assert_eq!(order, [2, 1, 3]);
        assert_eq!(wire.next(), Time::NEVER);
    }
}
