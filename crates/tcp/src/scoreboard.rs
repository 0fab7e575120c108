//! Scoreboard of the outstanding segments and of the sender's beliefs about each of them.
//!
//! There is one entry per outstanding segment in a ring, in sequence order, numbered from 0 in order of first
//! transmission. The numbers of SACKed segments are also stored as a short list of ranges, so that a SACK
//! block already seen costs one binary search instead of a walk. Segments that are neither SACKed nor marked
//! lost are linked in the order of their last transmission, in which RFC 8985 visits them (Linux
//! `tsorted_sent_queue`).
//!
//! Counters have Linux's names and meaning: packets_out, sacked_out, lost_out, retrans_out. Contributions of a segment
//! to pipe: untouched 1, SACKed 0, lost 0, retransmitted 2, lost and retransmitted 1. The sum equals RFC 6675's pipe.
//!
//! Length: the ring, the list and the ranges change together.

mod buffers;
mod recount;

use std::collections::VecDeque;

use ackclock_core::prefetch::prefetch_all;
use ackclock_core::Time;

use crate::ranges::put_for;
pub use buffers::{Known, Reported};

/// The segment is SACKed.
pub const SACKED: u8 = 1;
/// The segment is believed lost.
pub const LOST: u8 = 2;
/// A retransmission is believed to be in flight.
pub const RETRANS: u8 = 4;
/// The segment has been retransmitted at least once.
pub const EVER_RETRANS: u8 = 8;
/// The segment carries the FIN.
pub const FIN: u8 = 16;
/// Flags that are set by events after the first transmission.
const HISTORY: u8 = SACKED | LOST | RETRANS | EVER_RETRANS;
/// The segment is in the list ordered by transmission time.
const LINKED: u8 = 32;
/// The segment is excluded from that list until it is retransmitted.
const LEFT_OUT: u8 = 64;

/// End marker of the list ordered by transmission time.
const NIL: u32 = u32::MAX;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// Offset after the last byte (and the FIN) of the segment.
    pub end: u64,
    /// Time of the last transmission.
    pub xmit: Time,
    /// Number recorded at the last transmission (low 32 bits): `delivered`, for RACK's round trips; for a
    /// retransmission under FACK the number of the next new segment, for the detection of lost retransmissions.
    pub noted: u32,
    /// Neighbours in the list ordered by transmission time. `prev` of the first segment is meaningless;
    /// `next` of the last one is its number plus one, because that segment usually follows.
    prev: u32,
    next: u32,
    /// Sequence space of the segment: payload, less than 65,535, plus one for a FIN.
    len: u16,
    /// Flags as defined above.
    pub flags: u8,
    /// Number of retransmissions, saturating.
    pub rexmit: u8,
}

/// Largest ring that the next connection reuses, segments.
const SMALL_RING: usize = 64;
/// Initial and minimum size of a ring, segments.
const FIRST_RING: usize = 16;
const LEAST_RING: usize = 4;

const EMPTY: Outstanding =
    Outstanding { end: 0, xmit: Time::ZERO, noted: 0, prev: NIL, next: NIL, len: 0, flags: 0, rexmit: 0 };

/// With many flows, entries are a large part of the memory.
const _: () = assert!(size_of::<Outstanding>() == 32);

impl Outstanding {
    /// Sequence space of the segment.
    #[inline]
    pub fn space(&self) -> u32 {
        self.len as u32
    }
    /// Offset of the first byte.
    #[inline]
    pub fn start(&self) -> u64 {
        self.end - self.len as u64
    }
    /// Whether any flag of `mask` is set.
    #[inline]
    pub fn is(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }
}

/// Segments removed by an ACK: one, or several contiguous ones that were neither SACKed, marked lost nor retransmitted.
#[derive(Debug)]
pub struct Acked {
    /// Number of the first segment.
    pub first: u64,
    /// Start and end offsets of the first segment, and the time of its last transmission.
    pub start: u64,
    pub first_end: u64,
    pub first_xmit: Time,
    /// End offset of the last segment, and the time of its last transmission.
    pub end: u64,
    pub xmit: Time,
    /// Number recorded when the last segment was last transmitted.
    pub noted: u32,
    /// Flags of each segment.
    flags: u8,
}

