//! Choice and order of the segments to send: lost segments first, then new data, then the segments that RFC 6675 NextSeg allows beyond.

use ackclock_cc::RecoveryRule;
use ackclock_core::trace::{CaState, Event};
use ackclock_core::{Flags, Time};

use super::device::Takes;
use super::intent::{First, Next};
use super::mtu_probe::Attempt;
use super::send_buffer::SendBuffer;
use super::timers::TimerKind;
use super::Sender;
use crate::config::{Detection, FinRule};
use crate::scoreboard::{FIN, RETRANS};

/// Fields of a segment that the sender sets. The connection fills in the rest of the header.
#[derive(Clone, Copy)]
pub struct Leaving {
    pub seq: u64,
    pub len: u32,
    pub seg_no: u32,
    pub rexmit: u8,
    pub flags: Flags,
}

impl Sender {
    #[inline]
    pub(crate) fn has_new_data(&self) -> bool {
        self.stream.has_new(self.snd_nxt)
    }

    /// Whether there may be new data to send, including data yet to be written.
    #[inline]
    pub(crate) fn may_send_new(&self) -> bool {
        self.has_new_data()
            || self.buffer.as_ref().is_some_and(SendBuffer::is_due)
            || self.queue.as_ref().is_some_and(|queue| queue.writer.is_due())
    }

    #[inline]
    pub(super) fn window_room(&self) -> bool {
        self.snd_una + self.snd_wnd > self.snd_nxt
    }

    /// Quick check that [`Sender::poll`] would return nothing and change nothing.
    #[inline(always)]
    pub(crate) fn has_nothing(&mut self) -> bool {
        let due = self.has_new_data() || !self.intent.is_idle() || !self.reasons.is_empty();
        let rare =
            self.limits.is_some() || self.config.loss.next_seg_rules && self.ca_state == CaState::Recovery;
        if due || rare || self.buffer.as_ref().is_some_and(SendBuffer::is_due) {
            return false;
        }
        self.intent.pushed();
        true
    }

    /// Return the next segment to send, if any: lost segments first, then new data (RFC 6675 NextSeg).
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<Leaving> {
        if self.queue.is_some() {
            return self.poll_and_write(now);
        }
        loop {
            let seg = self.poll_written(now);
            if seg.is_some() {
                return seg;
            }
            if !self.write_stream(now) {
                if self.limits.is_some() {
                    self.note_hold(now);
                }
                return None;
            }
        }
    }

    #[cold]
    fn poll_and_write(&mut self, now: Time) -> Option<Leaving> {
        loop {
            if let Some(seg) = self.poll_written(now) {
                if seg.rexmit == 0 {
                    self.check_space(now);
                }
                return Some(seg);
            }
            if !self.write_on(now) {
                if self.limits.is_some() {
                    self.note_hold(now);
                }
                return None;
            }
        }
    }

    #[cold]
    fn next_probe(&mut self, now: Time) -> Option<Leaving> {
        match self.intent.take_first() {
            Some(First::WindowProbe) => self.window_probe(now),
            _ => self.probe(now),
        }
    }

    #[inline(always)]
    fn poll_written(&mut self, now: Time) -> Option<Leaving> {
        if self.intent.probes() {
            return self.next_probe(now);
        }
        if self.intent.repairs() {
            if let Some(seg) = self.next_lost(now) {
                return Some(seg);
            }
            self.intent.repaired();
        }
        if self.intent.pushes() {
            if let Some(seg) = self.next_new(now, false) {
                return Some(seg);
            }
            let falls_back = self.intent.pushed();
            self.after_push(now);
            if falls_back && self.snd_nxt <= self.high_seq {
                return self.end_frto(now);
            }
            if self.config.loss.next_seg_rules && self.ca_state == CaState::Recovery && !self.has_new_data() {
                return self.next_seg_beyond(now);
            }
        }
        None
    }

    /// End F-RTO for lack of new data, and send the lost segments instead.
    #[cold]
    fn end_frto(&mut self, now: Time) -> Option<Leaving> {
        self.frto = false;
        self.intent.set(Next::Lost);
        let lost = self.next_lost(now);
        if lost.is_none() {
            self.intent.repaired();
        }
        lost
    }

    /// The head is sent again because its timer expired. The timer is re-armed without the pacing delay (Linux
    /// `tcp_retransmit_timer`).
    pub(super) fn retransmit_expired(&mut self, now: Time, n: u64) -> Leaving {
        self.undo.resent(self.ts(now));
        self.next_seg.resent(n);
        let seg = self.resend(now, n, true);
        self.tell_rule(1);
        seg
    }

