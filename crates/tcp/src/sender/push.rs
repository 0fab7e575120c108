//! Placement of PSH. Linux marks buffers of its send queue, not segments (`tcp_sendmsg_locked`, `tcp_mark_push`,
//! `forced_push`). A buffer contains as many segments as one packet of the device, or one segment without TSO. The last
//! buffer of each write is marked, and a full one whenever more than half of the largest window has been queued since
//! the last mark. If the front of a buffer is cut off, the tail keeps the mark, so the mark is a position in the
//! stream. Optional: most simulations do not need it.

use std::collections::VecDeque;

use ackclock_core::Time;

use super::round::{Round, Sent};
use super::writer::Writer;
use crate::config::Buffers;
use crate::ticks::Ticks;

/// Linux `sk_gso_max_size`, bytes: 64 KiB minus the headers.
const MAX_BUFFER: u64 = 65_536 - 320;

/// Result of one step of a write call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub bytes: u64,
    /// The buffer is full after this step.
    pub full: bool,
    /// A new buffer was opened.
    pub opened: bool,
}

#[derive(Clone, Debug)]
struct Buffer {
    end: u64,
    push: bool,
    /// MSG_EOR: nothing is appended to the buffer, and no segment crosses its end.
    record: bool,
}

/// Buffers written and not yet acknowledged, in stream order.
#[derive(Clone, Debug)]
pub(super) struct SendQueue {
    buffers: VecDeque<Buffer>,
    /// Offset after the last mark. Data begins at offset 1.
    pushed: u64,
    max_window: u64,
    /// The handshake is complete; earlier writes wait for it (Linux `sk_stream_wait_connect`).
    pub open: bool,
    /// Start and end offsets of the packet that is being sent, new data or a retransmission.
    pub packet_start: u64,
    pub packet_end: u64,
    /// End offset of the last segment sent.
    pub segment_end: u64,
    /// The packet contains more than one segment and therefore carries PSH.
    pub packet_pushes: bool,
    /// Windows that deferred a packet since the last round of sending.
    pub cwnd_limited: bool,
    pub rwnd_limited: bool,
    /// Treatment of small segments in the current round of sending.
    pub round: Round,
    pub writer: Writer,
    /// A buffer contains a single segment: no TSO.
    single: bool,
    /// End offsets of the packets sent and not yet acknowledged.
    ends: VecDeque<u64>,
    /// Last transmission times: end offset of each part of the data, and the exact time, not rounded to
    /// microseconds.
    left: VecDeque<(u64, Time)>,
}

impl SendQueue {
    /// Return an empty queue.
    pub fn new(buffers: &Buffers, ticks: Ticks) -> SendQueue {
        SendQueue {
            buffers: VecDeque::new(),
            pushed: 0,
            max_window: 0,
            open: false,
            packet_start: 0,
            packet_end: 0,
            segment_end: 0,
            packet_pushes: false,
            cwnd_limited: false,
            rwnd_limited: false,
            round: Round::Plain,
            writer: Writer::new(buffers, ticks),
            single: buffers.tso.is_none(),
            ends: VecDeque::new(),
            left: VecDeque::new(),
        }
    }

    /// Record the peer's window at the end of the handshake as the largest so far, whatever its SYN offered.
    pub fn offered_first(&mut self, window: u64) {
        (self.max_window, self.open) = (window, true);
    }

    /// Record a window offered by the peer.
    pub fn offered(&mut self, window: u64) {
        self.max_window = self.max_window.max(window);
    }

    /// Perform one step of a write call: append up to `left` bytes to the last buffer, or to a new one if memory is
    /// `free`. `None`: a new buffer is needed and memory is not free. `first`: nothing has been copied in this call
    /// yet, and a mark on the last buffer is removed.
    pub fn fill(&mut self, at: u64, left: u64, sent: Sent, free: bool, first: bool) -> Option<Filled> {
        while self.buffers.front().is_some_and(|b| b.end <= sent.una) {
            self.buffers.pop_front();
        }
        self.pushed = self.pushed.max(1);
        let most = if self.single { sent.smss } else { MAX_BUFFER };
        let goal = (most.min((self.max_window / 2).max(sent.smss)) / sent.smss).max(1) * sent.smss;
        let open = self.buffers.back().is_some_and(|b| b.end > sent.nxt && !b.record);
        let before = match self.buffers.len() {
            n if open && n > 1 => self.buffers[n - 2].end.max(sent.nxt),
            1 if open => sent.nxt,
            _ => at,
        };
        let mut room = if open { goal.saturating_sub(at - before) } else { 0 };
        let opened = room == 0;
        if opened {
            if !free {
                return None;
            }
            self.buffers.push_back(Buffer { end: at, push: false, record: false });
            room = goal;
        }
        let bytes = room.min(left);
        let last = self.buffers.back_mut().expect("invariant: there is an open buffer");
        last.end = at + bytes;
        last.push &= !first;
        Some(Filled { bytes, full: bytes == room, opened })
    }

