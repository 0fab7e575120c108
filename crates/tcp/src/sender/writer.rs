//! Write calls into the send queue. Data fills buffers, full ones are pushed on the way, and the rest waits
//! if the send buffer is full (Linux `tcp_sendmsg_locked`, `sk_stream_wait_memory`, `tcp_sndbuf_expand`). The
//! writer sleeps until a third of the send buffer is free, then continues by itself, as a blocking write
//! does. A stream with more data than one call makes several calls in sequence.
//!
//! Memory is counted as in Linux: payload, plus `buffer_overhead` for each buffer or packet.

use ackclock_core::{Span, Time};

use super::chrono::{Chrono, Limit};
use super::round::{Round, Sent};
use super::Sender;
use crate::config::{Buffers, SendLimit};
use crate::ticks::Ticks;

/// Bytes of headers and `skb_shared_info` in the head of a buffer (MAX_TCP_HEADER, SKB_DATA_ALIGN), in a kernel without WLAN and tunnels.
const HEAD: u64 = 192 + 320;
/// Write size, bytes, above which the application is assumed to write endlessly. One buffer then
/// represents everything that it will write.
const ENDLESS: u64 = 1 << 40;
/// Linux TCP_INIT_CWND: minimum number of segments for which the send buffer is sized.
pub(super) const LEAST_SEGMENTS: u32 = 10;

/// Current write call.
#[derive(Clone, Copy, Debug)]
struct Call {
    left: u64,
    /// Bytes left for later calls.
    rest: u64,
    /// The application has entered the call; otherwise it is about to.
    begun: bool,
    more: bool,
    record: bool,
    copied: bool,
    asleep: bool,
    /// The application closes the connection after the last write.
    closes: bool,
}

/// Send buffer and its writer.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    call: Option<Call>,
    limit: Option<SendLimit>,
    /// TCP_NOTSENT_LOWAT: limit on unsent bytes.
    pub notsent_lowat: u64,
    /// Maximum size of one call, bytes.
    call_bytes: u64,
    /// Linux SOCK_NOSPACE: the writer has found the buffer full.
    nospace: bool,
    /// Number of times a writer has been notified of free space after finding none.
    wakes: u64,
    /// All data has been written: the application closes the connection once everything that can be sent has been sent.
    closes: bool,
    /// An ACK may have freed memory.
    check: bool,
    /// The writer is suspended while the kernel is still processing received packets.
    pub suspended: bool,
    pub chrono: Chrono,
}

impl Writer {
    pub fn new(buffers: &Buffers, ticks: Ticks) -> Writer {
        Writer {
            call: None,
            limit: buffers.limit,
            call_bytes: buffers.call_bytes,
            notsent_lowat: buffers.notsent_lowat,
            nospace: false,
            wakes: 0,
            closes: false,
            check: false,
            suspended: false,
            chrono: Chrono::new(ticks),
        }
    }

    /// Whether the writer has data to write and is not suspended.
    pub fn is_due(&self) -> bool {
        self.call.is_some() && !self.suspended
    }

    /// Return the call after `done`, if the application has more to write.
    fn next_call(&self, done: Call) -> Option<Call> {
        let left = done.rest.min(self.call_bytes);
        (left > 0).then_some(Call { left, rest: done.rest - left, begun: false, copied: false, ..done })
    }

    /// Whether the writer found the buffer full.
    pub fn lacks_room(&self) -> bool {
        self.nospace || self.call.is_some_and(|call| call.asleep)
    }
}