    pub(super) fn retransmit(&mut self, now: Time, n: u64) -> Leaving {
        let is_head = n == self.board.first;
        let seg = self.retransmit_expired(now, n);
        if is_head && !self.timer.waits_for(TimerKind::Reorder) {
            let rto = self.clamp_rto(now, self.rtt.rto()) + self.pacing_delay(now);
            self.timer.arm(TimerKind::Rto, now, rto);
        }
        seg
    }

    pub(super) fn resend(&mut self, now: Time, n: u64, counts: bool) -> Leaving {
        let clock = self.clock(now);
        if self.board.pipe() == 0 {
            self.start_anew(now);
        }
        if counts && self.config.loss.detection == Detection::Rack && self.board.get(n).is(RETRANS) {
            self.board.leak();
        }
        let noted = match self.config.loss.detection {
            Detection::Fack => self.board.next,
            _ => self.delivered,
        };
        self.board.retransmitted(n, clock, noted as u32, counts);
        self.stamp(clock, n, true);
        self.stats.retransmissions += 1;
        self.usage.data_sent(now);
        let s = *self.board.get(n);
        let (start, len) = (s.start(), s.space() - s.is(FIN) as u32);
        if let Some(queue) = &mut self.queue {
            queue.left_again(now, start, s.end);
        }
        self.count(now, start, len, 1);
        let seg = self.segment(n, start, len, s.is(FIN), s.rexmit);
        self.trace.sent(1);
        self.trace.sent_again();
        if self.trace.is_on() {
            let event = if counts { Event::Rtx } else { Event::Tlp };
            self.record(now, event, s.start(), s.space(), n);
        }
        seg
    }

    /// Send new data if cwnd, the receiver's window and Nagle's rule (in Minshall's form) allow it. `probe`: send one segment beyond cwnd.
    #[inline(always)]
    pub(super) fn next_new(&mut self, now: Time, probe: bool) -> Option<Leaving> {
        let available = self.stream.from(self.snd_nxt);
        let fin_only = available == 0 && self.stream.fin_due();
        if available == 0 && !fin_only {
            return None;
        }
        let outstanding = self.board.packets_out();
        if outstanding == 0 {
            self.restart_after_idle(now);
        }
        if self.mtu_search.is_some() && !probe && !self.continues() {
            match self.try_mtu_probe(now) {
                Attempt::None => {}
                Attempt::Waits => return None,
                Attempt::Leaves(len) => return Some(self.send_new(now, len, false)),
            }
        }
        if self.pacing_holds(now, self.snd_nxt) {
            return None;
        }
        let in_flight = if self.config.loss.limited_transmit || self.ca_state != CaState::Disorder {
            self.board.pipe()
        } else {
            outstanding
        };
        if in_flight >= self.window.cwnd && !probe && !(self.stream.fin_due() && self.fin_leaves(available)) {
            return None;
        }
        let cap = self.config.switches.first_burst_cap;
        if cap > 0 && self.snd_una == 1 && self.board.next >= cap as u64 && !probe {
            return None;
        }
        let len = match &self.queue {
            None => {
                let len = self.next_alone(available, outstanding, probe)?;
                if self.patience.device != Takes::All && !self.device_takes(now, len) {
                    return None;
                }
                len
            }
            Some(_) => self.next_of_packet(now, probe)?,
        };
        let fin = self.stream.fin_due() && len as u64 == available;
        Some(self.send_new(now, len, fin))
    }

    /// Length of the next segment of new data, if it may be sent now; `available`: unsent bytes. A `probe` is not held back by Nagle's rule.
    #[inline]
    fn next_alone(&self, available: u64, outstanding: u32, probe: bool) -> Option<u32> {
        let room = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let mut len = available.min(self.smss as u64);
        if len > room {
            if outstanding > 0 || room == 0 {
                return None;
            }
            len = room; // a window smaller than one segment is filled; Linux waits for its probe timer
        }
        let len = len as u32;
        (len == self.smss || probe || self.stream.is_closed() || !self.waits_for_more(outstanding))
            .then_some(len)
    }

    /// Whether new data may be sent: cwnd, the receiver's window and Nagle's rule allow it (Linux `tcp_may_send_now`).
    pub(super) fn may_send_now(&self) -> bool {
        let available = self.stream.from(self.snd_nxt);
        available > 0
            && self.board.pipe() < self.window.cwnd
            && self.next_alone(available, self.board.packets_out(), false).is_some()
    }

    /// Whether the next segment, with the pending FIN and `available` bytes, ignores the congestion window.
    #[cold]
    fn fin_leaves(&self, available: u64) -> bool {
        let with_data = match self.config.switches.fin_ignores_cwnd {
            FinRule::Waits => return false,
            FinRule::AloneLeaves => 0,
            FinRule::WithDataLeaves => self.smss as u64,
        };
        available <= with_data
    }

