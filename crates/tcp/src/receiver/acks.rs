//! When an ACK leaves: RFC 1122/5681, or Linux: quick ACKs at the start, an adaptive timeout, compression of duplicate
//! ACKs after the first three.

use ackclock_core::{Segment, Span, Time};

use super::Receiver;
use crate::config::DelayedAck;

/// Linux TCP_MAX_QUICKACKS.
const MAX_QUICKACKS: u32 = 16;
/// Linux TCP_FASTRETRANS_THRESH: duplicate ACKs sent at once before compression begins.
const UNCOMPRESSED_DUPACKS: u8 = 3;
/// Linux tcp_comp_sack_nr: duplicate ACKs held back at most.
const COMPRESSED_MAX: u8 = 44;
/// Linux tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns.
const COMPRESS_DELAY: Span = Span::from_ms(1);
const COMPRESS_SLACK: Span = Span::from_us(10);
/// Linux TCP_DELACK_MAX.
const DELACK_MAX: Span = Span::from_ms(200);

impl Receiver {
    /// The application sent data: an exchange of requests and answers delays its ACKs (Linux pingpong mode).
    pub fn on_data_sent(&mut self, now: Time) {
        if self.ato > Span::ZERO && now.since(self.last_data) < self.ato && self.last_data > Time::ZERO {
            self.pingpong = true;
        }
    }

    pub(super) fn incr_quickack(&mut self) {
        let quick =
            (self.window.offered() / (2 * self.rcv_mss.max(1) as u64)).clamp(2, MAX_QUICKACKS as u64) as u32;
        self.quick = self.quick.max(quick);
    }

    pub(super) fn enter_quickack(&mut self) {
        if self.mode == DelayedAck::Linux {
            self.incr_quickack();
            self.pingpong = false;
            self.ato = self.delack_timeout;
        }
    }

    /// Linux `__tcp_ack_snd_check`, or the RFC's rules.
    pub(super) fn decide(&mut self, now: Time, seg: &Segment, srtt: Span) {
        let gap = !self.out_of_order.is_empty();
        let full_frames = self.rcv_nxt - self.rcv_wup > self.rcv_mss as u64;
        match self.mode {
            DelayedAck::Off => self.now = true,
            DelayedAck::Rfc => {
                if full_frames
                    || gap
                    || self.dsack.is_some()
                    || self.rcv_nxt - self.rcv_wup >= 2 * self.rcv_mss as u64
                {
                    self.now = true;
                } else if self.delack_at == Time::NEVER {
                    self.delack_at = now + self.delack_timeout;
                }
            }
            DelayedAck::Linux => {
                // The application reads at once; a short pushed segment is acknowledged on that read.
                let pushed = seg.len > 0
                    && seg.len < self.rcv_mss
                    && seg.flags.has(ackclock_core::Flags::PSH)
                    && !gap
                    && !self.pingpong
                    && !self.explicit_reads;
                self.pushed |= seg.len > 0 && seg.flags.has(ackclock_core::Flags::PSH);
                if full_frames || (self.quick > 0 && !self.pingpong) || pushed {
                    self.now = true;
                }
                if self.now {
                    return;
                }
                if !gap {
                    self.delay(now, srtt);
                } else {
                    self.compress(now);
                }
            }
        }
    }

    fn delay(&mut self, now: Time, srtt: Span) {
        let mut ato = self.ato;
        if ato > self.delack_timeout {
            let mut max = if self.pingpong { DELACK_MAX } else { Span::from_ms(500) };
            if srtt > Span::ZERO {
                max = max.min(srtt.max(self.delack_timeout));
            }
            ato = ato.min(max);
        }
        let at = self.ticks.expiry(now, ato.min(DELACK_MAX));
        if self.delack_at != Time::NEVER && self.delack_at <= now + ato / 4 {
            self.now = true;
            return;
        }
        self.delack_at = self.delack_at.min(at);
    }

    fn compress(&mut self, now: Time) {
        if !self.compression || !self.sack || self.compressed >= COMPRESSED_MAX {
            self.now = true;
            return;
        }
        if self.compressed_nxt != self.rcv_nxt {
            self.compressed_nxt = self.rcv_nxt;
            self.dup_acks = 0;
        }
        if self.dup_acks < UNCOMPRESSED_DUPACKS {
            self.dup_acks += 1;
            self.now = true;
            return;
        }
        self.compressed += 1;
        if self.compress_soft == Time::NEVER {
            self.compress_soft = now + COMPRESS_DELAY;
            self.compress_hard = self.compress_soft + COMPRESS_SLACK;
        } else if now >= self.compress_soft {
            // A range timer fires with the first interrupt after its soft expiry; an arrival is one.
            self.now = true;
        }
    }

    /// Earliest deadline of this half.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.delack_at.min(self.compress_hard)
    }

    /// Timers that are due make an ACK due.
    pub fn on_timer(&mut self, now: Time, rto: Span) {
        if self.delack_at <= now {
            self.delack_at = Time::NEVER;
            if self.pending {
                if self.pingpong {
                    self.pingpong = false;
                    self.ato = self.delack_timeout;
                } else {
                    self.ato = (self.ato * 2).min(rto);
                }
                self.now = true;
            }
        }
        if self.compress_hard <= now {
            self.now = true;
        }
    }

    /// Whether a pure ACK must leave now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.now || self.early.is_some() || self.exact.is_some_and(|e| e.before.is_some())
    }

    /// Make an ACK due now (handshake, challenge).
    pub fn ack_now(&mut self) {
        self.pending = true;
        self.now = true;
    }

    /// An ACK leaves: nothing is held back any more.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        self.delack_at = Time::NEVER;
        self.compressed = 0;
        self.compress_soft = Time::NEVER;
        self.compress_hard = Time::NEVER;
    }
}
