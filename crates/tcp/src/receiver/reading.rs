//! The application takes what came in order: by calls, or at once, after the ACK if one is due. Either may send an ACK.

use ackclock_core::Time;

use super::Receiver;
use crate::config::DelayedAck;

impl Receiver {
    /// The application takes up to `bytes`; how many it got. A read may send an ACK (Linux `tcp_cleanup_rbuf`).
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = bytes.min(self.received() - self.read);
        self.read += taken;
        if let Some(waiting) = &mut self.waiting {
            waiting.release(1 + self.read);
        }
        let queued = self.received() - self.read;
        self.window.on_drained(now, 1 + self.read, queued, self.beyond());
        if self.window.hold(self.memory(queued), self.rcv_nxt) && taken > 0 && !self.fin_received() {
            self.ack_now();
        }
        if self.mode == DelayedAck::Linux && self.pending {
            let empty = self.read == self.received() && self.out_of_order.is_empty();
            let full = self.rcv_nxt - self.rcv_wup > self.rcv_mss as u64;
            let pushed = self.pushed_twice || (self.pushed && !self.pingpong);
            if full || (taken > 0 && pushed && empty) {
                self.now = true;
            }
        }
        taken
    }

    /// Payload bytes taken by the application.
    pub fn taken(&self) -> u64 {
        self.read
    }

    /// The application reads everything at once. A window that it opens far is worth an ACK, and so are two full segments
    /// or a pushed one (Linux `tcp_cleanup_rbuf`).
    #[inline]
    pub(super) fn drain(&mut self) {
        if let Some((now, end)) = self.drains.take() {
            self.read_late(now, end);
        }
    }

    /// The ACK has left.
    #[inline(never)]
    fn read_late(&mut self, now: Time, end: u64) {
        self.read_up_to::<false>(now, end);
    }

    #[inline(always)]
    pub(super) fn read_up_to<const PLAIN: bool>(&mut self, now: Time, end: u64) {
        let mut due = false;
        let gap = !PLAIN && !self.out_of_order.is_empty();
        if self.is_linux::<PLAIN>() {
            // buffer by buffer: what closed the gap first (Linux `tcp_rcv_space_adjust`)
            let beyond = if gap { self.beyond() } else { 0 };
            self.window.on_drained(now, end, self.rcv_nxt - end, beyond);
            let pushed = self.pushed_twice || (self.pushed && !self.pingpong);
            let full = self.rcv_nxt - self.rcv_wup > self.rcv_mss as u64;
            due = self.pending && (full || (pushed && !gap));
        }
        let held = if PLAIN { 0 } else { self.memory(0) };
        if self.window.hold(held, self.rcv_nxt) || due {
            self.ack_now();
        }
    }

    /// Bytes in order that the application has, or will have before anything else happens.
    pub(super) fn taken_at_once(&self) -> u64 {
        if self.explicit_reads {
            self.read
        } else {
            self.received()
        }
    }
}