impl Sender {
    /// Start a write of `bytes`. `more`: further data will follow (MSG_MORE); `record`: the last byte ends a record (MSG_EOR).
    pub(super) fn begin_writing(&mut self, now: Time, bytes: u64, more: bool, record: bool) {
        let nothing = self.unsent() == 0 && self.board.packets_out() == 0;
        let Some(queue) = &mut self.queue else { return };
        if nothing && queue.open {
            queue.writer.chrono.start(now, Limit::Busy); // before the end of the handshake, the writer waits for it
        }
        if bytes > ENDLESS && queue.writer.limit.is_none() {
            self.stream.append(bytes);
            queue.fill_endlessly(self.stream.end());
            self.intent.push();
            return;
        }
        let most = queue.writer.call_bytes;
        let (left, rest, copied) = match &mut queue.writer.call {
            Some(call) if most == u64::MAX => (call.left.saturating_add(bytes), 0, false), // a writer that does not block
            Some(call) => (call.left, call.rest.saturating_add(bytes), call.copied),
            None => (bytes.min(most), bytes - bytes.min(most), false),
        };
        let asleep = queue.writer.call.is_some_and(|c| c.asleep);
        let begun = queue.writer.call.is_none_or(|c| c.begun);
        queue.writer.call = Some(Call { left, rest, begun, more, record, copied, asleep, closes: false });
        match queue.open {
            true => _ = self.write_on(now),
            false => self.intent.push(),
        }
    }

    /// Bytes of the current write not yet accepted by the buffer.
    pub fn unwritten(&self) -> u64 {
        self.queue.as_ref().and_then(|q| q.writer.call).map_or(0, |c| c.left + c.rest)
    }

    /// Return from the call without writing the rest (a non-blocking socket, or a writer told to stop).
    pub fn stop_waiting(&mut self) {
        if let Some(queue) = &mut self.queue {
            let returned = queue.writer.call.take();
            queue.writer.closes |= returned.is_some_and(|call| call.closes);
        }
    }

    /// Whether written data waits in a send buffer of limited size.
    pub(super) fn buffers_writes(&self) -> bool {
        self.buffer.is_some() || self.queue.as_ref().is_some_and(|queue| queue.writer.limit.is_some())
    }

    /// Push data written with MSG_MORE (Linux `tcp_push` without new data).
    pub fn push_written(&mut self) {
        let unsent = self.unsent() > 0;
        if let Some(queue) = self.queue.as_mut().filter(|_| unsent) {
            queue.mark_push();
            queue.round = Round::Plain;
            self.intent.push();
        }
    }

    /// Set SO_SNDBUF, which fixes the buffer size.
    pub fn set_send_buffer(&mut self, limit: SendLimit) {
        if let Some(queue) = &mut self.queue {
            queue.writer.limit = Some(limit);
            queue.writer.check = true;
            self.intent.push();
        }
    }

    /// Current send buffer limit, bytes; `None` if unlimited.
    pub fn send_buffer(&self) -> Option<u64> {
        self.queue.as_ref().and_then(|q| q.writer.limit).map(|l| l.bytes)
    }

    /// Set TCP_NOTSENT_LOWAT.
    pub fn set_notsent_lowat(&mut self, bytes: u64) {
        if let Some(queue) = &mut self.queue {
            queue.writer.notsent_lowat = bytes;
        }
    }

    /// Send a FIN after the remaining data of the current call.
    pub(super) fn close_when_written(&mut self) {
        match self.queue.as_mut().and_then(|q| q.writer.call.as_mut()) {
            Some(call) => call.closes = true,
            None => self.stream.close(),
        }
        self.intent.push();
    }

    /// Bytes written but not yet sent.
    pub fn unsent(&self) -> u64 {
        self.stream.end() - (self.snd_nxt - self.stream.fin_sent() as u64)
    }