impl Acked {
    /// Whether any flag of `mask` is set.
    #[inline]
    pub fn is(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }
}

/// All outstanding segments of one sender.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    ring: Vec<Outstanding>,
    /// Number of the first outstanding segment.
    pub first: u64,
    /// Number of the next new segment.
    pub next: u64,
    /// Ranges [a, b) of SACKed segment numbers, ascending, disjoint, not adjacent.
    sacked: VecDeque<(u64, u64)>,
    /// Numbers of SACKed segments that do not share a buffer with the SACKed segment before them, ascending (see `buffers.rs`).
    breaks: VecDeque<u64>,
    /// Blocks reported by the last ACK with SACKs.
    pub reported: Reported,
    oldest: u32,
    newest: u32,
    /// Number of SACKed segments.
    pub sacked_out: u32,
    /// Number of segments marked lost.
    pub lost_out: u32,
    /// Number of retransmissions in flight.
    pub retrans_out: u32,
    /// Retransmissions counted as in flight although no segment is marked accordingly.
    leaked: u32,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Scoreboard {
            ring: Vec::new(), // an end that only receives needs no ring
            first: 0,
            next: 0,
            sacked: VecDeque::new(),
            breaks: VecDeque::new(),
            reported: Reported::new(),
            oldest: NIL,
            newest: NIL,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            leaked: 0,
        }
    }
}

impl Scoreboard {
    /// Prefetch the entries that an ACK is likely to read.
    #[inline]
    pub fn prefetch(&self) {
        self.ring.iter().take(FIRST_RING).step_by(2).for_each(prefetch_all);
        self.sacked.front().into_iter().for_each(prefetch_all);
    }

    #[inline]
    fn slot(&self, n: u64) -> usize {
        n as usize & (self.ring.len() - 1)
    }

    /// Number of outstanding segments: sent and not cumulatively acknowledged.
    #[inline]
    pub fn packets_out(&self) -> u32 {
        (self.next - self.first) as u32
    }

    /// Number of segments believed to be in the network (RFC 6675 pipe, Linux in_flight).
    #[inline]
    pub fn pipe(&self) -> u32 {
        self.packets_out() + self.retrans_out - self.sacked_out - self.lost_out
    }

    /// Return segment number `n`, which must be outstanding.
    #[inline]
    pub fn get(&self, n: u64) -> &Outstanding {
        debug_assert!(n >= self.first && n < self.next);
        &self.ring[self.slot(n)]
    }

    /// Return segment number `n` for modification.
    #[inline]
    pub fn get_mut(&mut self, n: u64) -> &mut Outstanding {
        debug_assert!(n >= self.first && n < self.next);
        let i = self.slot(n);
        &mut self.ring[i]
    }

    /// Return the first outstanding segment, if any.
    #[inline]
    pub fn head(&self) -> Option<&Outstanding> {
        (self.first < self.next).then(|| self.get(self.first))
    }

    /// Append a segment that has just been sent for the first time.
    #[inline]
    pub fn push(&mut self, end: u64, len: u32, fin: bool, now: Time, delivered: u32) {
        if self.packets_out() as usize == self.ring.len() {
            self.grow();
        }
        let n = self.next;
        self.next += 1;
        let i = self.slot(n);
        let flags = if fin { FIN | LINKED } else { LINKED };
        let (prev, after) = (self.newest, (n + 1) as u32);
        debug_assert!(len <= u16::MAX as u32);
        let len = len as u16;
        self.ring[i] =
            Outstanding { end, xmit: now, noted: delivered, prev, next: after, len, flags, ..EMPTY };
        self.follow(prev, n as u32);
    }

