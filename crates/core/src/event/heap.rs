//! Heap of events, used for those added to the current slot and for those beyond the wheels.

use super::Event;

/// A 4-ary heap.
#[derive(Clone, Default)]
pub(super) struct Heap(pub(super) Vec<Event>);

impl Heap {
    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        let heap = &mut self.0;
        let mut i = heap.len();
        heap.push(event);
        while i > 0 {
            let parent = (i - 1) / 4;
            if !event.before(&heap[parent]) {
                break;
            }
            heap[i] = heap[parent];
            i = parent;
        }
        heap[i] = event;
    }

    /// Remove the root.
    #[inline]
    pub(super) fn pop(&mut self) {
        if let Some(last) = self.0.pop() {
            if !self.0.is_empty() {
                self.sift_down(last);
            }
        }
    }

    /// Put `event` at the root and restore the heap order.
    #[inline(always)]
    fn sift_down(&mut self, event: Event) {
        let heap = &mut self.0[..];
        let n = heap.len();
        let mut i = 0;
        loop {
            let first = i * 4 + 1;
            if first >= n {
                break;
            }
            // Usually four children: compare them in pairs.
            let best = match heap.get(first..first + 4) {
                Some([a, b, c, d]) => {
                    let left = b.before(a) as usize;
                    let right = 2 + d.before(c) as usize;
                    let (l, r) = (if left == 1 { b } else { a }, if right == 3 { d } else { c });
                    first + if r.before(l) { right } else { left }
                }
                _ => first + least(&heap[first..]),
            };
            if !heap[best].before(&event) {
                break;
            }
            heap[i] = heap[best];
            i = best;
        }
        heap[i] = event;
    }
}

/// Index of the earliest of one to three events.
#[inline]
fn least(events: &[Event]) -> usize {
    (1..events.len()).fold(0, |best, i| if events[i].before(&events[best]) { i } else { best })
}
