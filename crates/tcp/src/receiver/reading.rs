//! The application takes what came in order: by calls, or at once, after the ACK if one is due. Either may send an ACK.
//!
//! A reader is a process, which runs when the kernel has taken in all packets that are there (in Linux behind the softirq). Of packets
//! that arrive in one nanosecond the second finds the memory of the first taken: the window opens less, an ACK of two full segments
//! would offer less than the last one did and is left to the reader (`__tcp_ack_snd_check`), and the reader sends one for all of them.
//! So the reader has a turn behind everything else of that nanosecond, but only where it would be noticed: where reading calls for an
//! ACK, or is measured. Else it reads at once, and what it has read is put back if another packet comes in the same nanosecond.

use ackclock_core::Time;

use super::queues::Waiting;
use super::Receiver;
use crate::config::{Config, DelayedAck};

/// Data that the application has read, and data that it has yet to read.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    /// Whether the application reads by explicit calls.
    pub explicit: bool,
    /// End of the data read by explicit calls.
    pub read: u64,
    /// In-order data not read yet, if reads are explicit.
    pub waiting: Option<Box<Waiting>>,
    /// Whether the application runs only after all packets of an instant.
    pub waits: bool,
    /// Time of its next turn, or never.
    pub turn_at: Time,
    /// Memory of the data that it reads in that turn.
    pub unread: u64,
    /// End of the first unread buffer.
    pub first_unread: u64,
    /// An in-order packet found no receive memory; the next ACK reports it.
    pub no_memory: bool,
    /// The application reads the data in order, after the ACK if one is due: since when, and the end of the
    /// first buffer.
    pub drains: Option<(Time, u64)>,
}

impl Reader {
    pub fn new(config: &Config) -> Reader {
        Reader {
            explicit: config.explicit_reads,
            read: 0,
            waiting: None,
            waits: config.application_waits,
            turn_at: Time::NEVER,
            unread: 0,
            first_unread: 0,
            no_memory: false,
            drains: None,
        }
    }

    /// Memory of data that waits for a read.
    pub fn unread_memory(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.memory)
    }
}

impl Receiver {
    /// Let the application take up to `bytes`; returns how many it got. A read may send an ACK (Linux
    /// `tcp_cleanup_rbuf`).
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = bytes.min(self.received() - self.reader.read);
        self.reader.read += taken;
        if let Some(waiting) = &mut self.reader.waiting {
            waiting.release(1 + self.reader.read);
        }
        let queued = self.received() - self.reader.read;
        self.window.on_drained(now, 1 + self.reader.read, queued, self.assembly.beyond(self.rcv_nxt));
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

    /// Payload bytes taken by the application.
    pub fn taken(&self) -> u64 {
        self.reader.read
    }

    /// The application reads, but an ACK that is due leaves first.
    #[inline(always)]
    pub(super) fn read_at_once<const PLAIN: bool>(&mut self, now: Time, reads: Option<u64>) {
        if let Some(end) = reads {
            match self.acks.now {
                true if !PLAIN && self.reader.drains.is_some() => {} // an earlier buffer of this instant comes first
                true => self.reader.drains = Some((now, end)),
                false => self.read_up_to::<PLAIN>(now, end),
            }
        }
    }

    /// Let the application read everything, after the ACK if one is due. A window that opens far is worth an
    /// ACK, and so are two full segments or a pushed one (Linux `tcp_cleanup_rbuf`).
    #[inline]
    pub(super) fn drain(&mut self) {
        if let Some((now, end)) = self.reader.drains.take() {
            self.read_late(now, end);
        }
    }

    /// Drain if the turn was before `now`: nothing else was in its way.
    #[inline]
    pub(super) fn drain_before(&mut self, now: Time) {
        if self.reader.drains.is_some_and(|(at, _)| at < now || !self.reader.waits) {
            self.drain();
        }
    }

    /// Note that the ACK has left.
    #[inline(never)]
    fn read_late(&mut self, now: Time, end: u64) {
        self.read_up_to::<false>(now, end);
    }

    /// The application reads, first the buffer that ends at `end`. If the application waits for its turn, only the effects that the
    /// kernel sees wait with it: the measured data of an RTT, and the ACK. Memory is taken again if more data arrives before the
    /// turn.
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

    /// Measure the bytes read in an RTT (Linux `tcp_rcv_space_adjust`), buffer by buffer: first the buffer that came first in this instant, or closed a
    /// gap first. True: at the application's turn.
    #[inline(never)]
    fn measure_read(&mut self, now: Time, end: u64) -> bool {
        if self.reader.waits {
            self.reader.turn_at = now;
            return true;
        }
        self.window.on_drained(now, end, self.rcv_nxt - end, self.assembly.beyond(self.rcv_nxt));
        false
    }

    /// A packet measured the RTT while earlier data of this instant still waits: with a shorter RTT the
    /// reader's measurement may be due, although this packet brings nothing to read.
    #[inline]
    pub(super) fn measure_later(&mut self, now: Time) {
        if self.reader.waits && self.reader.unread > 0 && self.window.is_measure_due(now) {
            self.reader.turn_at = now;
        }
    }

    /// The reader sends an ACK, when it has its turn.
    #[inline(never)]
    fn ack_read(&mut self, now: Time) {
        match self.reader.waits {
            true => self.reader.turn_at = now,
            false => self.ack_now(),
        }
    }

    /// Whether the application waits for its turn.
    pub fn awaits_turn(&self) -> bool {
        self.reader.turn_at != Time::NEVER
    }

    /// All packets of this instant are processed: the application reads them.
    #[cold]
    pub(super) fn on_turn(&mut self, now: Time) {
        self.reader.turn_at = Time::NEVER;
        self.reader.drains = None;
        let waits = std::mem::replace(&mut self.reader.waits, false);
        self.reader.unread = 0;
        self.read_late(now, self.reader.first_unread);
        self.reader.waits = waits;
    }

    /// Whether bytes in order wait for the application.
    pub(super) fn keeps_waiting(&self) -> bool {
        match self.reader.explicit {
            true => self.reader.read < self.received(),
            false => self.reader.unread > 0,
        }
    }

    /// Bytes in order that the application has, or will have before anything else happens.
    pub(super) fn taken_at_once(&self) -> u64 {
        if self.reader.explicit {
            self.reader.read
        } else {
            self.received()
        }
    }
}