    /// Append a train of segments of `len` bytes that have just been sent for the first time; the first
    /// starts at offset `start`.
    #[inline]
    pub fn push_train(&mut self, start: u64, len: u32, segments: u32, now: Time, delivered: u32) {
        while (self.packets_out() + segments) as usize > self.ring.len() {
            self.grow();
        }
        let (first, newest) = (self.next, self.newest);
        let ring = &mut self.ring[..];
        let mask = ring.len() - 1;
        let (mut n, mut prev, mut end) = (first as u32, newest, start);
        debug_assert!(len <= u16::MAX as u32);
        let alike = Outstanding { xmit: now, noted: delivered, len: len as u16, flags: LINKED, ..EMPTY };
        for _ in 0..segments {
            end += len as u64;
            let next = n.wrapping_add(1);
            ring[n as usize & mask] = Outstanding { end, prev, next, ..alike };
            (prev, n) = (n, next);
        }
        self.follow(newest, first as u32);
        self.newest = prev;
        self.next += segments as u64;
    }

    /// Return an empty board for another connection, which reuses a small ring.
    pub fn renewed(mut self) -> Scoreboard {
        self.sacked.clear();
        let (small, sacked) = (self.ring.len() <= SMALL_RING, self.sacked);
        let ring = if small { self.ring } else { Vec::new() };
        Scoreboard { ring, sacked, ..Scoreboard::default() }
    }

    /// Shrink the ring after the window collapsed. With many flows, most need only a smaller ring from then on.
    #[cold]
    #[inline(never)]
    pub fn fit(&mut self) {
        let least = (self.packets_out() as usize).next_power_of_two().max(LEAST_RING);
        if least < self.ring.len() && self.ring.len() <= SMALL_RING {
            self.renew(least);
        }
    }

    fn grow(&mut self) {
        self.renew(if self.ring.is_empty() { FIRST_RING } else { 2 * self.ring.len() });
    }

    /// Move the entries to a ring of this many segments.
    fn renew(&mut self, segments: usize) {
        let mut ring = vec![EMPTY; segments];
        let mask = ring.len() - 1;
        for n in self.first..self.next {
            ring[n as usize & mask] = self.ring[self.slot(n)];
        }
        self.ring = ring;
    }

    /// Remove outstanding segments from the front that end at or before `ack`, and update the counters.
    /// Removes a single segment that was SACKed, marked lost or retransmitted, or all segments before
    /// the next such segment.
    #[inline(always)]
    pub fn pop_acked(&mut self, ack: u64) -> Option<Acked> {
        let &Outstanding { end, xmit, noted, next, flags, .. } =
            self.head().filter(|head| head.end <= ack)?;
        let first = self.first;
        let mut acked = Acked {
            first,
            start: self.get(first).start(),
            first_end: end,
            first_xmit: xmit,
            end,
            xmit,
            noted,
            flags,
        };
        if flags & HISTORY != 0 || first as u32 != self.oldest {
            self.pop_marked();
            return Some(acked);
        }
        self.first += 1;
        let mut oldest = next;
        while let Some(s) = self.head() {
            if s.end > ack || s.flags & (HISTORY | LINKED) != LINKED || oldest != self.first as u32 {
                break;
            }
            (acked.end, acked.xmit, acked.noted) = (s.end, s.xmit, s.noted);
            oldest = s.next;
            self.first += 1;
        }
        if self.newest == (self.first - 1) as u32 {
            (self.oldest, self.newest) = (NIL, NIL);
        } else {
            self.oldest = oldest;
        }
        Some(acked)
    }

    /// Remove the first segment, which was SACKed, lost or retransmitted.
    #[cold]
    #[inline(never)]
    fn pop_marked(&mut self) {
        self.unlink(self.first);
        let segment = *self.get(self.first);
        self.first += 1;
        self.sacked_out -= segment.is(SACKED) as u32;
        self.lost_out -= segment.is(LOST) as u32;
        self.retrans_out -= segment.is(RETRANS) as u32;
        if segment.is(SACKED) {
            let range = &mut self.sacked[0];
            range.0 += 1;
            if range.0 == range.1 {
                self.sacked.pop_front();
            }
        }
        if self.breaks.front().is_some_and(|&n| n <= self.first) {
            self.breaks.pop_front();
        }
    }

