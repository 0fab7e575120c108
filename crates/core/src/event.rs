//! The event queue: a 4-ary heap of 16-byte keys, ordered by (time, insertion number).
//!
//! A key carries its event's id in the low bits, so the heap moves 16 bytes whatever the event is. Two events at the
//! same nanosecond leave in the order in which they were scheduled, on every machine.

use crate::time::Time;

/// Bits of a key that hold the event id; the 40 bits above it hold the insertion number.
const ID_BITS: u32 = 24;

/// Greatest event id that fits a key.
pub const MAX_EVENT_ID: u32 = (1 << ID_BITS) - 1;

/// Pending events, earliest first.
#[derive(Default)]
pub struct EventQueue {
    heap: Vec<u128>,
    inserted: u64,
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
    fn key(&mut self, at: Time, id: u32) -> u128 {
        debug_assert!(id <= MAX_EVENT_ID);
        self.inserted += 1;
        (at.0 as u128) << 64 | (self.inserted << ID_BITS | id as u64) as u128
    }

    /// Schedule event `id` at `at`.
    #[inline]
    pub fn push(&mut self, at: Time, id: u32) {
        let key = self.key(at, id);
        let mut i = self.heap.len();
        self.heap.push(key);
        while i > 0 {
            let parent = (i - 1) / 4;
            if self.heap[parent] <= key {
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
        self.heap.first().map(|&k| (Time((k >> 64) as u64), k as u32 & MAX_EVENT_ID))
    }

    /// Replace the earliest event by event `id` at `at`: pop and push in one sift.
    #[inline]
    pub fn replace_top(&mut self, at: Time, id: u32) {
        let key = self.key(at, id);
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
    fn sift_down(&mut self, key: u128) {
        let heap = &mut self.heap[..];
        let n = heap.len();
        let mut i = 0;
        loop {
            let first = i * 4 + 1;
            if first >= n {
                break;
            }
            // Four children, as a rule: a tournament without unpredictable branches.
            let (best, best_key) = match heap.get(first..first + 4) {
                Some(&[a, b, c, d]) => {
                    let left = if b < a { (1, b) } else { (0, a) };
                    let right = if d < c { (3, d) } else { (2, c) };
                    if right.1 < left.1 {
                        right
                    } else {
                        left
                    }
                }
                _ => least(&heap[first..]),
            };
            if key <= best_key {
                break;
            }
            heap[i] = best_key;
            i = first + best;
        }
        heap[i] = key;
    }
}

/// Index and value of the least of one to three keys.
#[inline]
fn least(keys: &[u128]) -> (usize, u128) {
    let mut best = (0, keys[0]);
    for (i, &key) in keys.iter().enumerate().skip(1) {
        if key < best.1 {
            best = (i, key);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Oracle: a stable sort by time.
        #[test]
        fn leaves_in_order_of_time_then_insertion(times in prop::collection::vec(0u64..50, 1..300)) {
            let mut queue = EventQueue::default();
            for (id, &t) in times.iter().enumerate() {
                queue.push(Time(t), id as u32);
            }
            let mut expected: Vec<(Time, u32)> =
                times.iter().enumerate().map(|(id, &t)| (Time(t), id as u32)).collect();
            expected.sort_by_key(|e| e.0);
            let got: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn replacing_the_top_equals_pop_then_push(times in prop::collection::vec(0u64..1000, 2..100),
                                                  next in prop::collection::vec(0u64..1000, 1..100)) {
            let (mut a, mut b) = (EventQueue::default(), EventQueue::default());
            for (id, &t) in times.iter().enumerate() {
                a.push(Time(t), id as u32);
                b.push(Time(t), id as u32);
            }
            for (i, &t) in next.iter().enumerate() {
                let top = a.peek();
                a.replace_top(Time(t), 1000 + i as u32);
                prop_assert_eq!(top, b.pop());
                b.push(Time(t), 1000 + i as u32);
            }
            prop_assert_eq!(a.pop(), b.pop());
        }
    }
}