    /// Whether a small segment has to wait for an ACK.
    #[inline]
    pub(super) fn waits_for_more(&self, outstanding: u32) -> bool {
        self.stream.small_waits(outstanding > 0, self.snd_una)
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time, len: u32, fin: bool) -> Leaving {
        let (start, n, clock) = (self.snd_nxt, self.board.next, self.clock(now));
        let end = start + len as u64 + fin as u64;
        if self.board.pipe() == 0 {
            self.start_anew(now);
        }
        self.stream.sent(end, len < self.smss && len > 0, fin);
        self.board.push(end, len + fin as u32, fin, clock, self.delivered as u32);
        self.leave(now, clock, 1, len, fin);
        let mut seg = self.segment(n, start, len, fin, 0);
        if self.ecn.cwr_due && len > 0 {
            self.set_cwr_due(false);
            seg.flags |= Flags::CWR;
        }
        if self.trace.is_on() {
            self.record(now, Event::Send, start, len + fin as u32, n);
        }
        seg
    }

    /// Record the transmission of segments of new data that are already on the scoreboard, each of `len`
    /// bytes, the last one with a FIN if `fin`. Used for single segments and for trains.
    #[inline(always)]
    pub(super) fn leave(&mut self, now: Time, clock: Time, segments: u32, len: u32, fin: bool) {
        let start = self.snd_nxt;
        self.snd_nxt += len as u64 * segments as u64 + fin as u64;
        self.stamp(clock, self.board.next - segments as u64, false);
        self.count(now, start, len, segments);
        if self.board.packets_out() == segments || self.gives_up_probe() {
            self.rearm_rto(now);
        }
        self.tell_rule(segments);
        self.note_new_data(now, self.board.pipe() + 1 - segments, segments);
    }

    /// Count segments of `len` bytes, the first at offset `start`, in the statistics and on the pacing clock. A paced train is a single segment.
    #[inline(always)]
    pub(super) fn count(&mut self, now: Time, start: u64, len: u32, segments: u32) {
        self.stats.data_segments_sent += if len > 0 { segments as u64 } else { 0 };
        if let Some(pacer) = &mut self.pacer {
            let bytes = self.queue.as_ref().map_or(len, |q| q.brings(start, len));
            let segments = self.stats.data_segments_sent + (bytes.saturating_sub(1) / self.smss) as u64;
            pacer.sent(now, bytes, segments);
        }
    }

    /// Whether the RTO replaces an armed probe when new data is sent, because `after_push` arms no probe in this state.
    #[inline]
    pub(super) fn gives_up_probe(&self) -> bool {
        !matches!(self.ca_state, CaState::Open | CaState::Cwr) && self.timer.waits_for(TimerKind::Tlp)
    }

    /// Notify the recovery rule of segments sent in Recovery or CWR.
    #[inline]
    pub(super) fn tell_rule(&mut self, segments: u32) {
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            self.rule.on_sent(segments);
        }
    }

    /// Record that segments of new data have been sent. `pipe`: segments in flight with the first of them.
    #[inline(always)]
    pub(super) fn note_new_data(&mut self, now: Time, pipe: u32, segments: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.sent(pipe, self.window.cwnd);
        }
        self.intent.note_sent();
        self.usage.data_sent(now);
        self.trace.sent(segments);
    }

    #[inline(always)]
    pub(super) fn segment(&mut self, n: u64, start: u64, len: u32, fin: bool, rexmit: u8) -> Leaving {
        let mut flags = Flags::ACK;
        let end = start + len as u64;
        let pushes = match &mut self.queue {
            None if rexmit > 0 || len == 0 => self.pushes_again(end),
            None => self.pushes_new(end),
            Some(queue) => {
                queue.segment_end = end;
                len > 0 && queue.pushes(end)
            }
        };
        if pushes {
            flags |= Flags::PSH;
        }
        if fin {
            flags |= Flags::FIN;
        }
        let seg_no = if len > 0 { (n + 1) as u32 } else { 0 };
        Leaving { seq: start, len, seg_no, rexmit, flags }
    }

    /// Whether a new segment that ends at `end` carries PSH: it ends the written data, or a write call.
    #[inline]
    pub(super) fn pushes_new(&mut self, end: u64) -> bool {
        match &mut self.buffer {
            None => end == self.stream.end(),
            Some(buffer) => buffer.pushes(end),
        }
    }

    /// Whether a segment that ends at `end` carried PSH when it was first sent.
    #[inline]
    fn pushes_again(&self, end: u64) -> bool {
        match &self.buffer {
            None => end == self.stream.end(),
            Some(buffer) => buffer.pushed_at(end),
        }
    }
}
