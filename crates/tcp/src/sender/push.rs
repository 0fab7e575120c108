//! Where PSH goes: Linux marks buffers of its send queue, not segments (`tcp_sendmsg_locked`, `tcp_mark_push`,
//! `forced_push`). A buffer holds as many segments as one burst of the device; the last buffer of each write is marked,
//! and a full one whenever half the largest window was queued since the last mark. What is cut off a buffer's front
//! loses the mark, its tail keeps it, so the mark is a place in the stream. Optional: a simulation has no use for it.

use std::collections::VecDeque;

/// Linux `sk_gso_max_size`: 64 KiB less room for headers.
const MAX_BUFFER: u64 = 65_536 - 320;
/// An application that writes more than this at a time never ends: one buffer stands for all it will write.
const ENDLESS: u64 = 1 << 40;

#[derive(Debug)]
struct Buffer {
    end: u64,
    push: bool,
    /// MSG_EOR: nothing is appended, no segment crosses its end.
    record: bool,
}

/// Buffers written and not yet acknowledged, in order.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    buffers: VecDeque<Buffer>,
    /// Offset after the last mark; data begins at 1.
    pushed: u64,
    max_window: u64,
    /// Where the packet that is being sent begins and ends, new data or a retransmission.
    pub packet_start: u64,
    pub packet_end: u64,
    /// Where the segment sent last ends.
    pub segment_end: u64,
    /// The packet holds more than one segment.
    pub packet_pushes: bool,
    /// What kept data back since the last round of sending.
    pub cwnd_limited: bool,
    pub rwnd_limited: bool,
    /// Ends of the packets sent and not yet acknowledged.
    ends: VecDeque<u64>,
}

impl SendQueue {
    /// The peer offered this window.
    pub fn offered(&mut self, window: u64) {
        self.max_window = self.max_window.max(window);
    }

    /// The application writes `bytes` after offset `at`. `more`: it said that more will follow (MSG_MORE); `record`: the
    /// last byte ends a record (MSG_EOR).
    #[allow(clippy::too_many_arguments)]
    pub fn write(
        &mut self,
        at: u64,
        bytes: u64,
        snd_una: u64,
        snd_nxt: u64,
        smss: u64,
        more: bool,
        record: bool,
    ) {
        while self.buffers.front().is_some_and(|b| b.end <= snd_una) {
            self.buffers.pop_front();
        }
        if bytes > ENDLESS {
            self.buffers.push_back(Buffer { end: at.saturating_add(bytes), push: false, record: false });
            return;
        }
        let half = self.max_window / 2;
        self.pushed = self.pushed.max(1);
        let goal = (MAX_BUFFER.min(half.max(smss)) / smss).max(1) * smss;
        let (mut written, end) = (at, at + bytes);
        while written < end {
            let open = self.buffers.back().is_some_and(|b| b.end > snd_nxt && !b.record);
            let before = match self.buffers.len() {
                0 => written,
                1 if open => snd_nxt,
                n if open => self.buffers[n - 2].end.max(snd_nxt),
                _ => written,
            };
            let room = goal.saturating_sub(written - before);
            if !open || room == 0 {
                self.buffers.push_back(Buffer { end: written, push: false, record: false });
            }
            let room = if !open || room == 0 { goal } else { room };
            let copied = room.min(end - written);
            written += copied;
            let last = self.buffers.back_mut().expect("invariant: there is an open buffer");
            last.end = written;
            if copied == room && written > self.pushed + half {
                last.push = true;
                self.pushed = written;
            }
        }
        if let Some(last) = self.buffers.back_mut() {
            if !more || written > self.pushed + half {
                last.push = true;
                self.pushed = written;
            }
            last.record |= record;
        }
    }

    /// Nothing is written beyond `end` after all.
    pub fn cut(&mut self, end: u64) {
        while self.buffers.len() > 1 && self.buffers[self.buffers.len() - 2].end >= end {
            self.buffers.pop_back();
        }
        if let Some(last) = self.buffers.back_mut() {
            last.end = last.end.min(end);
        }
    }

