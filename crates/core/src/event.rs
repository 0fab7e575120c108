//! The event queue: a 4-ary heap of 24-byte keys, ordered by time, then by when the event was scheduled, then by
//! insertion number.
//!
//! A key carries its event's id in the low bits, so the heap moves 24 bytes whatever the event is. Two events at the
//! same nanosecond leave in the order in which they were scheduled, on every machine. An event may be scheduled ahead
//! of time ([`EventQueue::push`] with a `since` in the future): it takes the place among its equals that it would have
//! had if it had been scheduled then.

use crate::time::Time;

/// Bits of a key that hold the event id; the 40 bits above it hold the insertion number.
const ID_BITS: u32 = 24;

/// Greatest event id that fits a key.
pub const MAX_EVENT_ID: u32 = (1 << ID_BITS) - 1;

/// Pending events, earliest first.
#[derive(Default)]
pub struct EventQueue {
    heap: Vec<Key>,
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
}

impl EventQueue {
    /// An empty queue with room for `n` events.
    pub fn with_capacity(n: usize) -> Self {
        EventQueue { heap: Vec::with_capacity(n), inserted: 0 }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    #[inline]
    fn key(&mut self, at: Time, since: Time, id: u32) -> Key {
        debug_assert!(id <= MAX_EVENT_ID);
        self.inserted += 1;
        Key { at: at.0, since: since.0, number_and_id: self.inserted << ID_BITS | id as u64 }
    }

    /// Schedule event `id` at `at`, as if at `since`.
    #[inline]
    pub fn push(&mut self, at: Time, since: Time, id: u32) {
        let key = self.key(at, since, id);
        let mut i = self.heap.len();
        self.heap.push(key);
        while i > 0 {
            let parent = (i - 1) / 4;
            if !key.before(&self.heap[parent]) {
                break;
            }
            self.heap[i] = self.heap[parent];
            i = parent;
        }
        self.heap[i] = key;
    }

    /// The earliest event, left in the queue.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|k| (Time(k.at), k.number_and_id as u32 & MAX_EVENT_ID))
    }

    /// Replace the earliest event by event `id` at `at`, as if scheduled at `since`: pop and push in one sift.
    #[inline]
    pub fn replace_top(&mut self, at: Time, since: Time, id: u32) {
        let key = self.key(at, since, id);
        self.sift_down(key);
    }

    /// Remove the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        let top = self.peek()?;
        let last = self.heap.pop().expect("invariant: peeked");
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
        Some(top)
    }

    /// Put `key` in place of the root and restore the order.
    #[inline]
    fn sift_down(&mut self, key: Key) {
        let heap = &mut self.heap[..];
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

    proptest! {
        /// Oracle: a stable sort by time, and at equal times by when it was scheduled.
        #[test]
        fn leaves_in_order_of_time_then_insertion(
            times in prop::collection::vec((0u64..50, prop_oneof![4 => Just(0u64), 1 => 0u64..3]), 1..300)
        ) {
            let mut queue = EventQueue::default();
            for (id, &(t, since)) in times.iter().enumerate() {
                queue.push(Time(t), Time(since), id as u32);
            }
            let mut expected: Vec<(Time, u64, u32)> =
                times.iter().enumerate().map(|(id, &(t, since))| (Time(t), since, id as u32)).collect();
            expected.sort_by_key(|e| (e.0, e.1));
            let expected: Vec<_> = expected.into_iter().map(|(t, _, id)| (t, id)).collect();
            let got: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn replacing_the_top_equals_pop_then_push(times in prop::collection::vec(0u64..1000, 2..100),
                                                  next in prop::collection::vec(0u64..1000, 1..100)) {
            let (mut a, mut b) = (EventQueue::default(), EventQueue::default());
            for (id, &t) in times.iter().enumerate() {
                a.push(Time(t), Time::ZERO, id as u32);
                b.push(Time(t), Time::ZERO, id as u32);
            }
            for (i, &t) in next.iter().enumerate() {
                let top = a.peek();
                a.replace_top(Time(t), Time::ZERO, 1000 + i as u32);
                prop_assert_eq!(top, b.pop());
                b.push(Time(t), Time::ZERO, 1000 + i as u32);
            }
            prop_assert_eq!(a.pop(), b.pop());
        }
    }
}