    /// Write everything up to `end` at once, for an application that writes endlessly.
    pub fn fill_endlessly(&mut self, end: u64) {
        self.buffers.push_back(Buffer { end, push: false, record: false });
    }

    /// Set PSH on the last buffer (Linux `tcp_mark_push`).
    pub fn mark_push(&mut self) {
        if let Some(last) = self.buffers.back_mut() {
            last.push = true;
            self.pushed = last.end;
        }
    }

    /// Whether more than half of the largest window has been written since the last mark (Linux `forced_push`).
    pub fn forces_push(&self, written: u64) -> bool {
        written > self.pushed + self.max_window / 2
    }

    /// Mark the last buffer as the end of a `record`, if there is one.
    pub fn end_record(&mut self, record: bool) {
        if let Some(last) = self.buffers.back_mut() {
            last.record |= record;
        }
    }

    /// Whether the last buffer is the next one to be sent.
    pub fn is_send_head(&self, snd_nxt: u64) -> bool {
        self.buffers.partition_point(|b| b.end <= snd_nxt) + 1 == self.buffers.len()
    }

    /// Number of packets sent and not acknowledged plus buffers not sent.
    pub fn held(&self, snd_una: u64, snd_nxt: u64) -> u64 {
        let sent = self.buffers.partition_point(|b| b.end <= snd_nxt);
        (self.packets_out(snd_una) + self.buffers.len() - sent) as u64
    }

    /// Cut the queue at `end`: data beyond it counts as not written.
    pub fn cut(&mut self, end: u64) {
        while self.buffers.len() > 1 && self.buffers[self.buffers.len() - 2].end >= end {
            self.buffers.pop_back();
        }
        if let Some(last) = self.buffers.back_mut() {
            last.end = last.end.min(end);
        }
    }

    /// End of the buffer that contains the byte at `start`, whether it is the last one, and whether a record
    /// ends with it. A buffer shorter than `most` takes bytes from the next one (Linux `tcp_grow_skb`).
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

    /// Start a packet with bytes `start` to `end`. `pushes`: whether it contains several segments and carries PSH.
    pub fn begin(&mut self, start: u64, end: u64, pushes: bool) {
        (self.packet_start, self.packet_end, self.packet_pushes) = (start, end, pushes);
    }

    /// Bytes passed to the device with the segment at `start` of length `len`: the whole packet if the segment begins one, none if it continues one.
    pub fn brings(&self, start: u64, len: u32) -> u32 {
        match self.packet_start == start && self.packet_end > start {
            true => (self.packet_end - start) as u32,
            false if self.continues_at(start) => 0,
            false => len,
        }
    }

