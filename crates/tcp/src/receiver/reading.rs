//! Reads by the application: by explicit calls, or automatically on arrival, once the pending ACK has been sent. Both
//! may trigger an ACK.
//!
//! The application is a process, which runs after the kernel has processed all available packets (in Linux after the
//! softirq). If several packets arrive in one nanosecond, the memory of the first is still in use when the second is
//! processed: the window opens less, and an ACK of two full segments that would offer less than the last one is
//! deferred until the application's next read (`__tcp_ack_snd_check`), which sends one ACK for all packets. The
//! application therefore runs after all other events of that nanosecond, but only where the difference is observable:
//! if the read triggers an ACK or is measured. Otherwise it reads at once, and the memory is charged again if another
//! packet arrives in the same nanosecond.

use ackclock_core::{Segment, Span, Time};

use super::queues::{Last, Waiting};
use super::Receiver;
use crate::config::{Config, DelayedAck};

/// Habit of an application that reads slowly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadingPace {
    /// Largest number of bytes in one read.
    pub most: u64,
    /// Time from the handshake to the first read.
    pub wait: Span,
    /// Time after each read.
    pub pause: Span,
    /// Time that each byte takes, as bytes per second; `None`: no time.
    pub rate: Option<u64>,
}

/// Unit in which a socket reserves memory, bytes (Linux PAGE_SIZE).
const PAGE: u64 = 4096;

impl ReadingPace {
    /// Time from a read of `bytes` to the next read.
    pub fn after(&self, bytes: u64) -> Span {
        let by_rate = |rate: u64| Span((bytes as u128 * 1_000_000_000 / rate.max(1) as u128) as u64);
        self.pause + self.rate.map_or(Span::ZERO, by_rate)
    }
}

/// An application that reads slowly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pace: ReadingPace,
    /// Time of its next read.
    next: Time,
    /// Memory that the socket has reserved in pages and not yet used, bytes (Linux `sk_forward_alloc`).
    reserved: u64,
    /// A segment in order for which memory is reserved is taken without a look at the buffer's limit (Linux
    /// `pred_flags`).
    predicts: bool,
    /// Whether it has read the end of the stream.
    over: bool,
}

/// State of the application's reads.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    /// Whether the application reads by explicit calls.
    pub explicit: bool,
    /// Number of bytes read by explicit calls.
    pub read: u64,
    /// In-order data not read yet; `None` until there is some, or if reads are automatic.
    pub waiting: Option<Box<Waiting>>,
    /// The application runs after all packets of the same instant have been processed.
    pub waits: bool,
    /// Time at which the application runs next; NEVER if it is not waiting.
    pub turn_at: Time,
    /// Memory used by the data that it will read at that time, bytes.
    pub unread: u64,
    /// End offset of the first unread buffer.
    pub first_unread: u64,
    /// The last unread buffer.
    pub last: Last,
    /// There was no memory for an in-order packet; the next ACK offers a zero window.
    pub no_memory: bool,
    /// Read to be made once the pending ACK has been sent: arrival time of the data, and end offset of the
    /// first buffer.
    pub drains: Option<(Time, u64)>,
}

impl Reader {
    pub fn new(config: &Config) -> Reader {
        Reader {
            explicit: config.receiving.explicit_reads,
            read: 0,
            waiting: None,
            waits: config.application_waits,
            turn_at: Time::NEVER,
            unread: 0,
            first_unread: 0,
            last: Last::Alone(0),
            no_memory: false,
            drains: None,
        }
    }

    /// Memory used by in-order data not read yet, bytes.
    pub fn unread_memory(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.memory)
    }
}