    /// Let the writer continue once everything that can be sent has been sent. Returns true if there is data to push.
    #[cold]
    pub(super) fn write_on(&mut self, now: Time) -> bool {
        if self.queue.as_mut().is_some_and(|q| std::mem::take(&mut q.writer.closes)) {
            self.stream.close();
            self.intent.push();
            return true;
        }
        self.wake_writer(now);
        if self.queue.as_ref().is_some_and(|q| q.writer.suspended) {
            return false;
        }
        if self.queue.as_ref().and_then(|q| q.writer.call).is_some_and(|c| !c.begun) {
            self.check_app_limited();
        }
        let sent = Sent { una: self.snd_una, nxt: self.snd_nxt, smss: self.smss as u64 };
        loop {
            let (free, at) = (self.memory_free(), self.stream.end());
            let Some(queue) = &mut self.queue else { return false };
            let Some(call) = queue.writer.call.as_mut().filter(|c| !c.asleep) else { return false };
            let mut call = *call;
            call.begun = true;
            let filled = queue.fill(at, call.left, sent, free, !call.copied);
            let Some(filled) = filled else {
                call.asleep = true;
                queue.writer.nospace = true;
                let pushes = call.copied && at > sent.nxt;
                if pushes {
                    queue.mark_push();
                    queue.round = Round::All;
                    self.intent.push();
                }
                queue.writer.call = Some(call);
                return pushes;
            };
            queue.writer.chrono.start(now, Limit::Busy); // no change if it is running
            call.copied = true;
            call.left -= filled.bytes;
            self.stream.append(filled.bytes);
            if filled.opened {
                self.stream.end_nagle_push();
            }
            let forced = queue.forces_push(self.stream.end());
            if call.left == 0 {
                if !call.more || forced {
                    queue.mark_push();
                }
                queue.end_record(call.record);
                queue.writer.call = queue.writer.next_call(call);
                queue.round = if call.more { Round::Corked } else { Round::Plain };
                queue.writer.closes |= call.closes && call.rest == 0;
                self.intent.push();
                return true;
            }
            queue.writer.call = Some(call);
            if filled.full && forced {
                queue.mark_push();
                queue.round = Round::All;
                self.intent.push();
                return true;
            }
            if filled.full && queue.is_send_head(self.snd_nxt) {
                queue.round = Round::One;
                self.intent.push();
                return true;
            }
        }
    }

    /// Memory used by the send queue, bytes (Linux `sk_wmem_queued`).
    fn memory_queued(&self) -> u64 {
        let buffers = self.queue.as_ref().map_or(0, |q| {
            q.held(self.snd_una, self.snd_nxt) - self.board.shared(|start, end| q.sent_between(start, end))
        });
        self.stream.from(self.snd_una) + self.config.sending.buffer_overhead as u64 * buffers
        // the FIN takes no byte
    }

    fn memory_free(&self) -> bool {
        let Some(queue) = &self.queue else { return true };
        let w = &queue.writer;
        w.limit.is_none_or(|l| self.memory_queued() < l.bytes) && self.unsent() < w.notsent_lowat
    }

    /// Number of times a writer has been notified of free space after finding none (the edges of EPOLLET).
    pub fn wakes(&self) -> u64 {
        self.queue.as_ref().map_or(0, |q| q.writer.wakes)
    }

    /// Whether a third of the send buffer is free (Linux `sk_stream_wspace` against `sk_stream_min_wspace`).
    pub fn has_room(&self) -> bool {
        let queued = self.memory_queued();
        let limit = self.queue.as_ref().and_then(|q| q.writer.limit).map_or(u64::MAX, |l| l.bytes);
        limit.saturating_sub(queued) >= queued / 2
    }

    /// Check for free space after a packet of new data was sent. A writer that finds space now wakes, even if
    /// the overhead of the following packets will use it up (Linux `tcp_event_new_data_sent`).
    pub(super) fn check_space(&mut self, now: Time) {
        let whole = !self.continues();
        if let Some(queue) = self.queue.as_mut().filter(|q| whole && q.writer.nospace) {
            queue.writer.check = true;
            self.wake_writer(now);
        }
    }

