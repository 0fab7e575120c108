//! Send buffer of an application that writes endlessly or makes one long transfer: blocking writes of [`WRITE`]
//! bytes into buffers of one segment each. When the memory is full, the writer sleeps until a third of it is free; the
//! limit grows with the window. The last segment of a partial write carries PSH, which the receiver answers at once,
//! so the points at which the writer sleeps decide which segments are acknowledged in pairs. (Linux
//! `tcp_sendmsg_locked`, `sk_stream_wait_memory`, `tcp_new_space`, `tcp_sndbuf_expand`, without segmentation offload.)
//!
//! Buffers are not stored. Between snd_una and snd_nxt each segment is a buffer, beyond snd_nxt each full segment. Adjacent SACKed segments are
//! merged into one buffer (`tcp_shift_skb_data`). Differs: a merged buffer is never split again, which Linux does when it exceeds 16 pages of 32 KiB.

use std::collections::VecDeque;

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::writer::{per_segment, LEAST_SEGMENTS};
use super::Sender;
use crate::config::{SendLimit, WRITE};

/// Send buffer, and the data that its writer has yet to write.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    limit: SendLimit,
    /// Bytes the application has yet to write, including the current call.
    left: u64,
    /// Bytes of `left` that belong to the current call.
    call: u64,
    /// The current call has written something.
    copied: bool,
    asleep: bool,
    /// The sleeping writer cannot wake before an ACK reaches this offset or a segment is SACKed.
    sleeps_to: u64,
    /// The writer is suspended while the kernel is still processing received packets.
    suspended: bool,
    /// Memory may have been freed: check whether the writer can wake.
    check: bool,
    /// Segments have been sent since the last check. This frees no memory but may let the buffer grow.
    sent: bool,
    /// A segment was sent while cwnd was not full: the buffer may grow.
    grows: bool,
    /// Number and payload of the segments for which the limit was last raised.
    expanded: (u32, u32),
    /// The application closes the connection after the last write, once everything that can be sent has been sent: the
    /// close call follows the write call.
    closes: bool,
    /// End offsets of segments with PSH, not yet acknowledged, ascending.
    marks: VecDeque<u64>,
    /// Number of marks at the end of `marks` whose segments have not been sent yet.
    unsent: usize,
    /// First mark whose segment has not been sent yet; `u64::MAX` if there is none.
    next_mark: u64,
    /// Offset after the last mark.
    pushed: u64,
    max_window: u64,
}

impl SendBuffer {
    /// Whether neither a write nor a close is pending.
    pub fn is_at_rest(&self) -> bool {
        self.left == 0 && !self.closes
    }

    /// Whether the writer sleeps because the buffer is full.
    pub fn is_full(&self) -> bool {
        self.left > 0 && self.asleep
    }

    pub fn new(limit: SendLimit) -> SendBuffer {
        SendBuffer {
            limit,
            left: 0,
            call: 0,
            copied: false,
            asleep: false,
            sleeps_to: 0,
            suspended: false,
            check: false,
            sent: false,
            grows: false,
            expanded: (0, 0),
            closes: false,
            marks: VecDeque::new(),
            unsent: 0,
            next_mark: u64::MAX,
            pushed: 1,
            max_window: 0,
        }
    }

    /// Reuse the memory of `old`.
    pub fn take_over(&mut self, old: SendBuffer) {
        self.marks = old.marks;
        self.marks.clear();
    }

    /// Whether a new segment that ends at `end` carries PSH.
    #[inline]
    pub fn pushes(&mut self, end: u64) -> bool {
        end >= self.next_mark && self.passes_mark(end)
    }

    fn passes_mark(&mut self, end: u64) -> bool {
        let mut last = self.next_mark;
        while self.next_mark <= end {
            last = self.next_mark;
            self.unsent -= 1;
            self.find_next_mark();
        }
        last == end
    }

    fn find_next_mark(&mut self) {
        let first = self.marks.len() - self.unsent;
        self.next_mark = self.marks.get(first).copied().unwrap_or(u64::MAX);
    }