impl Receiver {
    /// Read up to `bytes` bytes. Returns the number of bytes read. A read may trigger an ACK (Linux
    /// `tcp_cleanup_rbuf`).
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = bytes.min(self.received() - self.reader.read);
        self.reader.read += taken;
        let first = self.reader.waiting.as_ref().and_then(|waiting| waiting.first_end()).unwrap_or(u64::MAX);
        if let Some(waiting) = &mut self.reader.waiting {
            let before = waiting.memory;
            waiting.release(1 + self.reader.read);
            let freed = before - waiting.memory;
            if let Some(slow) = &mut waiting.slow {
                slow.reserved = (slow.reserved + freed) % PAGE; // whole pages are given back (Linux `sk_mem_reclaim`)
                slow.predicts &= self.window.told() > 0;
            }
        }
        let queued = self.received() - self.reader.read;
        // reads are measured when the first buffer has been copied (Linux `tcp_rcv_space_adjust`)
        // Differs: Linux takes the time of the last packet or ACK, not that of the read.
        let to = first.min(1 + self.reader.read);
        self.window.on_drained(now, to, 1 + self.received() - to, self.assembly.beyond(self.rcv_nxt));
        if self.window.hold(self.memory(queued), self.rcv_nxt) && taken > 0 && !self.fin_received() {
            self.ack_now();
        }
        if self.acks.mode == DelayedAck::Linux && self.acks.quickacks {
            self.acks.pingpong = false;
            self.acks.pushed |= self.acks.pending;
        }
        if self.acks.mode == DelayedAck::Linux && self.acks.pending {
            let empty = self.reader.read == self.received() && self.assembly.out_of_order.is_empty();
            let full = self.rcv_nxt - self.acks.rcv_wup > self.sizes.rcv_mss as u64;
            let pushed = self.acks.is_pushed();
            if full || (taken > 0 && pushed && empty) {
                self.acks.now = true;
            }
        }
        taken
    }

    /// Number of payload bytes read by explicit calls of the application.
    pub fn taken(&self) -> u64 {
        self.reader.read
    }

    /// Let the application read slowly from now on.
    pub(crate) fn read_slowly(&mut self, pace: ReadingPace) {
        (self.reader.explicit, self.is_plain) = (true, false);
        let slow = Slow { pace, next: Time::ZERO, reserved: 0, predicts: false, over: false };
        self.reader.waiting.get_or_insert_default().slow = Some(slow);
    }

    /// Whether a segment is taken whatever the buffer's limit is, because memory is reserved for it (Linux
    /// `tcp_rcv_established`).
    pub(super) fn has_reserved(&self, seg: &Segment) -> bool {
        let slow = self.reader.waiting.as_ref().and_then(|waiting| waiting.slow);
        let enough =
            slow.is_some_and(|slow| slow.predicts && self.window.packet_memory(seg.len) <= slow.reserved);
        enough && seg.seq == self.rcv_nxt && seg.len > 0 && self.assembly.out_of_order.is_empty()
    }

    /// Reserve memory for a packet in whole pages, and use `used` bytes of it (Linux `sk_rmem_schedule`,
    /// `sk_mem_charge`).
    pub(super) fn reserve(&mut self, packet: u64, used: u64) {
        if let Some(slow) = self.slow() {
            slow.reserved += packet.saturating_sub(slow.reserved).next_multiple_of(PAGE);
            slow.reserved = slow.reserved.saturating_sub(used);
        }
    }

    /// Decide whether the next segments may be taken without a look at the buffer's limit, after one that was looked at
    /// (Linux `tcp_fast_path_check`).
    pub(super) fn predict_memory(&mut self, taken: u64) {
        let predicts =
            self.assembly.out_of_order.is_empty() && self.window.told() > 0 && !self.window.is_full(taken);
        if let Some(slow) = self.slow() {
            slow.predicts |= predicts;
        }
    }

    /// Look at the limit of the buffer for the next segment: one was out of order, or the window is closed.
    pub(super) fn doubt_memory(&mut self) {
        if let Some(slow) = self.slow() {
            slow.predicts = false;
        }
    }

    fn slow(&mut self) -> Option<&mut Slow> {
        self.reader.waiting.as_mut()?.slow.as_mut()
    }

    /// Start the wait for the first read.
    pub(super) fn begin_reading(&mut self, now: Time) {
        if let Some(slow) = self.slow() {
            slow.next = now + slow.pace.wait;
        }
    }

    /// Wake an application that waits in a read for data or for the end of the stream.
    pub(super) fn wake_reader(&mut self, now: Time) {
        if !self.awaits_turn() {
            self.reader.turn_at = self.slow().map_or(Time::NEVER, |slow| slow.next.max(now));
        }
    }

    /// Whether a slow application has yet to read what has arrived.
    pub(crate) fn has_to_read(&self) -> bool {
        let slow = self.reader.waiting.as_ref().and_then(|waiting| waiting.slow);
        slow.is_some_and(|slow| !slow.over)
    }

    /// Let a slow application read once.
    #[cold]
    fn read_in_turn(&mut self, now: Time, pace: ReadingPace) {
        let taken = self.read(now, pace.most);
        let next = now + pace.after(taken);
        let (empty, ended) = (self.reader.read == self.received(), self.fin_received());
        if !empty || (ended && taken > 0) {
            self.reader.turn_at = next;
        }
        if let Some(slow) = self.slow() {
            (slow.next, slow.over) = (next, ended && taken == 0);
        }
    }

    /// Let the application read data up to `reads`, once the pending ACK, if any, has been sent.
    #[inline(always)]
    pub(super) fn read_at_once<const PLAIN: bool>(&mut self, now: Time, reads: Option<u64>) {
        if let Some(end) = reads {
            match self.acks.now {
                true if !PLAIN && self.reader.drains.is_some() => {} // an earlier buffer of this instant is read first
                true => self.reader.drains = Some((now, end)),
                false => self.read_up_to::<PLAIN>(now, end),
            }
        }
    }

    /// Let the application read everything once the pending ACK has been sent. A large increase of the
    /// window triggers an ACK, and so do two full segments or a pushed one (Linux `tcp_cleanup_rbuf`).
    #[inline]
    pub(super) fn drain(&mut self) {
        if let Some((now, end)) = self.reader.drains.take() {
            self.read_late(now, end);
        }
    }

    /// Let the application read data of earlier instants, or all data if it does not have to wait for the kernel.
    #[inline]
    pub(super) fn drain_before(&mut self, now: Time) {
        if self.reader.drains.is_some_and(|(at, _)| at < now || !self.reader.waits) {
            self.drain();
        }
    }

    /// Out-of-line form of [`Receiver::read_up_to`].
    #[inline(never)]
    fn read_late(&mut self, now: Time, end: u64) {
        self.read_up_to::<false>(now, end);
    }

    /// Let the application read everything, starting with the buffer that ends at `end`. If the application
    /// runs later, only the effects visible to the kernel are postponed: the measurement of data per RTT, and
    /// the ACK. The memory is charged again if more data arrives before that.
    #[inline(always)]
    pub(super) fn read_up_to<const PLAIN: bool>(&mut self, now: Time, end: u64) {
        let gap = !PLAIN && !self.assembly.out_of_order.is_empty();
        let mut due = false;
        if self.is_linux::<PLAIN>() {
            if self.window.is_measure_due(now) && self.measure_read(now, end) {
                return;
            }
            if !PLAIN && self.acks.quickacks {
                self.acks.pingpong = false;
                self.acks.pushed |= self.acks.pending;
            }
            let pushed = self.acks.is_pushed();
            let full = self.rcv_nxt - self.acks.rcv_wup > self.sizes.rcv_mss as u64;
            due = self.acks.pending && (full || (pushed && !gap));
        }
        let held = if PLAIN { 0 } else { self.assembly.gathered };
        if self.window.hold(held, self.rcv_nxt) || due {
            self.ack_read(now);
        }
    }

    /// Measure the bytes read in an RTT (Linux `tcp_rcv_space_adjust`), starting with the buffer that arrived,
    /// or closed a gap, first in this instant. Returns true if the measurement is postponed until the
    /// application runs.
    #[inline(never)]
    fn measure_read(&mut self, now: Time, end: u64) -> bool {
        if self.reader.waits {
            self.reader.turn_at = now;
            return true;
        }
        self.window.on_drained(now, end, self.rcv_nxt - end, self.assembly.beyond(self.rcv_nxt));
        false
    }

    /// Schedule the application's read if its measurement has become due. A packet may shorten the
    /// measured RTT while earlier data of this instant is unread, even if it brings no new data.
    #[inline]
    pub(super) fn measure_later(&mut self, now: Time) {
        if self.reader.waits && self.reader.unread > 0 && self.window.is_measure_due(now) {
            self.reader.turn_at = now;
        }
    }

    /// Send the ACK triggered by a read, now or when the application runs.
    #[inline(never)]
    fn ack_read(&mut self, now: Time) {
        match self.reader.waits {
            true => self.reader.turn_at = now,
            false => self.ack_now(),
        }
    }

    /// Whether the application has a scheduled read.
    pub fn awaits_turn(&self) -> bool {
        self.reader.turn_at != Time::NEVER
    }

    /// Time of a slow application's next read; NEVER if it waits for data.
    pub fn turn(&self) -> Time {
        if self.has_to_read() {
            self.reader.turn_at
        } else {
            Time::NEVER
        }
    }

    /// Run the application, which reads, after all packets of this instant have been processed.
    #[cold]
    pub(super) fn on_turn(&mut self, now: Time) {
        self.reader.turn_at = Time::NEVER;
        if let Some(pace) = self.slow().map(|slow| slow.pace) {
            return self.read_in_turn(now, pace);
        }
        self.reader.drains = None;
        let waits = std::mem::replace(&mut self.reader.waits, false);
        self.reader.unread = 0;
        self.read_late(now, self.reader.first_unread);
        self.reader.waits = waits;
    }

    /// Whether in-order data is waiting for the application.
    pub(super) fn keeps_waiting(&self) -> bool {
        match self.reader.explicit {
            true => self.reader.read < self.received(),
            false => self.reader.unread > 0,
        }
    }

    /// Number of in-order bytes already read by the application or about to be read at once.
    pub(crate) fn taken_at_once(&self) -> u64 {
        if self.reader.explicit {
            self.reader.read
        } else {
            self.received()
        }
    }
}