    /// Wake the writer if there is space (Linux `tcp_check_space`).
    fn wake_writer(&mut self, now: Time) {
        let Some(queue) = &mut self.queue else { return };
        if !std::mem::take(&mut queue.writer.check) || !queue.writer.nospace {
            return;
        }
        let grows = queue.writer.limit.is_some_and(|l| l.most > 0);
        if grows && self.board.pipe() < self.window.cwnd {
            self.expand_buffer();
            self.usage.window_changed(now);
        }
        let writable = self.has_room() && self.memory_free();
        let empty = self.snd_una == self.stream.end();
        let Some(queue) = self.queue.as_mut().filter(|_| writable) else { return };
        queue.writer.nospace = false;
        queue.writer.wakes += 1;
        queue.writer.chrono.stop(now, Limit::SendBuffer, empty);
        if queue.writer.call.as_mut().is_some_and(|call| std::mem::take(&mut call.asleep)) {
            self.wait_for_turn(now);
        }
    }

    /// Raise the limit to twice the memory of cwnd, three times for BBR, with one segment per buffer whose
    /// size is a power of two (Linux `tcp_sndbuf_expand`).
    pub(super) fn expand_buffer(&mut self) {
        let segments = LEAST_SEGMENTS.max(self.window.cwnd).max(self.dupthresh.degree() + 1) as u64;
        let wanted = self.buffer_factor() * segments * per_segment(self.smss);
        if let Some(limit) = self.queue.as_mut().and_then(|q| q.writer.limit.as_mut()) {
            limit.bytes = limit.bytes.max(wanted.min(limit.most)); // no change for a fixed size
        }
    }

    /// Open the queue at the end of the handshake, when the peer offers `window`. From now on, data written earlier waits to be sent.
    pub(super) fn open_queue(&mut self, now: Time, window: u64) {
        let waits = self.unsent() > 0;
        let Some(queue) = &mut self.queue else { return };
        queue.offered_first(window);
        if waits {
            queue.writer.chrono.start(now, Limit::Busy);
        }
    }

    /// Record at the end of a round of sending whether the receiver's window limited it (Linux end of
    /// `tcp_write_xmit`).
    pub(super) fn note_receiver(&mut self, now: Time) {
        let empty = self.unsent() == 0 && self.board.packets_out() == 0;
        let Some(queue) = &mut self.queue else { return };
        let by_receiver = std::mem::take(&mut queue.rwnd_limited);
        let chrono = &mut queue.writer.chrono;
        match by_receiver {
            true => chrono.start(now, Limit::Receiver),
            false => chrono.stop(now, Limit::Receiver, empty),
        }
    }

    /// Record that the send buffer limits the sender: a segment was sent, cwnd is not full, no data is queued, and
    /// the writer found no space (Linux `tcp_cwnd_validate`).
    pub(super) fn note_starved(&mut self, now: Time) {
        let (established, unsent) = (!self.stream.is_closed(), self.unsent());
        let Some(queue) = &mut self.queue else { return };
        if unsent == 0 && queue.writer.nospace && established {
            queue.writer.chrono.start(now, Limit::SendBuffer);
        }
    }

    /// Total busy time, and the parts of it limited by the receiver and by the send buffer.
    pub fn limits(&self, now: Time) -> (Span, Span, Span) {
        self.queue.as_ref().map_or_else(Default::default, |q| q.writer.chrono.spent(now))
    }

    /// Record that an ACK may have freed memory, as SACKs also can (Linux `tcp_data_snd_check`). `acked`: it acknowledged data.
    pub(super) fn note_freed(&mut self, now: Time, acked: bool) {
        let empty = acked && self.board.packets_out() == 0 && self.unsent() == 0;
        let Some(queue) = &mut self.queue else { return };
        queue.writer.check = true;
        if empty {
            queue.writer.chrono.stop(now, Limit::Busy, true);
        }
    }
}

/// Memory assumed for one segment, alone in a buffer whose size is a power of two, bytes.
pub(super) fn per_segment(smss: u32) -> u64 {
    (smss as u64 + 12 + HEAD).next_power_of_two() + 256
}
