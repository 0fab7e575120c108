//! The event queue: two timing wheels, ordered by time, then by when the event was scheduled, then by insertion number.
//!
//! An event that lies ahead is put into a slot of a wheel, whatever else is pending: one of 8 us within the next 33 ms, or
//! else one of 33 ms within the next 137 s. When a slot's time has come, its events are sorted; what is added to the
//! same slot while they leave goes into a small heap. What lies later than 137 s waits in a heap of its own.
//!
//! A key carries its event's id in the low bits. Two events at the same nanosecond leave in the order in which they were
//! scheduled, on every machine. An event may be scheduled ahead of time ([`EventQueue::push`] with a `since` in the
//! future): it takes the place among its equals that it would have had if it had been scheduled then.

use std::cmp::Ordering::{Greater, Less};

use crate::time::Time;

/// Bits of a key that hold the event id; the 40 bits above it hold the insertion number.
const ID_BITS: u32 = 24;

/// Greatest event id that fits a key.
pub const MAX_EVENT_ID: u32 = (1 << ID_BITS) - 1;

/// A slot of the fine wheel is 2^13 ns long: a packet of 1500 bytes takes 12 us at 1 Gbit/s.
const FINE_BITS: u32 = 13;

/// A wheel has 2^12 slots, as many as two levels of words of 64 bits can tell of, and a slot of the coarse wheel is one turn of the fine one.
const TURN_BITS: u32 = 12;
const TURN: u64 = 1 << TURN_BITS;

/// Pending events, earliest first.
#[derive(Default)]
pub struct EventQueue {
    /// What was due in slot `at` when its time came, the latest first.
    present: Vec<Key>,
    /// What was added to it since.
    due: Heap,
    /// The present slot of the fine wheel, counted from time 0.
    at: u64,
    /// Slots `at + 1` to `at + TURN`.
    fine: Wheel,
    /// Turns of the fine wheel behind the one that holds `at`, as many.
    coarse: Wheel,
    /// Later still.
    late: Heap,
    entries: Entries,
    inserted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Key {
    at: u64,
    since: u64,
    number_and_id: u64,
}

impl Key {
    #[inline]
    fn before(&self, other: &Key) -> bool {
        if self.at == other.at {
            return self.before_its_equal(other);
        }
        self.at < other.at
    }

    #[cold]
    #[inline(never)]
    fn before_its_equal(&self, other: &Key) -> bool {
        (self.since, self.number_and_id) < (other.since, other.number_and_id)
    }

    /// Its slot of the fine wheel.
    #[inline]
    fn slot(&self) -> u64 {
        self.at >> FINE_BITS
    }

    /// Its slot of the coarse wheel.
    #[inline]
    fn turn(&self) -> u64 {
        self.slot() >> TURN_BITS
    }
}

impl EventQueue {
    /// Schedule event `id` at `at`, as if at `since`.
    #[inline]
    pub fn push(&mut self, at: Time, since: Time, id: u32) {
        debug_assert!(id <= MAX_EVENT_ID);
        self.inserted += 1;
        self.put(Key { at: at.0, since: since.0, number_and_id: self.inserted << ID_BITS | id as u64 });
    }

    /// Take out the earliest event, unless it is later than `end`.
    #[inline]
    pub fn pop_until(&mut self, end: Time) -> Option<(Time, u32)> {
        let key = match self.due.0.first() {
            None => match self.present.last() {
                None => self.advance(end)?,
                Some(_) => self.present.pop_if(|key| key.at <= end.0)?,
            },
            Some(added) => match self.present.last() {
                Some(key) if key.before(added) => self.present.pop_if(|key| key.at <= end.0)?,
                _ if added.at > end.0 => return None,
                _ => {
                    let key = *added;
                    self.due.pop();
                    key
                }
            },
        };
        Some((Time(key.at), key.number_and_id as u32 & MAX_EVENT_ID))
    }

    #[inline]
    fn put(&mut self, key: Key) {
        let slot = key.slot();
        if slot <= self.at {
            self.due.push(key);
        } else if slot - self.at <= TURN {
            self.fine.put(&mut self.entries, slot, key);
        } else {
            self.put_later(key);
        }
    }

    fn put_later(&mut self, key: Key) {
        let turn = key.slot() >> TURN_BITS;
        match turn - (self.at >> TURN_BITS) <= TURN {
            true => self.coarse.put(&mut self.entries, turn, key),
            false => self.late.push(key),
        }
    }

