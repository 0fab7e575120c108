//! Packets on their way to a link at which the ways of several links meet.
//!
//! Each source tells ahead of time when its packets arrive, but not in the order of all of them. So they wait here in that order,
//! with one event for the first. What is sent from now on is at least the shortest delay of the sources away: at the event
//! everything that arrives sooner goes on, without events of its own. A source that keeps a packet on its wire, because it
//! leaves beyond the horizon or behind such a packet, brings it at its own event; as long as there is one, nothing goes on ahead.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};
use ackclock_net::PacketId;

/// A packet's place among those that arrive: when, and before or behind which others in the same nanosecond.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    at: Time,
    rank: i32,
}

/// A packet that will arrive.
#[derive(Clone, Copy)]
pub(super) struct Coming {
    /// When.
    pub at: Time,
    /// When its event would have been scheduled, and at which rank in that nanosecond: this is the order of those that arrive
    /// in the same one.
    pub since: Time,
    since_rank: i32,
    rank: i32,
    pub id: PacketId,
}

impl Coming {
    /// A packet that a source was offered at `offered` and that arrives at `at`; the one before it from there is `last`.
    #[inline]
    pub fn behind(last: Place, offered: Time, at: Time, id: PacketId) -> Coming {
        let (since, since_rank) = if last.at > offered { (last.at, last.rank) } else { (offered, 0) };
        Coming { at, since, since_rank, rank: 0, id }
    }

    #[inline]
    fn order(&self) -> (Time, Time, i32) {
        (self.at, self.since, self.since_rank)
    }
}

/// Packets that will arrive at a link, in order.
pub(super) struct Gathering {
    coming: VecDeque<Coming>,
    /// The shortest delay of the sources.
    soonest: Span,
    /// Packets on wires of the sources, which arrive by events.
    pub on_wires: u32,
}

impl Gathering {
    /// Nobody comes yet; every packet is known so long before it arrives.
    pub fn new(soonest: Span) -> Gathering {
        Gathering { coming: VecDeque::new(), soonest, on_wires: 0 }
    }

    /// One more, and its place.
    #[inline]
    pub fn insert(&mut self, packet: Coming) -> Place {
        if self.coming.back().is_some_and(|last| packet.at <= last.at) {
            return self.insert_before(packet);
        }
        self.coming.push_back(packet);
        Place { at: packet.at, rank: packet.rank }
    }

    /// The same where the last one does not arrive earlier.
    #[inline(never)]
    fn insert_before(&mut self, mut packet: Coming) -> Place {
        let behind = self.coming.iter().rev().take_while(|other| packet.order() < other.order()).count();
        let i = self.coming.len() - behind;
        let same = |i: usize| self.coming.get(i).filter(|other| other.at == packet.at);
        packet.rank = match (same(i.wrapping_sub(1)), same(i)) {
            (Some(before), _) => before.rank + 1,
            (None, Some(behind)) => behind.rank - 1,
            (None, None) => 0,
        };
        self.coming.insert(i, packet);
        Place { at: packet.at, rank: packet.rank }
    }

    /// The first one.
    #[inline]
    pub fn first(&self) -> Option<&Coming> {
        self.coming.front()
    }

    /// The first one, if at `now` nobody can come before it any more, and it arrives before the horizon.
    #[inline]
    pub fn pop(&mut self, now: Time, horizon: Time) -> Option<Coming> {
        let first = self.coming.front()?;
        let certain =
            first.at <= now || (self.on_wires == 0 && first.at < now + self.soonest && first.at < horizon);
        certain.then(|| self.coming.pop_front()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Packet;
    use ackclock_net::Pool;

    #[test]
    fn in_order_of_arrival_as_far_as_nobody_can_come_between() {
        let mut pool = Pool::default();
        let mut gathering = Gathering::new(Span(100));
        for (at, since, conn) in [(50, 0, 1), (90, 5, 3), (70, 1, 2), (90, 4, 4), (130, 30, 5)] {
            let id = pool.insert(&Packet { conn, ..Packet::default() });
            gathering.insert(Coming::behind(Place::default(), Time(since), Time(at), id));
        }
        let mut taken = |now, horizon, on_wires| {
            gathering.on_wires = on_wires;
            std::iter::from_fn(|| gathering.pop(Time(now), Time(horizon)))
                .map(|c| pool[c.id].conn)
                .collect::<Vec<_>>()
        };
        assert_eq!(taken(50, 1_000, 1), [1], "what is on a wire may come before the next");
        assert_eq!(taken(50, 80, 0), [2], "somebody looks at 80");
        assert_eq!(taken(30, 1_000, 0), [4, 3], "what is sent at 30 arrives at 130 at the earliest");
        assert_eq!(taken(31, 1_000, 0), [5]);
    }

    #[test]
    fn two_sources_in_step_stay_in_the_order_in_which_they_fell_into_it() {
        let (mut pool, mut gathering) = (Pool::default(), Gathering::new(Span(1)));
        let id = pool.insert(&Packet::default());
        // one has packets at 80, 90, 100, 110, told first; the other joins at 90, which it knew since 70
        let (mut first, mut second) = (Place::default(), Place::default());
        for at in [80, 90, 100, 110] {
            first = gathering.insert(Coming::behind(first, Time(10), Time(at), id));
        }
        for at in [90, 100, 110] {
            second = gathering.insert(Coming::behind(second, Time(70), Time(at), id));
            assert_eq!(
                (second.at, second.rank),
                (Time(at), -1),
                "the first one's were known since 80, 90, 100"
            );
        }
    }
}