    /// Whether a segment that ended at `end` carried PSH.
    pub fn pushed_at(&self, end: u64) -> bool {
        self.marks.binary_search(&end).is_ok()
    }

    /// Whether the writer has work to do once everything that can be sent has been sent.
    #[inline]
    pub fn is_due(&self) -> bool {
        match self.left {
            0 => self.closes,
            _ => self.check || self.sent || !(self.asleep || self.suspended),
        }
    }

    /// Record that an ACK may have freed memory.
    #[inline]
    pub fn look(&mut self) {
        self.check = true;
    }

    /// Record that segments have been sent. `pipe`: segments in flight with the first of them (Linux
    /// `tcp_event_new_data_sent`).
    #[inline]
    pub fn sent(&mut self, pipe: u32, cwnd: u32) {
        self.sent = true;
        self.grows |= pipe < cwnd;
    }

    /// Raise the buffer limit to `wanted` bytes, but not above its maximum.
    #[cold]
    fn expand(&mut self, wanted: u64) {
        self.limit.bytes = self.limit.bytes.max(wanted.min(self.limit.most));
        self.sleeps_to = 0;
    }

    /// Record a window offered by the peer.
    #[inline]
    pub fn offered(&mut self, window: u64) {
        self.max_window = self.max_window.max(window);
    }

    /// Mark the segment that ends at `end` for PSH.
    fn mark(&mut self, end: u64) {
        self.marks.push_back(end);
        self.unsent += 1;
        self.next_mark = self.next_mark.min(end);
        self.pushed = end;
    }

    /// Remove the last mark.
    fn unmark(&mut self) {
        self.marks.pop_back();
        self.unsent = self.unsent.saturating_sub(1);
        self.find_next_mark();
    }
}