    /// Remove the acknowledged bytes before offset `start` from segment `n`.
    #[cold]
    pub fn trim(&mut self, n: u64, start: u64) {
        let segment = self.get_mut(n);
        debug_assert!(segment.start() <= start && start < segment.end);
        segment.len = (segment.end - start) as u16;
    }

    /// Record a retransmission: its time, the number to be recorded, the flags, and the position in the list.
    pub fn retransmitted(&mut self, n: u64, now: Time, noted: u32, counts: bool) {
        let segment = self.get_mut(n);
        segment.xmit = now;
        segment.noted = noted;
        segment.rexmit = segment.rexmit.saturating_add(1);
        segment.flags = (segment.flags | EVER_RETRANS) & !LEFT_OUT;
        if counts && !segment.is(RETRANS) {
            segment.flags |= RETRANS;
            self.retrans_out += 1;
        }
        self.unlink(n);
        self.link_newest(n);
    }

    /// Count another retransmission of a segment whose previous one counts as in flight. Linux counts both and never removes the second
    /// one (`tcp_retransmit_skb`, "retrans_out leaked"). This occurs after a timeout with F-RTO, which left the first one in flight.
    pub fn leak(&mut self) {
        self.retrans_out += 1;
        self.leaked += 1;
    }

    /// Mark a segment lost, or its retransmission if it is already marked. Returns the change.
    pub fn mark_lost(&mut self, n: u64) -> Marked {
        let segment = self.get_mut(n);
        if segment.is(SACKED) {
            return Marked::No;
        }
        let marked = if !segment.is(LOST) {
            segment.flags |= LOST;
            self.lost_out += 1;
            Marked::Lost
        } else if segment.is(RETRANS) {
            segment.flags &= !RETRANS;
            self.retrans_out -= 1;
            Marked::LostAgain
        } else {
            Marked::No
        };
        self.unlink(n);
        marked
    }

    /// Exclude segment `n` from the time-ordered list until it is retransmitted, even if loss marks are
    /// cleared (Linux `tcp_rack_detect_loss`, `tcp_sacktag_walk`).
    pub fn leave_out(&mut self, n: u64) {
        self.get_mut(n).flags |= LEFT_OUT;
    }

    /// Clear all loss marks (undo), and return the segments to the time-ordered list, except excluded ones.
    /// The cost grows with the window; undo is rare.
    pub fn unmark_all_lost(&mut self) {
        let mut by_time = Vec::with_capacity(self.packets_out() as usize);
        for n in self.first..self.next {
            self.get_mut(n).flags &= !LOST;
            self.unlink(n);
            if !self.get(n).is(SACKED | LEFT_OUT) {
                by_time.push((self.get(n).xmit, n));
            }
        }
        self.lost_out = 0;
        by_time.sort_unstable();
        for (_, n) in by_time {
            self.link_newest(n);
        }
    }

    /// Mark segment `n` SACKed. False if it was already marked. Linux assumes that a retransmission of a segment never
    /// marked lost is still in flight (`tcp_sacktag_one`); RFC 6675 §4 does not, since its pipe contains un-SACKed
    /// octets only.
    pub fn mark_sacked(&mut self, n: u64, rfc_6675: bool) -> bool {
        let segment = self.get_mut(n);
        if segment.is(SACKED) {
            return false;
        }
        let flags = segment.flags;
        segment.flags |= SACKED;
        if flags & LOST != 0 || rfc_6675 {
            segment.flags &= !(LOST | RETRANS);
            self.lost_out -= (flags & LOST != 0) as u32;
            self.retrans_out -= (flags & RETRANS != 0) as u32;
        }
        self.sacked_out += 1;
        self.unlink(n);
        true
    }

