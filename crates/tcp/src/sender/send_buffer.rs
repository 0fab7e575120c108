//! The send buffer of an application that writes without end, or one long transfer: blocking writes of [`WRITE`] bytes
//! into buffers of one segment each. When the memory is full the writer sleeps until two thirds of what is queued would be
//! free; the buffer grows with the window. The last segment of what fitted carries PSH, which the receiver answers at
//! once, so where the writer sleeps decides which segments are acknowledged in pairs. (Linux `tcp_sendmsg_locked`,
//! `sk_stream_wait_memory`, `tcp_new_space`, `tcp_sndbuf_expand`, without segmentation offload.)
//!
//! No buffer is kept: between snd_una and snd_nxt each segment is one, beyond it each full segment. What SACKs cover side by
//! side is merged into one (`tcp_shift_skb_data`). Differs: never split again by a run of more than 16 pages of 32 KiB.

use std::collections::VecDeque;

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::writer::{per_segment, LEAST_SEGMENTS};
use super::Sender;
use crate::config::{SendLimit, WRITE};

/// Work left for a stream's writer, and the buffer that it writes into.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    limit: SendLimit,
    /// Bytes that the application has left, including the current write call.
    left: u64,
    /// Bytes of `left` that belong to the call under way.
    call: u64,
    /// The call has written something.
    copied: bool,
    asleep: bool,
    /// The writer sleeps until an ACK reaches this offset or something is SACKed.
    sleeps_to: u64,
    /// The writer waits for its turn: the kernel is still taking packets in.
    suspended: bool,
    /// Memory may have been freed: check for room.
    check: bool,
    /// Segments left, which frees no memory but lets the buffer grow.
    sent: bool,
    /// A segment left that did not fill cwnd: the buffer may grow.
    grows: bool,
    /// Number and payload of the segments for which the buffer last grew.
    expanded: (u32, u32),
    /// The connection is closed when all is written, and what may leave of it has left: the call of close follows that of write.
    closes: bool,
    /// Ends of segments with PSH, not yet acknowledged, ascending.
    marks: VecDeque<u64>,
    /// Number of marks, the last ones, on segments that are not sent yet.
    unsent: usize,
    /// The first mark not yet sent; `u64::MAX` if there is none.
    next_mark: u64,
    /// Offset after the last mark.
    pushed: u64,
    max_window: u64,
}

impl SendBuffer {
    /// Neither a write nor a close is under way.
    pub fn is_at_rest(&self) -> bool {
        self.left == 0 && !self.closes
    }

    /// The writer sleeps for lack of room.
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

    /// Whether the writer has something to do once nothing more may leave.
    #[inline]
    pub fn is_due(&self) -> bool {
        match self.left {
            0 => self.closes,
            _ => self.check || self.sent || !(self.asleep || self.suspended),
        }
    }

    /// An ACK arrived, which may have freed memory.
    #[inline]
    pub fn look(&mut self) {
        self.check = true;
    }

    /// Segments left, and with the first of them `pipe` were in flight (Linux `tcp_event_new_data_sent`).
    #[inline]
    pub fn sent(&mut self, pipe: u32, cwnd: u32) {
        self.sent = true;
        self.grows |= pipe < cwnd;
    }

    /// Raise the buffer's limit to `wanted` bytes, within its maximum.
    #[cold]
    fn expand(&mut self, wanted: u64) {
        self.limit.bytes = self.limit.bytes.max(wanted.min(self.limit.most));
        self.sleeps_to = 0;
    }

    /// The peer offered this window.
    #[inline]
    pub fn offered(&mut self, window: u64) {
        self.max_window = self.max_window.max(window);
    }