    /// Nothing is due in this slot: go on to the next one in which something is, and take out the earliest of it unless it is
    /// later than `end`.
    #[inline]
    fn advance(&mut self, end: Time) -> Option<Key> {
        let mut slot = self.fine.next(self.at);
        if slot >> TURN_BITS != self.at >> TURN_BITS {
            slot = self.turn(slot);
        }
        if slot > end.0 >> FINE_BITS {
            return None;
        }
        self.at = slot;
        let Entry { key, mut next } = self.entries.free(self.fine.take(slot));
        if next == NONE && key.at <= end.0 {
            return Some(key); // it is alone, as a rule
        }
        self.present.push(key);
        while next != NONE {
            let entry = self.entries.free(next);
            self.present.push(entry.key);
            next = entry.next;
        }
        match &mut self.present[..] {
            [a, b] if a.before(b) => std::mem::swap(a, b), // two, as a rule
            [_, _] => {}
            more => more.sort_unstable_by(|a, b| if a.before(b) { Greater } else { Less }),
        }
        self.present.pop_if(|key| key.at <= end.0)
    }

    /// The next slot in which something is due: `next` of the fine wheel, or one of the next turn in which something waits
    /// behind it, which is brought there.
    #[inline(never)]
    fn turn(&mut self, next: u64) -> u64 {
        let coarse = self.coarse.next(self.at >> TURN_BITS);
        let turn = coarse.min(self.late.0.first().map_or(NEVER, Key::turn));
        if turn == NEVER || turn * TURN > next {
            return next;
        }
        self.at = turn * TURN - 1;
        if coarse == turn {
            let mut i = self.coarse.take(turn);
            while i != NONE {
                let Entry { key, next } = self.entries.free(i);
                self.fine.put(&mut self.entries, key.slot(), key);
                i = next;
            }
        }
        while let Some(&key) = self.late.0.first().filter(|key| key.turn() == turn) {
            self.late.pop();
            self.fine.put(&mut self.entries, key.slot(), key);
        }
        self.fine.next(self.at)
    }
}

/// No slot.
const NEVER: u64 = u64::MAX;

/// The `TURN` slots behind some slot, which lie in it by their numbers' low bits.
struct Wheel {
    /// The first entry of each.
    first: Box<[u32; TURN as usize]>,
    /// Slots that hold entries, by 64.
    used: [u64; TURN as usize / 64],
    /// Words of `used` that are not 0.
    words: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Wheel {
            first: vec![NONE; TURN as usize].try_into().expect("as long"),
            used: [0; TURN as usize / 64],
            words: 0,
        }
    }
}

impl Wheel {
    #[inline]
    fn put(&mut self, entries: &mut Entries, slot: u64, key: Key) {
        let i = (slot % TURN) as usize;
        self.first[i] = entries.add(key, self.first[i]);
        self.used[i / 64] |= 1 << (i % 64);
        self.words |= 1 << (i / 64);
    }

    /// The first slot behind `slot` that holds entries.
    #[inline]
    fn next(&self, slot: u64) -> u64 {
        let from = ((slot + 1) % TURN) as usize;
        let word = from / 64;
        let rest = self.used[word] & (!0 << (from % 64));
        let i = if rest != 0 {
            word * 64 + rest.trailing_zeros() as usize
        } else {
            let behind = self.words & (!1 << word);
            let words = if behind != 0 { behind } else { self.words };
            if words == 0 {
                return NEVER;
            }
            let word = words.trailing_zeros() as usize;
            word * 64 + self.used[word].trailing_zeros() as usize
        };
        slot + 1 + (i.wrapping_sub(from) as u64 % TURN)
    }

    /// Empty a slot: its first entry, which leads to the others.
    #[inline]
    fn take(&mut self, slot: u64) -> u32 {
        let i = (slot % TURN) as usize;
        self.used[i / 64] &= !(1 << (i % 64));
        if self.used[i / 64] == 0 {
            self.words &= !(1 << (i / 64));
        }
        std::mem::replace(&mut self.first[i], NONE)
    }
}

/// No entry.
const NONE: u32 = u32::MAX;

/// What is in the slots of wheels, each entry with the next of its slot, or of those that are free.
struct Entries {
    all: Vec<Entry>,
    free: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    next: u32,
}

