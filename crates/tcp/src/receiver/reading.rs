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

use ackclock_core::Time;

use super::queues::{Last, Waiting};
use super::Receiver;
use crate::config::{Config, DelayedAck};

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
                slow.free(freed, self.window.told() > 0);
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
        if let Some(pace) = self.reading_pace() {
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