    /// Record that new data up to `end` is sent as one packet.
    pub fn sent_up_to(&mut self, now: Time, end: u64, snd_una: u64) {
        while self.ends.front().is_some_and(|&e| e <= snd_una) {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
        while self.left.front().is_some_and(|left| left.0 <= snd_una) {
            self.left.pop_front();
        }
        self.left.push_back((end, now));
    }

    /// Record that the bytes from `start` to `end` are retransmitted.
    pub fn left_again(&mut self, now: Time, start: u64, end: u64) {
        for at in [start, end] {
            let n = self.left.partition_point(|left| left.0 < at);
            if let Some(&(_, when)) = self.left.get(n).filter(|left| left.0 > at) {
                self.left.insert(n, (at, when));
            }
        }
        let from = self.left.partition_point(|left| left.0 <= start);
        self.left.range_mut(from..).take_while(|left| left.0 <= end).for_each(|left| left.1 = now);
    }

    /// Time of the last transmission of the byte at `start`; `None` if it has not been sent.
    pub fn left_at(&self, start: u64) -> Option<Time> {
        self.left.iter().find(|left| left.0 > start).map(|left| left.1)
    }

    /// Split the sent packet that contains `at`. The two parts are never sent as one packet again (Linux `tcp_fragment`).
    pub fn cut_sent(&mut self, at: u64) {
        let n = self.ends.partition_point(|&end| end < at);
        if self.ends.get(n).is_some_and(|&end| end > at) {
            self.ends.insert(n, at);
        }
    }

    /// Merge the sent bytes from `start` to `end` into one packet.
    pub fn join_sent(&mut self, start: u64, end: u64) {
        self.cut_sent(start);
        self.cut_sent(end);
        let inside = |ends: &VecDeque<u64>, at: u64| ends.partition_point(|&e| e < at);
        let (from, to) = (inside(&self.ends, start + 1), inside(&self.ends, end));
        self.ends.drain(from..to);
    }

    /// Number of packets of new data sent and not yet acknowledged.
    pub fn packets_out(&self, snd_una: u64) -> usize {
        self.ends.len() - self.ends.partition_point(|&end| end <= snd_una)
    }

    /// Number of packets sent and not yet acknowledged that end after `start` and no later than `end`.
    pub fn sent_between(&self, start: u64, end: u64) -> u64 {
        let up_to = |at: u64| self.ends.partition_point(|&e| e <= at);
        (up_to(end) - up_to(start)) as u64
    }

    /// Whether the byte at `start` continues a packet already started.
    pub fn continues_at(&self, start: u64) -> bool {
        self.packet_start < start && self.segment_end == start && start < self.packet_end
    }

    /// End of the packet that contained the byte at `start`.
    pub fn sent_in(&self, start: u64) -> u64 {
        let n = self.ends.partition_point(|&e| e <= start);
        self.ends.get(n).copied().unwrap_or(start)
    }

    /// Whether a segment that ends at `end` carries PSH.
    pub fn pushes(&self, end: u64) -> bool {
        let n = self.buffers.partition_point(|b| b.end < end);
        let marked = self.buffers.get(n).is_some_and(|b| b.push && b.end == end);
        marked || (self.packet_pushes && end == self.packet_end)
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Span;

    use super::*;
    use crate::config::{Tso, Wheel};

    fn queue(window: u64) -> SendQueue {
        let mut q = SendQueue::new(
            &Buffers { tso: Some(Tso::LINUX), ..Buffers::UNLIMITED },
            Ticks::new(Span::ZERO, 0, Wheel::Exact),
        );
        q.offered(window);
        q
    }

    /// Perform a write call as the writer does, without sending anything in between.
    fn write(q: &mut SendQueue, at: u64, bytes: u64, nxt: u64) {
        let (mut at, end) = (at, at + bytes);
        let mut first = true;
        while at < end {
            let sent = Sent { una: 1, nxt, smss: 1000 };
            at += q.fill(at, end - at, sent, true, first).expect("memory is free").bytes;
            first = false;
            if at == end || q.forces_push(at) {
                q.mark_push();
            }
        }
    }

    fn marks(q: &SendQueue, up_to: u64) -> Vec<u64> {
        (1..=up_to).map(|n| 1 + n * 1000).filter(|&end| q.pushes(end)).collect()
    }

    #[test]
    fn a_write_ends_with_a_mark() {
        let mut q = queue(1 << 20);
        write(&mut q, 1, 10_000, 1);
        assert_eq!(marks(&q, 20), [10_001]);
        write(&mut q, 10_001, 10_000, 10_001);
        assert_eq!(marks(&q, 20), [10_001, 20_001]);
    }

    #[test]
    fn a_write_appended_to_what_was_not_sent_moves_the_mark() {
        let mut q = queue(1 << 20);
        write(&mut q, 1, 2_000, 1);
        write(&mut q, 2_001, 2_000, 1);
        assert_eq!(marks(&q, 20), [4_001]);
    }

    #[test]
    fn what_was_cut_stays_cut_and_what_was_joined_is_one_packet() {
        let mut q = queue(1 << 20);
        [2_001, 4_001, 6_001].iter().for_each(|&end| q.sent_up_to(Time(end), end, 1));
        q.cut_sent(3_001);
        q.cut_sent(4_001);
        q.cut_sent(9_001); // never sent
        assert_eq!((q.sent_in(2_001), q.sent_in(3_001), q.packets_out(1)), (3_001, 4_001, 4));
        q.join_sent(1_001, 5_001);
        assert_eq!((q.sent_in(1), q.sent_in(1_001), q.sent_in(5_001)), (1_001, 5_001, 6_001));
        assert_eq!((q.left_at(3_001), q.left_at(6_001)), (Some(Time(4_001)), None));
        q.left_again(Time(9_999), 3_001, 5_001);
        let left: Vec<_> = [1, 2_001, 3_001, 4_001, 5_001].map(|at| q.left_at(at).expect("it left").0).into();
        assert_eq!(left, [2_001, 4_001, 9_999, 9_999, 6_001], "only what left again");
    }

    #[test]
    fn half_the_largest_window_forces_one() {
        let mut q = queue(32_792); // buffers of 16 segments
        write(&mut q, 1, 40_000, 1);
        assert_eq!(marks(&q, 40), [32_001, 40_001]);
    }

    #[test]
    fn without_memory_only_the_open_buffer_takes_more() {
        let mut q = queue(32_792);
        let sent = Sent { una: 1, nxt: 1, smss: 1000 };
        assert_eq!(
            q.fill(1, 10_000, sent, true, true).map(|f| (f.bytes, f.full, f.opened)),
            Some((10_000, false, true))
        );
        assert_eq!(
            q.fill(10_001, 10_000, sent, false, true).map(|f| (f.bytes, f.full, f.opened)),
            Some((6_000, true, false))
        );
        assert!(q.fill(16_001, 4_000, sent, false, true).is_none());
        assert_eq!(q.held(1, 1), 1);
    }
}
