//! Ordered list of ranges with gaps between them. A retransmission usually fills the first gap, so ranges are
//! removed from the front; a vector of thousands of ranges would move all the others each time.

use std::collections::VecDeque;
use std::ops::Range;

/// Replace the ranges at indices `replaced` with `range`. If there are none, insert `range` at that position.
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

/// Reserve capacity for one range first, because most flows have a single gap, then for two, four, and so on.
#[cold]
fn make_room<T>(ranges: &mut VecDeque<T>) {
    ranges.reserve_exact(ranges.len().max(1));
}