impl Sender {
    /// Add `bytes` to the data the application has yet to write.
    pub(super) fn write_through(&mut self, bytes: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.left = buffer.left.saturating_add(bytes);
        }
        self.stream.end_nagle_push();
        self.intent.push();
    }

    /// Suspend or resume the writer, which runs only after the kernel has processed all packets of a poll.
    pub fn suspend_writer(&mut self, suspended: bool) {
        if let Some(buffer) = &mut self.buffer {
            buffer.suspended = suspended;
        }
        if let Some(queue) = &mut self.queue {
            queue.writer.suspended = suspended;
        }
    }

    /// Whether the writer is suspended (see [`Sender::suspend_writer`]).
    pub(crate) fn writer_is_suspended(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.suspended)
            || self.queue.as_ref().is_some_and(|queue| queue.writer.suspended)
    }

    /// Send a FIN after the written and the remaining data.
    pub(super) fn close_stream(&mut self) {
        match self.buffer.as_mut().filter(|b| b.left > 0) {
            Some(buffer) => buffer.closes = true,
            None => self.stream.close(),
        }
        self.intent.push();
    }

    /// Stop the writer. The content of the buffer is still sent.
    pub(super) fn end_stream(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            (buffer.left, buffer.call, buffer.sleeps_to) = (0, 0, 0);
        }
    }

    /// Memory used by sent and unsent buffers, bytes (Linux `sk_wmem_queued`).
    #[inline]
    fn buffered(&self) -> u64 {
        let unsent = self.unsent().div_ceil(self.smss as u64);
        self.stream.from(self.snd_una)
            + self.config.sending.buffer_overhead as u64 * (self.board.buffers() as u64 + unsent)
    }

    /// Let the writer continue once everything that can be sent has been sent. Returns true if it added data to send.
    #[inline]
    pub(super) fn write_stream(&mut self, now: Time) -> bool {
        let filled = self.board.pipe() >= self.window.cwnd;
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.is_due()) else { return false };
        if buffer.left == 0 {
            buffer.closes = false;
            self.stream.close();
            self.intent.push();
            return true;
        }
        if buffer.expanded.1 != self.smss {
            (buffer.check, buffer.expanded, buffer.sleeps_to) = (true, (0, self.smss), 0);
        }
        let mut check = std::mem::take(&mut buffer.check);
        let grows = std::mem::take(&mut buffer.grows) || !filled;
        buffer.sent = false;
        if buffer.asleep {
            check |= grows && self.expand_stream(now);
            if !check || !self.wakes_writer() {
                return false;
            }
            if self.config.application_waits {
                self.wait_for_turn(now);
                return false;
            }
        }
        self.write_call(now)
    }

    /// Number of full segments that could be sent one by one during the write, because the windows allow it
    /// and nothing needs a check in between. They may be written at once and sent as a train.
    fn leave_as_written(&self, now: Time) -> u64 {
        let looks = !self.config.sending.fills
            || !self.reasons.is_empty()
            || self.ca_state != CaState::Open
            || self.pacer.is_some()
            || self.rates.is_some()
            || self.mss_cache > self.smss; // the payload is reduced by options, which may change

        // A window that has long been unused may shrink when the next segment is sent.
        let shrinks = self.board.packets_out() == 0 || self.usage.is_stale(now, self.rtt.rto());
        if looks || shrinks || !self.intent.is_nothing() {
            return 0;
        }
        let offered = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt) / self.smss as u64;
        offered.min(self.window.cwnd.saturating_sub(self.board.pipe()) as u64)
    }

    /// Wake the writer, but let it run only after the kernel has processed all packets (in Linux after the
    /// softirq). Two ACKs that arrive in the same nanosecond are both processed before it writes.
    #[cold]
    pub(super) fn wait_for_turn(&mut self, now: Time) {
        if !self.config.application_waits {
            return;
        }
        if let Some(buffer) = &mut self.buffer {
            (buffer.asleep, buffer.suspended) = (false, true);
        }
        if let Some(queue) = &mut self.queue {
            queue.writer.suspended = true;
        }
        self.timer.take_turn(now);
    }

    /// Run the writer after all packets of this instant have been processed.
    #[cold]
    pub(super) fn on_turn(&mut self) {
        self.timer.take_turn(Time::NEVER);
        self.suspend_writer(false);
        self.intent.push();
    }

    /// Whether the sleeping writer wakes (Linux `sk_stream_write_space`).
    #[inline]
    fn wakes_writer(&mut self) -> bool {
        let sleeps_to = self.buffer.as_ref().map_or(0, |buffer| buffer.sleeps_to);
        if self.snd_una < sleeps_to && self.board.sacked_out == 0 {
            debug_assert!(!self.has_woken());
            return false;
        }
        let woken = self.has_woken();
        if !woken && self.board.sacked_out == 0 {
            self.sleep_on();
        }
        woken
    }

    fn has_woken(&self) -> bool {
        let (queued, limit) = (self.buffered(), self.buffer.as_ref().map_or(0, |buffer| buffer.limit.bytes));
        queued < limit && limit - queued >= queued / 2
    }

    /// Compute the offset that must be acknowledged before the writer can wake. At most two thirds of the limit may remain queued,
    /// and a buffer contains no more than one segment, so every byte of payload takes at least its share of a full buffer.
    #[cold]
    fn sleep_on(&mut self) {
        let (smss, whole) = (self.smss as u64, self.smss as u64 + self.config.sending.buffer_overhead as u64);
        let (end, probes) = (self.stream.end(), self.mtu_search.is_some());
        if let Some(buffer) = self.buffer.as_mut().filter(|_| !probes) {
            let bytes = ((2 * buffer.limit.bytes / 3 + 3) * smss).div_ceil(whole) + 1;
            buffer.sleeps_to = (end + 1).saturating_sub(bytes);
        }
    }

    /// Continue the write call. Returns whether data was written.
    #[cold]
    fn write_call(&mut self, now: Time) -> bool {
        let mut queued = self.buffered();
        let (smss, overhead) = (self.smss as u64, self.config.sending.buffer_overhead as u64);
        if let Some(buffer) = &mut self.buffer {
            buffer.asleep = false;
        }
        if self.buffer.as_ref().is_some_and(|b| b.suspended) {
            return false;
        }
        if self.buffer.as_ref().is_some_and(|b| b.call == 0) {
            self.check_app_limited();
        }
        let una = self.snd_una;
        let (write_end, snd_nxt) = (self.stream.end(), self.snd_nxt);
        let waits = write_end > snd_nxt;
        let at_once = if waits { u64::MAX } else { self.leave_as_written(now) };
        let Some(buffer) = self.buffer.as_mut().filter(|b| b.left > 0) else { return false };
        while buffer.marks.front().is_some_and(|&mark| mark <= una) {
            buffer.marks.pop_front();
        }
        let mut end = write_end;
        if buffer.call == 0 {
            (buffer.call, buffer.copied) = (buffer.left.min(WRITE), false);
        }
        // More bytes go into the last buffer if it is neither full nor sent.
        let mut room = match (end - snd_nxt.min(end)) % smss {
            0 => 0,
            tail => smss - tail,
        };
        if room > 0 && !buffer.copied && buffer.marks.back() == Some(&end) {
            buffer.unmark();
        }
        loop {
            if room == 0 {
                if queued >= buffer.limit.bytes {
                    buffer.asleep = true;
                    if buffer.copied && end > snd_nxt {
                        buffer.mark(end);
                    }
                    break;
                }
                // Buffers before the first one that a later check depends on are filled at once.
                if at_once > 0 {
                    let marked = (buffer.pushed + buffer.max_window / 2).saturating_sub(end) / smss;
                    let fit = (buffer.limit.bytes - queued - 1) / (smss + overhead);
                    let whole = marked.min(fit).min((buffer.call - 1) / smss).min(at_once);
                    end += whole * smss;
                    queued += whole * (smss + overhead);
                    buffer.left -= whole * smss;
                    buffer.call -= whole * smss;
                    if whole > 0 && !waits {
                        buffer.copied = true;
                        break;
                    }
                }
                queued += overhead;
                room = smss;
            }
            let bytes = room.min(buffer.call);
            end += bytes;
            queued += bytes;
            buffer.left -= bytes;
            buffer.call -= bytes;
            buffer.copied = true;
            if buffer.call == 0 {
                buffer.mark(end); // end of the write call
                break;
            }
            room = 0; // the segment is full
            if end > buffer.pushed + buffer.max_window / 2 {
                buffer.mark(end);
                break; // Linux `forced_push`
            }
            if end - snd_nxt == smss {
                break; // the first segment in the queue is sent if possible (Linux `tcp_push_one`)
            }
        }
        let wrote = end > write_end;
        self.stream.append(end - write_end);
        if wrote {
            self.intent.push();
        }
        wrote
    }

    /// Raise the limit to twice the memory of cwnd, or more if the controller requests it (Linux
    /// `tcp_sndbuf_expand`). Returns whether the limit was recomputed.
    #[inline]
    pub(super) fn expand_stream(&mut self, now: Time) -> bool {
        let segments = LEAST_SEGMENTS.max(self.window.cwnd).max(self.dupthresh.degree() + 1);
        self.usage.window_changed(now);
        let grown = |buffer: &SendBuffer| segments > buffer.expanded.0 || self.smss != buffer.expanded.1;
        if !self.buffer.as_ref().is_some_and(grown) {
            return false;
        }
        let wanted = self.buffer_factor() * segments as u64 * per_segment(self.smss);
        if let Some(buffer) = &mut self.buffer {
            buffer.expanded = (segments, self.smss);
            buffer.expand(wanted);
        }
        true
    }

    /// Buffer size in units of cwnd (Linux `sndbuf_expand`).
    #[inline]
    pub(super) fn buffer_factor(&self) -> u64 {
        match self.config.sending.controller.needs().buffer_windows {
            0 => 2,
            asked => u64::from(asked),
        }
    }
}
