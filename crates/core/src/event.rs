//! The event queue: two timing wheels. Events are ordered by time, then by the time at which they were scheduled, by
//! rank, and by insertion.
//!
//! A future event is put into a wheel slot in constant time: an 8 us slot if it is due within the next 67 ms,
//! otherwise a 67 ms slot if it is due within the next 9 min. When a slot becomes the current one, its events are
//! sorted. Events added to the current slot go into a small heap, and those beyond the coarse wheel into another
//! heap.
//!
//! Two events at the same nanosecond are popped in the order in which they were scheduled, on every machine. An event
//! may be scheduled ahead of time ([`EventQueue::push`] with a `since` in the future): it is then ordered as if it
//! had been scheduled at `since`. Events with equal times and equal `since` are popped by rank, in whatever order
//! they were pushed. Only events of equal rank are popped in the order of their insertion. Events of
//! [`EventQueue::push_ahead`] are popped before all others of their nanosecond.

mod foresight;
mod heap;
mod wheel;

use std::cmp::Ordering::{Greater, Less};

use crate::time::Time;
use foresight::Foreseen;
pub use foresight::Foresight;
use heap::Heap;
use wheel::{Entries, Wheel, NEVER, NONE};

/// Low bits of an event's order that store the insertion number; the rank is stored above them.
const NUMBER_BITS: u32 = 40;

/// High bits of the order of an event pushed ahead: the time at which it was scheduled, up to five hours into a run.
/// The insertion number is stored below them.
const AGE_BITS: u32 = 44;

/// Maximum rank of an event.
pub const MAX_RANK: u32 = (1 << (64 - NUMBER_BITS)) - 1;

/// A slot of the fine wheel is 2^13 ns (8 us) long. For comparison, the transmission of 1500 bytes at 1 Gbit/s takes
/// 12 us.
const FINE_BITS: u32 = 13;

/// A wheel has 2^13 slots, and a slot of the coarse wheel spans one turn of the fine wheel. One turn is long enough
/// for an event known one one-way delay plus queueing delay in advance.
const TURN_BITS: u32 = 13;
const TURN: u64 = 1 << TURN_BITS;

/// Pending events, earliest first.
#[derive(Clone, Default)]
pub struct EventQueue {
    /// Events of slot `at`, sorted with the latest first.
    present: Vec<Event>,
    /// Events added to slot `at` after it became the current slot.
    due: Heap,
    /// Current slot of the fine wheel, counted from time 0.
    at: u64,
    /// Slots `at + 1` to `at + TURN`.
    fine: Wheel,
    /// The next `TURN` turns of the fine wheel, after the turn that contains `at`.
    coarse: Wheel,
    /// Events beyond the coarse wheel.
    late: Heap,
    entries: Entries,
    inserted: u64,
    foreseen: Foreseen,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    /// Time at which the event was scheduled. Negative for an event pushed ahead, where it encodes the `place`.
    since: i64,
    /// Rank and insertion number.
    order: u64,
    id: u32,
    /// Next entry in the same wheel slot, or in the free list.
    next: u32,
}

impl Event {
    #[inline]
    fn before(&self, other: &Event) -> bool {
        if self.at == other.at {
            return self.before_its_equal(other);
        }
        self.at < other.at
    }

    #[cold]
    #[inline(never)]
    fn before_its_equal(&self, other: &Event) -> bool {
        (self.since, self.order) < (other.since, other.order)
    }

    /// Time and id of the event, or `None` if it is later than `end`.
    #[inline]
    fn unless_after(&self, end: Time) -> Option<(Time, u32)> {
        (self.at <= end.0).then_some((Time(self.at), self.id))
    }

    /// Slot of the event in the fine wheel.
    #[inline]
    fn slot(&self) -> u64 {
        self.at >> FINE_BITS
    }

    /// Slot of the event in the coarse wheel.
    #[inline]
    fn turn(&self) -> u64 {
        self.slot() >> TURN_BITS
    }
}

impl EventQueue {
    /// Let copies of this queue, and their copies, share the memory of unused wheels. A copy then allocates only the
    /// pending events instead of 64 KiB.
    pub fn share_wheels(&mut self) {
        let spare = self.fine.share_memory(None);
        self.coarse.share_memory(Some(spare));
    }

    /// Discard this queue. If its wheels share memory, the next copy may reuse it.
    pub fn give_back(self) {
        let EventQueue { fine, coarse, .. } = self;
        fine.give_back();
        coarse.give_back();
    }