    /// Split segments of more than `most` bytes, and copy the marks to each piece. Returns the numbers of the pieces.
    /// `noted_next`: for retransmitted segments the recorded number is that of the next new segment, and is converted
    /// to the new numbering. The cost grows with the window; path MTUs seldom shrink.
    pub fn cut_to(&mut self, most: u32, noted_next: bool) -> Vec<u64> {
        let all: Vec<Outstanding> = (self.first..self.next).map(|n| *self.get(n)).collect();
        let mut pieces = Vec::new();
        // new number of each old segment, and of the next new one
        let mut numbers = Vec::with_capacity(all.len() + 1);
        self.next = self.first;
        self.sacked.clear();
        self.breaks.clear();
        self.reported.clear();
        (self.oldest, self.newest) = (NIL, NIL);
        (self.sacked_out, self.lost_out, self.retrans_out) = (0, 0, self.leaked);
        for whole in all {
            let payload = whole.space() - whole.is(FIN) as u32;
            let mut start = whole.start();
            numbers.push(self.next as u32);
            loop {
                let left = (whole.end - start) as u32;
                let len = if left - whole.is(FIN) as u32 > most { most } else { left };
                let n = self.next;
                if payload > most {
                    pieces.push(n);
                }
                start += len as u64;
                self.push(start, len, false, whole.xmit, whole.noted);
                let fin = if start == whole.end { whole.flags & FIN } else { 0 };
                let piece = self.get_mut(n);
                piece.flags = (whole.flags & !FIN & !LINKED) | fin | LINKED;
                piece.rexmit = whole.rexmit;
                self.sacked_out += whole.is(SACKED) as u32;
                self.lost_out += whole.is(LOST) as u32;
                self.retrans_out += whole.is(RETRANS) as u32;
                if whole.is(SACKED) {
                    match self.sacked.back_mut() {
                        Some(last) if last.1 == n => last.1 = n + 1,
                        _ => self.sacked.push_back((n, n + 1)),
                    }
                }
                if start == whole.end {
                    break;
                }
            }
        }
        numbers.push(self.next as u32);
        let mut by_time: Vec<(Time, u64)> = Vec::new();
        for n in self.first..self.next {
            self.unlink(n);
            let first = self.first as u32;
            let s = self.get_mut(n);
            let number = numbers.get(s.noted.wrapping_sub(first) as usize);
            if let Some(&number) = number.filter(|_| noted_next && s.rexmit > 0) {
                s.noted = number;
            }
            if !s.is(SACKED) && (!s.is(LOST) || s.is(RETRANS)) {
                by_time.push((s.xmit, n));
            }
        }
        by_time.sort_unstable();
        for (_, n) in by_time {
            self.link_newest(n);
        }
        pieces
    }

    /// Clear all SACK marks (reneging, RFC 2018 §8).
    pub fn forget_sacks(&mut self) {
        for n in self.first..self.next {
            self.get_mut(n).flags &= !SACKED;
        }
        self.sacked.clear();
        self.breaks.clear();
        self.sacked_out = 0;
    }

    /// Set the SACK count that Linux emulates from duplicate ACKs on a connection without SACK (`tcp_add_reno_sack`). No segment is marked.
    pub fn set_emulated_sacked(&mut self, sacked_out: u32) {
        self.sacked_out = sacked_out;
    }

