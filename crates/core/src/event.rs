//! The event queue: two 4-ary heaps of 24-byte keys, ordered by time, then by when the event was scheduled, then by
//! insertion number.
//!
//! A key carries its event's id in the low bits, so a heap moves 24 bytes whatever the event is. Two events at the
//! same nanosecond leave in the order in which they were scheduled, on every machine. An event may be scheduled ahead
//! of time ([`EventQueue::push`] with a `since` in the future): it takes the place among its equals that it would have
//! had if it had been scheduled then.
//!
//! Events that seldom come to the top, such as timers that are put off again and again, have a heap of their own
//! ([`Lane::Far`]): there are many of them, and they shall not make the heap deep that every packet goes through. The
//! order of events does not depend on the lane.

use crate::time::Time;

/// Bits of a key that hold the event id; the 40 bits above it hold the insertion number.
const ID_BITS: u32 = 24;

/// Greatest event id that fits a key.
pub const MAX_EVENT_ID: u32 = (1 << ID_BITS) - 1;

/// Pending events, earliest first.
#[derive(Default)]
pub struct EventQueue {
    near: Heap,
    far: Heap,
    inserted: u64,
}

/// Which heap an event is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// It soon comes to the top.
    Near,
    /// It seldom does.
    Far,
}

#[derive(Default)]
struct Heap(Vec<Key>);

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
    /// An empty queue with room for `n` near events.
    pub fn with_capacity(n: usize) -> Self {
        EventQueue { near: Heap(Vec::with_capacity(n)), ..EventQueue::default() }
    }

    #[inline]
    fn key(&mut self, at: Time, since: Time, id: u32) -> Key {
        debug_assert!(id <= MAX_EVENT_ID);
        self.inserted += 1;
        Key { at: at.0, since: since.0, number_and_id: self.inserted << ID_BITS | id as u64 }
    }

    #[inline]
    fn heap(&mut self, lane: Lane) -> &mut Heap {
        match lane {
            Lane::Near => &mut self.near,
            Lane::Far => &mut self.far,
        }
    }

    /// Schedule event `id` at `at`, as if at `since`.
    #[inline]
    pub fn push(&mut self, lane: Lane, at: Time, since: Time, id: u32) {
        let key = self.key(at, since, id);
        self.heap(lane).push(key);
    }

    /// The earliest event and its lane; it is left there, on top.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32, Lane)> {
        let (key, lane) = match (self.near.0.first(), self.far.0.first()) {
            (Some(near), Some(far)) if far.before(near) => (far, Lane::Far),
            (Some(near), _) => (near, Lane::Near),
            (None, Some(far)) => (far, Lane::Far),
            (None, None) => return None,
        };
        Some((Time(key.at), key.number_and_id as u32 & MAX_EVENT_ID, lane))
    }

    /// Replace the event on top of `lane` by event `id` at `at`, as if scheduled at `since`: pop and push in one sift.
    #[inline]
    pub fn replace_top(&mut self, lane: Lane, at: Time, since: Time, id: u32) {
        let key = self.key(at, since, id);
        self.heap(lane).sift_down(key);
    }

    /// Remove the event on top of `lane`.
    #[inline]
    pub fn pop(&mut self, lane: Lane) {
        let heap = self.heap(lane);
        if let Some(last) = heap.0.pop() {
            if !heap.0.is_empty() {
                heap.sift_down(last);
            }
        }
    }
}

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

    fn lane() -> impl Strategy<Value = Lane> {
        prop_oneof![Just(Lane::Near), Just(Lane::Far)]
    }

    /// The earliest event, taken out.
    fn take(queue: &mut EventQueue) -> Option<(Time, u32)> {
        let (at, id, lane) = queue.peek()?;
        queue.pop(lane);
        Some((at, id))
    }

    proptest! {
        /// Oracle: a stable sort by time, and at equal times by when it was scheduled, whatever the lane.
        #[test]
        fn leaves_in_order_of_time_then_insertion(
            times in prop::collection::vec((0u64..50, prop_oneof![4 => Just(0u64), 1 => 0u64..3], lane()), 1..300)
        ) {
            let mut queue = EventQueue::default();
            for (id, &(t, since, lane)) in times.iter().enumerate() {
                queue.push(lane, Time(t), Time(since), id as u32);
            }
            let mut expected: Vec<(Time, u64, u32)> =
                times.iter().enumerate().map(|(id, &(t, since, _))| (Time(t), since, id as u32)).collect();
            expected.sort_by_key(|e| (e.0, e.1));
            let expected: Vec<_> = expected.into_iter().map(|(t, _, id)| (t, id)).collect();
            let got: Vec<_> = std::iter::from_fn(|| take(&mut queue)).collect();
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn replacing_the_top_equals_pop_then_push(times in prop::collection::vec((0u64..1000, lane()), 2..100),
                                                  next in prop::collection::vec(0u64..1000, 1..100)) {
            let (mut a, mut b) = (EventQueue::default(), EventQueue::default());
            for (id, &(t, lane)) in times.iter().enumerate() {
                a.push(lane, Time(t), Time::ZERO, id as u32);
                b.push(lane, Time(t), Time::ZERO, id as u32);
            }
            for (i, &t) in next.iter().enumerate() {
                let (at, id, lane) = a.peek().expect("as many as before");
                a.replace_top(lane, Time(t), Time::ZERO, 1000 + i as u32);
                prop_assert_eq!(Some((at, id)), take(&mut b));
                b.push(lane, Time(t), Time::ZERO, 1000 + i as u32);
            }
            prop_assert_eq!(take(&mut a), take(&mut b));
        }
    }
}
