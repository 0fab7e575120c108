//! Buffers of Linux's send queue that contain the outstanding segments, if each was sent in its own buffer.
//! Adjacent SACKed segments are merged into one buffer (Linux `tcp_shift_skb_data`), which frees the heads of all
//! but the first. Only the exceptions are stored: SACKed segments that were not merged with the one before them.
//!
//! A newly SACKed segment is merged into the buffer before it if that is SACKed, both have the same length, and neither was
//! retransmitted without being marked lost; SACKed segments after it are then merged too. A segment that fills the last
//! part of a hole from behind is not merged, and Linux tries again only for a block that the previous ACK did not report
//! (`recv_sack_cache`). A buffer contains less than 8 x 65535 bytes (`tcp_skb_shift`). A DSACK of out-of-order data splits
//! the buffer (`tcp_match_skb_to_sack`), usually after the duplicate, which is merged again with the data before it.

use std::ops::Range;

use ackclock_core::Time;
use smallvec::SmallVec;

use super::{Outstanding, Scoreboard, EVER_RETRANS, RETRANS, SACKED};

/// Blocks of SACKed segments, by segment number (low 32 bits).
pub type Reported = SmallVec<[(u32, u32); 4]>;

/// Earlier reports, which decide which segments of a SACK block are processed.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Blocks reported by the previous ACK.
    pub before: Reported,
    /// Out-of-order segments that arrived twice; empty if there are none.
    pub twice: Range<u64>,
    /// End of the walk along the blocks of this ACK, in ascending order. A block within another one is not processed again.
    pub past: u64,
}

impl Known {
    /// Whether the previous ACK reported segment `n`.
    pub fn holds(&self, n: u64) -> bool {
        self.before.iter().any(|&(a, b)| (n as u32).wrapping_sub(a) < b.wrapping_sub(a))
    }

    /// Whether the walk skips segment `n`.
    fn passes(&self, n: u64) -> bool {
        n < self.past || self.holds(n)
    }
}

/// Limit on the bytes in a buffer (Linux `tcp_skb_shift`: 65535 segments of at least TCP_MIN_GSO_SIZE bytes).
const MOST_BYTES: u64 = 65_535 * 8;

impl Scoreboard {
    /// Number of buffers that contain the outstanding segments.
    #[inline]
    pub fn buffers(&self) -> u32 {
        match self.sacked.len() as u32 {
            0 => self.packets_out(),
            ranges => self.packets_out() - self.sacked_out + ranges + self.breaks.len() as u32,
        }
    }

    /// Number of packets that the SACKed segments were sent in minus the number of their buffers, if several
    /// segments may be sent as one packet. `sent` returns the number of packets between two offsets.
    pub fn shared(&self, sent: impl Fn(u64, u64) -> u64) -> u64 {
        let packets: u64 =
            self.sacked.iter().map(|&(a, b)| sent(self.get(a).start(), self.get(b - 1).end)).sum();
        packets.saturating_sub((self.sacked.len() + self.breaks.len()) as u64)
    }

    /// Merge buffers after segments [from, to) were SACKed. `before` and `behind` are the adjacent SACKed
    /// ranges; `behind` is considered only if the block `reached` it. Returns the end of the merged range.
    pub(super) fn join_new(
        &mut self,
        from: u64,
        to: u64,
        before: Option<(u64, u64)>,
        behind: Option<((u64, u64), bool)>,
        known: &Known,
    ) -> u64 {
        if from >= to {
            return from;
        }
        let meets = before.is_some_and(|range| range.1 == from);
        let mut head = match before {
            Some(range) if meets => self.buffer_start(from - 1, range.0),
            _ => from,
        };
        let mut joined = false;
        for n in from + !meets as u64..to {
            joined = !known.twice.contains(&n) && self.joins(head, n, n + 1);
            if !joined {
                self.part(n);
                head = n;
            }
        }
        let Some((behind, reached)) = behind.filter(|(range, _)| range.0 == to) else { return to };
        let end = self.buffer_end(to, behind.1);
        let looked_at = reached && !known.passes(to) && !known.twice.contains(&to);
        if (joined || looked_at) && self.joins(head, to, end) {
            return if joined { end } else { to };
        }
        self.part(to);
        to
    }

    /// Process a block [a, b) that reports SACKed segments of a `range` again. Segments that the previous ACK did not
    /// report are examined: buffers may be merged now, and the part of the last buffer beyond the block is split off.
    #[inline]
    pub(super) fn join_again(&mut self, range: (u64, u64), a: u64, b: u64, known: &Known) {
        if (!self.breaks.is_empty() || b < range.1) && a.max(range.0) < b {
            self.join_parted(range, a.max(range.0), b.min(range.1), known);
        }
    }

    #[cold]
    fn join_parted(&mut self, range: (u64, u64), a: u64, b: u64, known: &Known) {
        let mut i = self.breaks.partition_point(|&n| n < a);
        while let Some(&n) = self.breaks.get(i).filter(|&&n| n < b) {
            let passed = known.passes(n) || known.twice.contains(&n);
            if !passed && self.joins(self.buffer_start(n - 1, range.0), n, self.buffer_end(n, range.1)) {
                self.breaks.remove(i);
            } else {
                i += 1;
            }
        }
        if b < range.1 && !known.passes(b - 1) && self.breaks.binary_search(&b).is_err() {
            self.part(b);
        }
    }

