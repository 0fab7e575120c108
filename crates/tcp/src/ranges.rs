//! Ranges with gaps between them, in order. Usually a retransmission fills the first gap, so ranges are removed from the front. A
//! vector with thousands of them would move all the others each time.

use std::collections::VecDeque;
use std::ops::Range;

/// Replace the ranges at `replaced` by `range`; if there are none, insert it there.
#[inline]
pub(crate) fn put_for<T>(ranges: &mut VecDeque<T>, replaced: Range<usize>, range: T) {
    if !replaced.is_empty() {
        ranges[replaced.start] = range; // usually a single range grows
        if replaced.len() > 1 {
            ranges.drain(replaced.start + 1..replaced.end);
        }
        return;
    }
    if ranges.len() == ranges.capacity() {
        make_room(ranges);
    }
    ranges.insert(replaced.start, range);
}

/// Capacity for one range first, because most of many flows have one gap; then for two, four, and so on.
#[cold]
fn make_room<T>(ranges: &mut VecDeque<T>) {
    ranges.reserve_exact(ranges.len().max(1));
}