    /// Return the number of the first segment that starts at or after offset `seq`. Most segments have the
    /// same size, so the first guess is nearly always right.
    pub fn at_or_after(&self, seq: u64, smss: u32) -> u64 {
        let Some(head) = self.head() else { return self.next };
        if seq <= head.start() {
            return self.first;
        }
        let guess = self.first + (seq - head.start()).div_ceil(smss as u64);
        if guess < self.next && self.get(guess).start() >= seq && self.get(guess - 1).start() < seq {
            return guess;
        }
        let (mut lo, mut hi) = (self.first, self.next);
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if self.get(mid).start() < seq {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        lo
    }

    /// Record that segments [a, b) were SACKed, and call `each` on those not SACKed before, in ascending order.
    pub fn add_sacked_range(
        &mut self,
        a: u64,
        b: u64,
        known: &Known,
        mut each: impl FnMut(&mut Scoreboard, u64),
    ) {
        let (a, b) = (a.max(self.first), b.min(self.next));
        if a >= b {
            return;
        }
        // First range that ends at or after a.
        let i = self.sacked.partition_point(|r| r.1 < a);
        if i < self.sacked.len() && self.sacked[i].0 <= a && b <= self.sacked[i].1 {
            let range = self.sacked[i];
            self.join_again(range, a, b, known);
            return;
        }
        let (mut start, mut end, mut from, mut j) = (a, b, a, i);
        while j < self.sacked.len() && self.sacked[j].0 <= b {
            let range = self.sacked[j];
            for n in from..range.0.max(from) {
                each(self, n);
            }
            let before = (j > 0).then(|| self.sacked[j - 1]);
            let passed = self.join_new(from, range.0, before, Some((range, range.0 < b)), known);
            self.join_again(range, a.max(passed), b, known);
            from = from.max(range.1);
            start = start.min(range.0);
            end = end.max(range.1);
            j += 1;
        }
        for n in from..b.max(from) {
            each(self, n);
        }
        self.join_new(from, b, (j > 0).then(|| self.sacked[j - 1]), None, known);
        put_for(&mut self.sacked, i..j, (start, end));
    }

    /// Number after the highest SACKed segment; `first` if there is none.
    #[inline]
    pub fn sacked_end(&self) -> u64 {
        self.sacked.back().map_or(self.first, |range| range.1)
    }

    /// Return the `k`-th highest SACKed segment (k = 1 the highest), if there are that many.
    pub fn kth_highest_sacked(&self, mut k: u64) -> Option<u64> {
        for &(a, b) in self.sacked.iter().rev() {
            if b - a >= k {
                return Some(b - k);
            }
            k -= b - a;
        }
        None
    }

    /// Return the segment sent earliest among those neither SACKed nor lost (or lost and retransmitted).
    #[inline]
    pub fn oldest_sent(&self) -> Option<u64> {
        self.widen(self.oldest)
    }

    /// Return the next segment after `n` in transmission order.
    #[inline]
    pub fn sent_after(&self, n: u64) -> Option<u64> {
        if n as u32 == self.newest {
            return None;
        }
        self.widen(self.get(n).next)
    }

    #[inline]
    fn widen(&self, low: u32) -> Option<u64> {
        (low != NIL).then(|| self.first + low.wrapping_sub(self.first as u32) as u64)
    }

    fn link_newest(&mut self, n: u64) {
        let newest = self.newest;
        let segment = self.get_mut(n);
        segment.prev = newest;
        segment.next = (n + 1) as u32;
        segment.flags |= LINKED;
        self.follow(newest, n as u32);
    }

    /// Append `n` to the list, after `newest`.
    #[inline]
    fn follow(&mut self, newest: u32, n: u32) {
        self.newest = n;
        match self.widen(newest) {
            Some(_) if newest.wrapping_add(1) == n => {} // `next` has this value already
            Some(last) => self.get_mut(last).next = n,
            None => self.oldest = n,
        }
    }

    fn unlink(&mut self, n: u64) {
        let (first, last) = (n as u32 == self.oldest, n as u32 == self.newest);
        let segment = self.get_mut(n);
        if !segment.is(LINKED) {
            return;
        }
        segment.flags &= !LINKED;
        let (prev, next) = (segment.prev, segment.next);
        match (first, last) {
            (true, true) => (self.oldest, self.newest) = (NIL, NIL),
            (true, false) => self.oldest = next,
            (false, true) => {
                self.newest = prev;
                self.neighbour(prev).next = prev.wrapping_add(1);
            }
            (false, false) => {
                self.neighbour(prev).next = next;
                self.neighbour(next).prev = prev;
            }
        }
    }

    /// Return the entry of a segment in the list, given the low 32 bits of its number.
    fn neighbour(&mut self, low: u32) -> &mut Outstanding {
        let n = self.first + low.wrapping_sub(self.first as u32) as u64;
        self.get_mut(n)
    }
}

/// Change made by [`Scoreboard::mark_lost`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marked {
    /// No change.
    No,
    /// A segment is now believed lost.
    Lost,
    /// A retransmission is now believed lost.
    LostAgain,
}

#[cfg(test)]
mod tests;