    /// Whether all segments in [a, b) are SACKed.
    pub fn is_sacked(&self, a: u64, b: u64) -> bool {
        let range = self.sacked.get(self.sacked.partition_point(|r| r.1 <= a));
        range.is_some_and(|range| range.0 <= a && b <= range.1)
    }

    /// Start a buffer at `a`, the first segment of a range that arrived twice and lies within a block (Linux
    /// `tcp_sacktag_walk` with `next_dup`).
    #[cold]
    pub fn cut_at_twice(&mut self, a: u64) {
        let inside = a > self.first && self.is_sacked(a - 1, a + 1);
        if inside && self.breaks.binary_search(&a).is_err() {
            self.part(a);
        }
    }

    /// Process a separate block of SACKed segments [a, b) that arrived twice. They are merged into the buffer
    /// before them, and the rest of their own buffer stays separate (Linux `tcp_sacktag_walk` with `dup_sack`).
    #[cold]
    pub fn look_at_twice(&mut self, a: u64, b: u64) {
        let Some(&range) = self.sacked.get(self.sacked.partition_point(|r| r.1 <= a)) else { return };
        let mut n = a;
        while n < b.min(range.1) {
            let end = self.buffer_end(n, range.1);
            let part = self.breaks.binary_search(&n);
            let mut joins = n > range.0;
            if let Ok(i) = part {
                joins = self.joins(self.buffer_start(n - 1, range.0), n, end.min(b));
                if joins {
                    self.breaks.remove(i);
                }
            }
            if b < end {
                self.part(b);
            }
            n = end;
            if joins && b >= end && end < range.1 {
                let next = self.buffer_end(end, range.1);
                if self.joins(self.buffer_start(end - 1, range.0), end, next) {
                    self.breaks.remove(self.breaks.partition_point(|&n| n < end));
                    n = next;
                }
            }
        }
    }

    /// Whether the buffer that starts at `head` can be merged with segments [n, end).
    fn joins(&self, head: u64, n: u64, end: u64) -> bool {
        let (before, next) = (self.get(n - 1), self.get(n));
        let alike = before.len == next.len && !before.is(RETRANS) && !next.is(RETRANS);
        alike && self.get(end - 1).end - self.get(head).start() < MOST_BYTES
    }

    /// First segment of the buffer that contains `n`, within a SACKed range that starts at `start`.
    fn buffer_start(&self, n: u64, start: u64) -> u64 {
        let i = self.breaks.partition_point(|&b| b <= n);
        i.checked_sub(1).map_or(start, |i| self.breaks[i].max(start))
    }

    /// Number after the last segment of the buffer that contains `n`, within a SACKed range that ends at `end`.
    fn buffer_end(&self, n: u64, end: u64) -> u64 {
        self.breaks.get(self.breaks.partition_point(|&b| b <= n)).map_or(end, |&b| b.min(end))
    }

    /// Start a new buffer at segment `n`.
    #[cold]
    fn part(&mut self, n: u64) {
        let i = self.breaks.partition_point(|&b| b < n);
        self.breaks.insert(i, n);
    }

    /// Copy the history of merged buffers to their segments (Linux `tcp_shifted_skb`): if one of them was retransmitted,
    /// all of them were, and the transmission time is that of the first. Calls `joined` with the offsets of each buffer,
    /// which is not split any more. A segment with a retransmission in flight or of another length is not merged.
    pub fn join_sacked(&mut self, mut joined: impl FnMut(u64, u64)) {
        for i in 0..self.sacked.len() {
            let (mut n, end) = self.sacked[i];
            while n < end {
                let head = *self.get(n);
                let alike = |s: &Outstanding| s.len == head.len && !s.is(RETRANS);
                let mut last = n + 1;
                let alone = self.breaks.partition_point(|&b| b <= n);
                let end = self.breaks.get(alone).map_or(end, |&b| b.min(end));
                while alike(&head) && last < end && alike(self.get(last)) {
                    last += 1;
                }
                let ever = (n..last).fold(0, |flags, n| flags | self.get(n).flags & EVER_RETRANS);
                for n in n..last {
                    let segment = self.get_mut(n);
                    segment.flags |= ever;
                    segment.xmit = head.xmit;
                }
                joined(head.start(), self.get(last - 1).end);
                n = last;
            }
        }
    }

    /// Restore the history of a buffer of SACKed segments whose first part was acknowledged. `ever`: one of
    /// them was retransmitted; `sent`: transmission time of the first one.
    pub fn cut_sacked(&mut self, ever: bool, sent: Time) {
        if self.head().is_some_and(|head| head.is(SACKED) && !head.is(RETRANS)) {
            let head = self.get_mut(self.first);
            head.flags |= if ever { EVER_RETRANS } else { 0 };
            head.xmit = sent;
        }
    }
}