    /// Schedule event `id` at `at`, ordered as if it were scheduled at `since`.
    #[inline]
    pub fn push(&mut self, at: Time, since: Time, rank: u32, id: u32) {
        debug_assert!(rank <= MAX_RANK);
        self.inserted += 1;
        let order = (rank as u64) << NUMBER_BITS | self.inserted;
        self.put(Event { at: at.0, since: since.0 as i64, order, id, next: NONE });
    }

    /// Schedule event `id` at `at`, before every event scheduled for that time by [`EventQueue::push`]. Events pushed
    /// ahead are ordered by `place`; within a place, the latest `since` is first, then the latest insertion.
    #[inline]
    pub fn push_ahead(&mut self, at: Time, place: u32, since: Time, id: u32) {
        self.inserted += 1;
        let latest_first = ((1 << AGE_BITS) - 1 - since.0.min((1 << AGE_BITS) - 1)) << (64 - AGE_BITS);
        let order = latest_first | !self.inserted & ((1 << (64 - AGE_BITS)) - 1);
        self.put(Event { at: at.0, since: i64::MIN + place as i64, order, id, next: NONE });
    }

    /// Whether no more events are pending at `at`, the time of the last popped event.
    #[inline]
    pub fn is_over(&self, at: Time) -> bool {
        self.due.0.first().is_none_or(|event| event.at > at.0)
            && self.present.last().is_none_or(|event| event.at > at.0)
    }

    /// Pop the earliest event, unless it is later than `end`.
    #[inline(always)]
    pub fn pop_until(&mut self, end: Time) -> Option<(Time, u32)> {
        if !self.due.0.is_empty() {
            return self.pop_added(end);
        }
        match self.present.last() {
            None => self.advance(end),
            Some(event) => {
                let next = event.unless_after(end)?;
                self.present.pop();
                Some(next)
            }
        }
    }

    /// Pop the earliest event when some events have been added to the current slot.
    #[inline(never)]
    fn pop_added(&mut self, end: Time) -> Option<(Time, u32)> {
        let added = self.due.0.first()?;
        match self.present.last() {
            Some(event) if event.before(added) => {
                let next = event.unless_after(end)?;
                self.present.pop();
                Some(next)
            }
            _ => {
                let next = added.unless_after(end)?;
                self.due.pop();
                Some(next)
            }
        }
    }