    /// Mark the end of a buffer.
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
    /// The application has `bytes` more to write.
    pub(super) fn write_through(&mut self, bytes: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.left = buffer.left.saturating_add(bytes);
        }
        self.stream.end_nagle_push();
        self.intent.push();
    }

    /// The writer gets its turn only when the kernel has processed all packets of a poll; until then it is `suspended`.
    pub fn suspend_writer(&mut self, suspended: bool) {
        if let Some(buffer) = &mut self.buffer {
            buffer.suspended = suspended;
        }
        if let Some(queue) = &mut self.queue {
            queue.writer.suspended = suspended;
        }
    }

    /// See [`Sender::suspend_writer`].
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

    /// Nothing more is written; the buffer's content still leaves.
    pub(super) fn end_stream(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            (buffer.left, buffer.call, buffer.sleeps_to) = (0, 0, 0);
        }
    }

    /// Memory that sent and unsent buffers take (Linux `sk_wmem_queued`).
    #[inline]
    fn buffered(&self) -> u64 {
        let unsent = self.unsent().div_ceil(self.smss as u64);
        self.stream.from(self.snd_una)
            + self.config.buffer_overhead as u64 * (self.board.buffers() as u64 + unsent)
    }

    /// Nothing more may leave. Returns true if the writer added data to send.
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

    /// Number of full segments that would leave one by one during the write, because the windows allow it and nothing
    /// is checked in between: they may be written at once, and leave as a train.
    fn leave_as_written(&self, now: Time) -> u64 {
        let looks = !self.config.fills
            || !self.reasons.is_empty()
            || self.ca_state != CaState::Open
            || self.pacer.is_some()
            || self.rates.is_some()
            || self.mss_cache > self.smss; // the first of them may carry the option
                                           // a window that was unused for long may shrink with the next
                                           // segment
        let shrinks = self.board.packets_out() == 0 || self.usage.is_stale(now, self.rtt.rto());
        if looks || shrinks || !self.intent.is_nothing() {
            return 0;
        }
        let offered = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt) / self.smss as u64;
        offered.min(self.window.cwnd.saturating_sub(self.board.pipe()) as u64)
    }

    /// The writer is awake, but a process runs only when the kernel has taken in all packets (in Linux behind the softirq): of
    /// two ACKs in one nanosecond neither finds what it will write.
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

    /// All packets of this instant are processed.
    #[cold]
    pub(super) fn on_turn(&mut self) {
        self.timer.take_turn(Time::NEVER);
        self.suspend_writer(false);
        self.intent.push();
    }

    /// Whether a writer that sleeps is woken (Linux `sk_stream_write_space`).
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

    /// Too much is queued: how far must it be acknowledged at least? No buffer holds more than a segment, so `bytes` take no less than
    /// their share of a full one; two thirds of the limit must be left.
    #[cold]
    fn sleep_on(&mut self) {
        let (smss, whole) = (self.smss as u64, self.smss as u64 + self.config.buffer_overhead as u64);
        let (end, probes) = (self.stream.end(), self.mtu_search.is_some());
        if let Some(buffer) = self.buffer.as_mut().filter(|_| !probes) {
            let bytes = ((2 * buffer.limit.bytes / 3 + 3) * smss).div_ceil(whole) + 1;
            buffer.sleeps_to = (end + 1).saturating_sub(bytes);
        }
    }

    /// Give the writer its turn; returns whether it wrote something to send.
    #[cold]
    fn write_call(&mut self, now: Time) -> bool {
        let mut queued = self.buffered();
        let (smss, overhead) = (self.smss as u64, self.config.buffer_overhead as u64);
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
        // The last buffer takes more if it is not full, and not sent.
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
                // Buffers before the first one that later checks depend on are filled at once.
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
                buffer.mark(end); // the call returns
                break;
            }
            room = 0; // the segment is full
            if end > buffer.pushed + buffer.max_window / 2 {
                buffer.mark(end);
                break; // Linux `forced_push`
            }
            if end - snd_nxt == smss {
                break; // the first in the queue leaves if it may (Linux `tcp_push_one`)
            }
        }
        let wrote = end > write_end;
        self.stream.append(end - write_end);
        if wrote {
            self.intent.push();
        }
        wrote
    }

    /// Linux `tcp_sndbuf_expand`: twice the memory of cwnd, if the controller asks for no more. Returns whether the buffer has grown.
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

    /// Windows that the buffer holds (Linux `sndbuf_expand`).
    #[inline]
    pub(super) fn buffer_factor(&self) -> u64 {
        match self.config.controller.needs().buffer_windows {
            0 => 2,
            asked => u64::from(asked),
        }
    }
}