    /// End of the buffer that holds the byte at `start`, whether nothing is queued behind it, whether a record ends with
    /// it. A buffer that holds less than `most` grows at the expense of the next one (Linux `tcp_grow_skb`).
    pub fn buffer_at(&mut self, start: u64, most: u64) -> Option<(u64, bool, bool)> {
        let n = self.buffers.partition_point(|b| b.end <= start);
        let Buffer { end, record, .. } = *self.buffers.get(n)?;
        if let (true, Some(next)) = (end < start + most && !record, self.buffers.get(n + 1)) {
            let grown = next.end.min(start + most);
            if grown == next.end {
                let eaten = self.buffers.remove(n + 1).expect("invariant: seen above");
                self.buffers[n].push |= eaten.push;
                self.buffers[n].record = eaten.record;
            }
            self.buffers[n].end = grown;
        }
        let b = &self.buffers[n];
        Some((b.end, n + 1 == self.buffers.len(), b.record))
    }

    /// A packet of these bytes begins to leave; one of several segments is marked.
    pub fn begin(&mut self, start: u64, end: u64, pushes: bool) {
        (self.packet_start, self.packet_end, self.packet_pushes) = (start, end, pushes);
    }

    /// Bytes that the segment at `start`, `len` long, brings to the device: all of its packet if it begins one.
    pub fn brings(&self, start: u64, len: u32) -> u32 {
        match self.packet_start == start && self.packet_end > start {
            true => (self.packet_end - start) as u32,
            false if self.continues_at(start) => 0,
            false => len,
        }
    }

    /// New data up to `end` leaves as one packet.
    pub fn sent_up_to(&mut self, end: u64, snd_una: u64) {
        while self.ends.front().is_some_and(|&e| e <= snd_una) {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
    }

    /// Whether a packet was begun that the byte at `start` continues.
    pub fn continues_at(&self, start: u64) -> bool {
        self.packet_start < start && self.segment_end == start && start < self.packet_end
    }

    /// End of the packet that the byte at `start` was sent in.
    pub fn sent_in(&self, start: u64) -> u64 {
        let n = self.ends.partition_point(|&e| e <= start);
        self.ends.get(n).copied().unwrap_or(start)
    }

    /// Whether a segment that ends at `end` carries PSH.
    pub fn pushes(&self, end: u64) -> bool {
        (self.packet_pushes && end == self.packet_end) || self.buffers.iter().any(|b| b.push && b.end == end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(window: u64) -> SendQueue {
        let mut q = SendQueue::default();
        q.offered(window);
        q
    }

    fn marks(q: &SendQueue, up_to: u64) -> Vec<u64> {
        (1..=up_to).map(|n| 1 + n * 1000).filter(|&end| q.pushes(end)).collect()
    }

    #[test]
    fn a_write_ends_with_a_mark() {
        let mut q = queue(1 << 20);
        q.write(1, 10_000, 1, 1, 1000, false, false);
        assert_eq!(marks(&q, 20), [10_001]);
        q.write(10_001, 10_000, 1, 10_001, 1000, false, false);
        assert_eq!(marks(&q, 20), [10_001, 20_001]);
    }

    #[test]
    fn a_write_appended_to_what_was_not_sent_moves_the_mark() {
        let mut q = queue(1 << 20);
        q.write(1, 2_000, 1, 1, 1000, false, false);
        q.write(2_001, 2_000, 1, 1, 1000, false, false);
        assert_eq!(marks(&q, 20), [4_001]);
    }

    #[test]
    fn half_the_largest_window_forces_one() {
        let mut q = queue(32_792); // buffers of 16 segments
        q.write(1, 40_000, 1, 1, 1000, false, false);
        assert_eq!(marks(&q, 40), [32_001, 40_001]);
    }
}