    /// Time, rank and id of all pending events, in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = (Time, u32, u32)> + '_ {
        let waiting = [&self.fine, &self.coarse].into_iter().flat_map(|wheel| wheel.entries(&self.entries));
        let events = self.present.iter().chain(&self.due.0).chain(&self.late.0).chain(waiting);
        events.map(|event| (Time(event.at), (event.order >> NUMBER_BITS) as u32, event.id))
    }

    #[inline]
    fn put(&mut self, event: Event) {
        let slot = event.slot();
        match slot.wrapping_sub(self.at + 1) < TURN {
            true => self.fine.put(&mut self.entries, slot, event),
            false => self.put_elsewhere(event),
        }
    }

    /// Insert an event that belongs to the current slot or lies beyond the fine wheel.
    #[inline(never)]
    fn put_elsewhere(&mut self, event: Event) {
        let turn = event.turn();
        if event.slot() <= self.at {
            self.due.push(event);
        } else if turn - (self.at >> TURN_BITS) <= TURN {
            self.coarse.put(&mut self.entries, turn, event);
        } else {
            self.late.push(event);
        }
    }

    /// The current slot is empty: advance to the next slot with events, and pop the earliest of them unless it is
    /// later than `end`.
    #[inline]
    fn advance(&mut self, end: Time) -> Option<(Time, u32)> {
        let mut slot = self.fine.next(self.at);
        if slot >> TURN_BITS != self.at >> TURN_BITS {
            slot = self.turn(slot);
        }
        if slot > end.0 >> FINE_BITS {
            return None;
        }
        self.at = slot;
        let mut event = self.entries.free(self.fine.take(slot));
        if event.next == NONE {
            let next = event.unless_after(end); // a slot usually holds one event
            if next.is_none() {
                self.present.push(event);
            }
            return next;
        }
        self.present.push(event);
        while event.next != NONE {
            event = self.entries.free(event.next);
            self.present.push(event);
        }
        match &mut self.present[..] {
            [a, b] if a.before(b) => std::mem::swap(a, b), // usually two events
            [_, _] => {}
            more => more.sort_by(|a, b| if a.before(b) { Greater } else { Less }),
        }
        let next = self.present.last()?.unless_after(end)?;
        self.present.pop();
        Some(next)
    }

    /// Return the next slot with events. `next` is the next one in the fine wheel; if a later turn comes first, its
    /// events are moved to the fine wheel.
    #[inline(never)]
    fn turn(&mut self, next: u64) -> u64 {
        let coarse = self.coarse.next(self.at >> TURN_BITS);
        let turn = coarse.min(self.late.0.first().map_or(NEVER, Event::turn));
        if turn == NEVER || turn * TURN > next {
            return next;
        }
        self.at = turn * TURN - 1;
        if coarse == turn {
            let mut i = self.coarse.take(turn);
            while i != NONE {
                let event = self.entries.free(i);
                self.fine.put(&mut self.entries, event.slot(), event);
                i = event.next;
            }
        }
        while let Some(&event) = self.late.0.first().filter(|event| event.turn() == turn) {
            self.late.pop();
            self.fine.put(&mut self.entries, event.slot(), event);
        }
        self.fine.next(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Foresight for () {
        fn far_off(&self, _: u32) {}
        fn soon(&self, _: u32) {}
        fn next(&self, _: u32) {}
        fn last(&self, _: u32) {}
    }

    const FINE: u64 = 1 << FINE_BITS;
    const COARSE: u64 = FINE * TURN;

    /// Offsets from the current time: the same instant, the same slot, and the boundaries of slots, turns and wheels.
    fn ahead() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0u64..50,
            4 => 0..4 * FINE,
            4 => 0..2 * COARSE,
            2 => 0..3 * TURN * COARSE,
            2 => (prop_oneof![Just(FINE), Just(COARSE), Just(TURN * COARSE)], 0u64..5, 0u64..3).prop_map(|(unit, n, d)| (n * unit + d).saturating_sub(1)),
        ]
    }

    proptest! {
        /// Oracle: a list searched for the minimum of (time, since, rank, insertion); for events pushed ahead, of
        /// (time, place, age, insertion), latest first. Rounds alternate between insertions, at or after the time of
        /// the last popped event, and pops.
        #[test]
        fn leaves_in_order_of_time_then_since_then_rank_then_insertion(
            rounds in prop::collection::vec(
                (prop::collection::vec((ahead(), prop_oneof![4 => Just(0i64), 1 => 0i64..3, 1 => -3i64..0], 0u32..3), 0..12), 0usize..14, ahead()),
                1..40,
            )
        ) {
            let mut queue = EventQueue::default();
            let mut pending: Vec<(u64, i64, i64, i64, u32)> = Vec::new();
            let (mut now, mut inserted) = (0, 0);
            for (added, left, patience) in rounds {
                for (ahead, since, rank) in added {
                    let at = now + ahead;
                    pending.push(match since < 0 {
                        true => (at, rank as i64 - 3, since, -(inserted as i64), inserted),
                        false => (at, since, rank as i64, inserted as i64, inserted),
                    });
                    match since < 0 {
                        true => queue.push_ahead(Time(at), rank, Time(-since as u64), inserted),
                        false => queue.push(Time(at), Time(since as u64), rank, inserted),
                    }
                    inserted += 1;
                }
                let end = now + patience;
                for _ in 0..left {
                    queue.foresee(&());
                    let least = pending.iter().copied().filter(|event| event.0 <= end).min();
                    pending.retain(|event| Some(*event) != least);
                    prop_assert_eq!(queue.pop_until(Time(end)), least.map(|(at, .., id)| (Time(at), id)));
                    now = least.map_or(now, |event| event.0);
                }
            }
            pending.sort_unstable();
            let mut told: Vec<_> = queue.pending().map(|(at, _, id)| (at.0, id)).collect();
            told.sort_unstable_by_key(|&(_, id)| id);
            let mut known: Vec<_> = pending.iter().map(|&(at, .., id)| (at, id)).collect();
            known.sort_unstable_by_key(|&(_, id)| id);
            prop_assert_eq!(told, known);
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop_until(Time::NEVER)).collect();
            prop_assert_eq!(rest, pending.iter().map(|&(at, .., id)| (Time(at), id)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn entries_are_used_again() {
        let mut queue = EventQueue::default();
        for i in 0..100_000 {
            queue.push(Time((i + 1) * FINE), Time::ZERO, 0, 7);
            assert_eq!(queue.pop_until(Time::NEVER), Some((Time((i + 1) * FINE), 7)));
        }
        assert_eq!(queue.entries.all.len(), 1);
    }
}
