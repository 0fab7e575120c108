//! When an ACK leaves: RFC 1122/5681, or Linux: quick ACKs at the start, an adaptive timeout, compression of duplicate
//! ACKs after the first three.

use ackclock_core::{Segment, Span, Time};

use super::Receiver;
use crate::config::{Config, DelayedAck, Detection};
use crate::ticks::Ticks;

/// Linux TCP_MAX_QUICKACKS.
const MAX_QUICKACKS: u32 = 16;
/// Linux TCP_FASTRETRANS_THRESH: duplicate ACKs sent at once before compression begins.
const UNCOMPRESSED_DUPACKS: u8 = 3;
/// Linux tcp_comp_sack_nr: duplicate ACKs held back at most.
const COMPRESSED_MAX: u8 = 44;
/// Linux tcp_comp_sack_rtt_percent, tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns.
const COMPRESS_PERCENT: u64 = 33;
const COMPRESS_DELAY: Span = Span::from_ms(1);
const COMPRESS_SLACK: Span = Span::from_us(10);
/// Linux TCP_DELACK_MAX.
const DELACK_MAX: Span = Span::from_ms(200);

/// Longest delay of an ACK: the peer's retransmission timer is taken to be no shorter than our own may be, and the ACK arrives a
/// tick earlier (Linux `tcp_delack_max`). Kernels before RACK: `TCP_DELACK_MAX`.
pub(super) fn delack_max(config: &Config) -> Span {
    let tick = config.tick();
    match config.detection {
        Detection::Rack => DELACK_MAX.min(config.min_rto.max(tick * 2) - tick),
        Detection::Fack | Detection::Dupthresh => DELACK_MAX,
    }
}

/// What [`Receiver::adapt_delay`] comes to.
pub(super) fn steady_ato(delack_timeout: Span, ticks: Ticks) -> Span {
    let mut ato = delack_timeout;
    loop {
        let next = ticks.floor(ato / 2) + delack_timeout / 2;
        if next == ato {
            return ato;
        }
        ato = next;
    }
}

impl Receiver {
    /// Data arrived: how long ACKs may wait follows its pace (Linux `tcp_event_data_recv`).
    #[inline]
    pub(super) fn adapt_delay(&mut self, now: Time, rto: Span) {
        if self.ato == Span::ZERO {
            self.ato = self.delack_timeout;
            self.incr_quickack();
        } else {
            let shortest = self.delack_timeout / 2;
            match self.ticks.longer(self.last_data, now, shortest) {
                None if self.ato == self.steady_ato => {}
                None => self.ato = self.ticks.floor(self.ato / 2) + shortest,
                Some(gap) if gap < self.ato => {
                    self.ato = (self.ticks.floor(self.ato / 2) + gap).min(rto).min(DELACK_MAX);
                }
                Some(gap) if gap > self.ticks.ceil(rto) => self.incr_quickack(),
                Some(_) => {}
            }
        }
        self.last_data = now;
    }

    /// The application sent data: an exchange of requests and answers delays its ACKs (Linux pingpong mode).
    pub fn on_data_sent(&mut self, now: Time) {
        if self.ato > Span::ZERO && now.since(self.last_data) < self.ato {
            self.pingpong = true;
        }
    }