impl Default for Entries {
    fn default() -> Self {
        Entries { all: Vec::new(), free: NONE }
    }
}

impl Entries {
    #[inline]
    fn add(&mut self, key: Key, next: u32) -> u32 {
        let entry = Entry { key, next };
        let i = self.free;
        match self.all.get_mut(i as usize) {
            Some(place) => {
                self.free = place.next;
                *place = entry;
                i
            }
            None => {
                self.all.push(entry);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Free an entry, and what it was.
    #[inline]
    fn free(&mut self, i: u32) -> Entry {
        let place = &mut self.all[i as usize];
        let entry = *place;
        place.next = std::mem::replace(&mut self.free, i);
        entry
    }
}

/// A 4-ary heap.
#[derive(Default)]
struct Heap(Vec<Key>);

impl Heap {
    #[inline]
    fn push(&mut self, key: Key) {
        let heap = &mut self.0;
        let mut i = heap.len();
        heap.push(key);
        while i > 0 {
            let parent = (i - 1) / 4;
            if !key.before(&heap[parent]) {
                break;
            }
            heap[i] = heap[parent];
            i = parent;
        }
        heap[i] = key;
    }

    /// Remove the top.
    #[inline]
    fn pop(&mut self) {
        if let Some(last) = self.0.pop() {
            if !self.0.is_empty() {
                self.sift_down(last);
            }
        }
    }

    /// Put `key` in place of the root and restore the order.
    #[inline(always)]
    fn sift_down(&mut self, key: Key) {
        let heap = &mut self.0[..];
        let n = heap.len();
        let mut i = 0;
        loop {
            let first = i * 4 + 1;
            if first >= n {
                break;
            }
            // Four children, as a rule: a tournament.
            let best = match heap.get(first..first + 4) {
                Some([a, b, c, d]) => {
                    let left = b.before(a) as usize;
                    let right = 2 + d.before(c) as usize;
                    let (l, r) = (if left == 1 { b } else { a }, if right == 3 { d } else { c });
                    first + if r.before(l) { right } else { left }
                }
                _ => first + least(&heap[first..]),
            };
            if !heap[best].before(&key) {
                break;
            }
            heap[i] = heap[best];
            i = best;
        }
        heap[i] = key;
    }
}

/// Index of the least of one to three keys.
#[inline]
fn least(keys: &[Key]) -> usize {
    (1..keys.len()).fold(0, |best, i| if keys[i].before(&keys[best]) { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FINE: u64 = 1 << FINE_BITS;
    const COARSE: u64 = FINE * TURN;

    /// Times ahead: at the same instant, in one slot, and around the borders of slots, turns and wheels.
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
        /// Oracle: a list that is searched for the least of (time, since, insertion). Rounds of insertions, ahead of the
        /// time of the last event that left, and of leaving.
        #[test]
        fn leaves_in_order_of_time_then_since_then_insertion(
            rounds in prop::collection::vec(
                (prop::collection::vec((ahead(), prop_oneof![4 => Just(0u64), 1 => 0u64..3]), 0..12), 0usize..14, ahead()),
                1..40,
            )
        ) {
            let mut queue = EventQueue::default();
            let mut pending: Vec<(u64, u64, u32)> = Vec::new();
            let (mut now, mut inserted) = (0, 0);
            for (added, left, patience) in rounds {
                for (ahead, since) in added {
                    queue.push(Time(now + ahead), Time(since), inserted);
                    pending.push((now + ahead, since, inserted));
                    inserted += 1;
                }
                let end = now + patience;
                for _ in 0..left {
                    let least = pending.iter().copied().filter(|event| event.0 <= end).min();
                    pending.retain(|event| Some(*event) != least);
                    prop_assert_eq!(queue.pop_until(Time(end)), least.map(|(at, _, id)| (Time(at), id)));
                    now = least.map_or(now, |event| event.0);
                }
            }
            pending.sort_unstable();
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop_until(Time::NEVER)).collect();
            prop_assert_eq!(rest, pending.iter().map(|&(at, _, id)| (Time(at), id)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn entries_are_used_again() {
        let mut queue = EventQueue::default();
        for i in 0..100_000 {
            queue.push(Time((i + 1) * FINE), Time::ZERO, 7);
            assert_eq!(queue.pop_until(Time::NEVER), Some((Time((i + 1) * FINE), 7)));
        }
        assert_eq!(queue.entries.all.len(), 1);
    }
}