    /// What a segment with payload tells of the peer's segment size, and whether its ACK can wait for a reader (Linux
    /// `tcp_measure_rcv_mss`): a full one if it is pushed, a short one always.
    #[inline]
    pub(super) fn measure_mss<const PLAIN: bool>(&mut self, seg: &Segment) {
        let pushes = seg.flags.has(ackclock_core::Flags::PSH);
        let last = std::mem::take(&mut self.short_size);
        let len = seg.len.min(self.segment_limit);
        if len >= self.rcv_mss || !self.is_linux::<PLAIN>() {
            if len > self.rcv_mss {
                self.rcv_mss = len.min(self.advmss);
                self.window.measure_share(self.rcv_mss, seg.len);
            }
            self.pushed |= pushes;
            return;
        }
        if len == 0 {
            return;
        }
        let whole = len + 20 + 12 * self.timestamps as u32;
        let ends = pushes || seg.flags.has(ackclock_core::Flags::FIN);
        if whole >= 536 + 20 || (whole >= 88 + 20 && !ends) {
            self.short_size = len;
            if len == last {
                self.rcv_mss = len;
                self.window.expect(len);
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    pub(super) fn incr_quickack(&mut self) {
        let quick = match self.window.told() / (2 * self.rcv_mss.max(1) as u64) {
            0 => 2,
            segments => segments.min(MAX_QUICKACKS as u64) as u32,
        };
        self.quick = self.quick.max(quick);
    }

    /// Linux `tcp_dec_quickack_mode`; a window that is tight ends it (`__tcp_select_window`).
    pub(super) fn decrement_quickack(&mut self) {
        if self.window.is_tight() {
            self.quick = 0;
        } else if self.quick > 0 && self.pending {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.delack_timeout;
            }
        }
    }

    pub(super) fn enter_quickack(&mut self) {
        if self.mode == DelayedAck::Linux {
            self.incr_quickack();
            self.pingpong = false;
            self.ato = self.delack_timeout;
        }
    }

    /// Linux `__tcp_ack_snd_check`, or the RFC's rules.
    #[inline(always)]
    pub(super) fn decide<const PLAIN: bool>(&mut self, now: Time, srtt: Span) {
        let gap = !PLAIN && !self.out_of_order.is_empty();
        let full_frames = self.rcv_nxt - self.rcv_wup > self.rcv_mss as u64;
        match self.mode {
            _ if PLAIN => self.decide_as_linux(now, srtt, full_frames, gap),
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
            DelayedAck::Linux => self.decide_as_linux(now, srtt, full_frames, gap),
        }
    }

    #[inline(always)]
    fn decide_as_linux(&mut self, now: Time, srtt: Span, full_frames: bool, gap: bool) {
        if full_frames && self.window.is_tight() {
            self.quick = 0;
        }
        // A window that would be smaller is not told before the application has read.
        self.now |= full_frames && self.window.keeps() || (self.quick > 0 && !self.pingpong);
        if self.now {
            return;
        }
        if !gap {
            self.delay(now, srtt);
        } else {
            self.compress(now, srtt);
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
        ato = ato.min(self.delack_max);
        if self.delack_at != Time::NEVER {
            let quarter = self.ticks.floor(ato / 4);
            if self.delack_set <= self.ticks.setting(now, quarter) {
                self.now = true;
                return;
            }
        }
        self.delack_set = self.delack_set.min(self.ticks.setting(now, ato));
        self.delack_at = self.delack_at.min(self.ticks.expiry(now, ato));
        self.delack_runs = self.delack_at;
    }

    fn compress(&mut self, now: Time, srtt: Span) {
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
        if self.compress_at == Time::NEVER {
            let (rtt, _) = self.window.measured();
            let rtt = if srtt > Span::ZERO { rtt.min(srtt) } else { rtt };
            // A soft timer (HRTIMER_MODE_REL_PINNED_SOFT) takes all of its slack: an arrival meanwhile is no reason to look at it.
            self.compress_at =
                now + Span(rtt.0 * COMPRESS_PERCENT / 100).min(COMPRESS_DELAY) + COMPRESS_SLACK;
            if self.delack_runs <= now {
                self.delack_runs = Time::NEVER; // it went off and found nothing
            }
        }
    }

    /// Earliest deadline of this half.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.ack_at().min(self.turn_at)
    }

    /// When what is held back, or a delayed ACK, leaves.
    #[inline]
    fn ack_at(&self) -> Time {
        let held_back = self.compress_at != Time::NEVER;
        let runs = if held_back { self.delack_runs } else { Time::NEVER };
        self.delack_at.min(self.compress_at).min(runs)
    }

    /// Whether it leaves at `now`.
    #[inline]
    pub fn releases(&self, now: Time) -> bool {
        self.ack_at() <= now
    }

    /// Timers that are due make an ACK due.
    pub fn on_timer(&mut self, now: Time, rto: Span) {
        if self.delack_runs <= now {
            self.delack_runs = Time::NEVER;
            self.now |= self.compressed > 0; // Linux `tcp_delack_timer_handler`
        }
        if self.delack_at <= now {
            (self.delack_at, self.delack_set) = (Time::NEVER, Time::NEVER);
            if self.pending && self.compressed == 0 {
                if self.pingpong {
                    self.pingpong = false;
                    self.ato = self.delack_timeout;
                } else {
                    self.ato = (self.ato * 2).min(rto).min(DELACK_MAX);
                }
                self.now = true;
            }
        }
        if self.compress_at <= now {
            self.now = true;
        }
        if self.turn_at <= now {
            self.on_turn(now);
        }
    }

    /// Whether a pure ACK must leave now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.now || self.early.is_some() || self.exact.as_ref().is_some_and(|e| e.before.is_some())
    }

    /// Make an ACK due now (handshake, challenge).
    pub fn ack_now(&mut self) {
        self.pending = true;
        self.now = true;
    }

    /// Make an ACK due that acknowledges nothing new.
    pub fn answer(&mut self) {
        self.now = true;
    }

    /// An ACK leaves: nothing is due or held back any more.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        (self.pending, self.now) = (false, false);
        (self.pushed, self.pushed_twice) = (false, false);
        (self.delack_at, self.delack_set) = (Time::NEVER, Time::NEVER);
        self.compressed = 0;
        self.compress_at = Time::NEVER;
    }
}
