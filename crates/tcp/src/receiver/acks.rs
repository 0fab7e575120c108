//! ACK timing as in RFC 1122/5681 or as in Linux: quick ACKs at the start, an adaptive timeout, compression
//! of duplicate ACKs after the first three.

use ackclock_core::{SackList, Segment, Span, Time};

use super::Receiver;
use crate::config::{Config, DelayedAck, Detection};
use crate::rwnd::ReceiveWindow;
use crate::ticks::Ticks;

/// Linux TCP_MAX_QUICKACKS.
const MAX_QUICKACKS: u32 = 16;
/// Linux TCP_FASTRETRANS_THRESH: duplicate ACKs sent at once before compression begins.
const UNCOMPRESSED_DUPACKS: u8 = 3;
/// Linux tcp_comp_sack_nr: maximum number of delayed duplicate ACKs.
const COMPRESSED_MAX: u8 = 44;
/// Linux tcp_comp_sack_rtt_percent, tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns.
const COMPRESS_PERCENT: u64 = 33;
const COMPRESS_DELAY: Span = Span::from_ms(1);
const COMPRESS_SLACK: Span = Span::from_us(10);
/// Linux TCP_DELACK_MAX.
const DELACK_MAX: Span = Span::from_ms(200);

/// Pending acknowledgments and the timing of the next ACK.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledging {
    pub(super) mode: DelayedAck,
    pub(super) delack_timeout: Span,
    delack_max: Span,
    ticks: Ticks,
    /// `rcv_nxt` when the last ACK was sent.
    pub(super) rcv_wup: u64,
    /// SACK blocks and window of a delayed ACK that is sent before the block of the latest arrival moves to
    /// the front.
    pub(super) early: Option<Box<(SackList, u32)>>,
    /// The application has closed: a FIN is acknowledged at once.
    pub(crate) closing: bool,
    /// The ACK of a pushed or short segment, or of two, is deferred until the application's next read (Linux
    /// ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
    pub(super) pushed: bool,
    pub(super) pushed_twice: bool,
    pub(super) ato: Span,
    /// ATO that further segments in quick succession leave unchanged.
    steady_ato: Span,
    pub(super) last_data: Time,
    pub(super) quick: u32,
    pub(super) pingpong: bool,
    /// The application sets TCP_QUICKACK after each read.
    pub(super) quickacks: bool,
    pub(super) pending: bool,
    /// An ACK must be sent in response to the current input.
    pub(super) now: bool,
    timer: Delay,
    pub(super) compression: Compression,
}

/// Delayed-ACK timer.
#[derive(Clone, Debug)]
struct Delay {
    at: Time,
    /// Expiry before rounding by the timer wheel.
    set: Time,
    /// Expiry of the running timer, which an earlier ACK does not stop (Linux keeps the `timer_list`).
    runs: Time,
}

/// Compression of duplicate ACKs.
#[derive(Clone, Debug)]
pub(super) struct Compression {
    on: bool,
    /// Number of delayed duplicate ACKs.
    pub held: u8,
    /// Number of duplicate ACKs sent at once for the current in-order offset.
    dup_acks: u8,
    rcv_nxt: u64,
    until: Time,
}

/// Segment sizes: the peer's, and those announced to the peer.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    /// Estimate of the peer's segment size.
    pub(super) rcv_mss: u32,
    /// Size of the last segment if it was shorter than `rcv_mss`, else 0.
    pub(super) short: u32,
    /// Payload of a full segment under the MSS announced to the peer, bytes.
    pub(super) advmss: u32,
    /// Size of the largest segment in a packet that a device has merged from several segments, bytes.
    pub(crate) most: u32,
}

impl Sizes {
    /// Payload of the segments in a packet that contains several (Linux `gso_size`): options other than timestamps take
    /// room from each of them.
    #[cold]
    fn in_packet(&self, seg: &Segment) -> u32 {
        self.most.saturating_sub(seg.option_bytes() - 12 * seg.has_ts as u32).max(1)
    }
}

impl Acknowledging {
    pub(super) fn new(config: &Config, ticks: Ticks) -> Acknowledging {
        Acknowledging {
            mode: config.receiving.delayed_ack,
            delack_timeout: config.receiving.delack_timeout,
            delack_max: delack_max(config),
            ticks,
            rcv_wup: 0,
            early: None,
            closing: false,
            pushed: false,
            pushed_twice: false,
            ato: Span::ZERO,
            steady_ato: steady_ato(config.receiving.delack_timeout, ticks),
            last_data: Time::ZERO,
            quick: 0,
            pingpong: false,
            quickacks: config.switches.quickack,
            pending: false,
            now: false,
            timer: Delay { at: Time::NEVER, set: Time::NEVER, runs: Time::NEVER },
            compression: Compression {
                on: config.receiving.sack_compression,
                held: 0,
                dup_acks: 0,
                rcv_nxt: 0,
                until: Time::NEVER,
            },
        }
    }

    /// Adapt the ACK delay to the inter-arrival time of data (Linux `tcp_event_data_recv`).
    #[inline]
    pub(super) fn adapt_delay(&mut self, now: Time, rto: Span, window: &ReceiveWindow, rcv_mss: u32) {
        if self.ato == Span::ZERO {
            self.ato = self.delack_timeout;
            self.incr_quickack(window, rcv_mss);
        } else {
            let shortest = self.delack_timeout / 2;
            match self.ticks.longer(self.last_data, now, shortest) {
                None if self.ato == self.steady_ato => {}
                None => self.ato = self.ticks.floor(self.ato / 2) + shortest,
                Some(gap) if gap < self.ato => {
                    self.ato = (self.ticks.floor(self.ato / 2) + gap).min(rto).min(DELACK_MAX);
                }
                Some(gap) if gap > self.ticks.ceil(rto) => self.incr_quickack(window, rcv_mss),
                Some(_) => {}
            }
        }
        self.last_data = now;
    }

    fn incr_quickack(&mut self, window: &ReceiveWindow, rcv_mss: u32) {
        let quick = match window.told() / (2 * rcv_mss.max(1) as u64) {
            0 => 2,
            segments => segments.min(MAX_QUICKACKS as u64) as u32,
        };
        self.quick = self.quick.max(quick);
    }

    /// Use up one quick ACK (Linux `tcp_dec_quickack_mode`). A tight window ends the mode (`__tcp_select_window`).
    #[inline]
    pub(super) fn decrement_quickack(&mut self, window: &ReceiveWindow) {
        if window.is_tight() {
            self.quick = 0;
        } else if self.quick > 0 && self.pending {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.delack_timeout;
            }
        }
    }

    fn enter_quickack(&mut self, window: &ReceiveWindow, rcv_mss: u32) {
        if self.mode == DelayedAck::Linux {
            self.incr_quickack(window, rcv_mss);
            self.pingpong = false;
            self.ato = self.delack_timeout;
        }
    }

    /// Send the next two ACKs at once.
    pub(super) fn acknowledge_two(&mut self) {
        self.quick = self.quick.max(2);
        self.pingpong = false;
        self.ato = self.delack_timeout;
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
        let timer = &mut self.timer;
        if timer.at != Time::NEVER {
            let quarter = self.ticks.floor(ato / 4);
            if timer.set <= self.ticks.setting(now, quarter) {
                self.now = true;
                return;
            }
        }
        let [set, at] = self.ticks.setting_and_expiry(now, ato);
        timer.set = timer.set.min(set);
        timer.at = timer.at.min(at);
        timer.runs = timer.at;
    }

    /// Send or delay a duplicate ACK. `rtt`: the receiver's own estimate.
    fn compress(&mut self, now: Time, srtt: Span, rtt: Span, rcv_nxt: u64) {
        let held = &mut self.compression;
        if !held.on || held.held >= COMPRESSED_MAX {
            self.now = true;
            return;
        }
        if held.rcv_nxt != rcv_nxt {
            held.rcv_nxt = rcv_nxt;
            held.dup_acks = 0;
        }
        if held.dup_acks < UNCOMPRESSED_DUPACKS {
            held.dup_acks += 1;
            self.now = true;
            return;
        }
        held.held += 1;
        if held.until == Time::NEVER {
            let rtt = if srtt > Span::ZERO { rtt.min(srtt) } else { rtt };
            // A soft timer (HRTIMER_MODE_REL_PINNED_SOFT) always expires at the end of its slack, because
            // arrivals do not check it.
            held.until = now + Span(rtt.0 * COMPRESS_PERCENT / 100).min(COMPRESS_DELAY) + COMPRESS_SLACK;
            if self.timer.runs <= now {
                self.timer.runs = Time::NEVER; // the timer expired with nothing to send
            }
        }
    }

    /// Time at which a compressed or delayed ACK is sent.
    #[inline]
    fn due_at(&self) -> Time {
        let held_back = self.compression.until != Time::NEVER;
        let runs = if held_back { self.timer.runs } else { Time::NEVER };
        self.timer.at.min(self.compression.until).min(runs)
    }

    /// Process expired timers, which may request an ACK.
    fn on_timer(&mut self, now: Time, rto: Span) {
        if self.timer.runs <= now {
            self.timer.runs = Time::NEVER;
            self.now |= self.compression.held > 0; // Linux `tcp_delack_timer_handler`
        }
        if self.timer.at <= now {
            (self.timer.at, self.timer.set) = (Time::NEVER, Time::NEVER);
            if self.pending && self.compression.held == 0 {
                if self.pingpong {
                    self.pingpong = false;
                    self.ato = self.delack_timeout;
                } else {
                    self.ato = (self.ato * 2).min(rto).min(DELACK_MAX);
                }
                self.now = true;
            }
        }
        if self.compression.until <= now {
            self.now = true;
        }
    }

    /// Clear all pending acknowledgments after an ACK.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        (self.pending, self.now) = (false, false);
        (self.pushed, self.pushed_twice) = (false, false);
        (self.timer.at, self.timer.set) = (Time::NEVER, Time::NEVER);
        self.compression.held = 0;
        self.compression.until = Time::NEVER;
    }

    /// Enter pingpong mode, in which ACKs are delayed, if the application answers within the ATO.
    fn on_data_sent(&mut self, now: Time) {
        if self.ato > Span::ZERO && now.since(self.last_data) < self.ato {
            self.pingpong = true;
        }
    }

    /// Whether a read triggers the ACK of a pushed segment, because no answer that could carry it is expected.
    #[inline]
    pub(super) fn is_pushed(&self) -> bool {
        self.pushed_twice || (self.pushed && !self.pingpong)
    }

    /// Request an immediate ACK (handshake, challenge).
    #[inline]
    pub(super) fn ack_now(&mut self) {
        self.pending = true;
        self.now = true;
    }
}

/// Return the maximum ACK delay. The peer's retransmission timer is assumed to be at least our own
/// minimum RTO, and the ACK is sent a tick before it (Linux `tcp_delack_max`). Kernels before RACK:
/// `TCP_DELACK_MAX`.
pub(super) fn delack_max(config: &Config) -> Span {
    let tick = config.tick();
    match config.loss.detection {
        Detection::Rack => DELACK_MAX.min(config.timers.min_rto.max(tick * 2) - tick),
        Detection::Fack | Detection::Dupthresh => DELACK_MAX,
    }
}

/// Fixed point of [`Acknowledging::adapt_delay`] for data in quick succession.
fn steady_ato(delack_timeout: Span, ticks: Ticks) -> Span {
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
    /// See [`Acknowledging::on_data_sent`].
    pub fn on_data_sent(&mut self, now: Time) {
        self.acks.on_data_sent(now);
    }

    pub(super) fn enter_quickack(&mut self) {
        self.acks.enter_quickack(&self.window, self.sizes.rcv_mss);
    }

    /// Update the estimate of the peer's segment size from a segment with payload, and note whether its ACK is
    /// deferred until the application's next read (Linux `tcp_measure_rcv_mss`): for a full segment only with PSH,
    /// for a short one always.
    #[inline]
    pub(super) fn measure_mss<const PLAIN: bool>(&mut self, seg: &Segment) {
        let pushes = seg.flags.has(ackclock_core::Flags::PSH);
        let last = std::mem::take(&mut self.sizes.short);
        let len = match seg.len > self.sizes.most {
            true => self.sizes.in_packet(seg),
            false => seg.len,
        };
        if len >= self.sizes.rcv_mss || !self.is_linux::<PLAIN>() {
            if len > self.sizes.rcv_mss {
                self.sizes.rcv_mss = len.min(self.sizes.advmss);
                self.window.measure_share(self.sizes.rcv_mss, seg.len);
            }
            self.acks.pushed |= pushes;
            return;
        }
        if len == 0 {
            return;
        }
        let whole = len + 20 + 12 * self.stamps.on as u32;
        let ends = pushes || seg.flags.has(ackclock_core::Flags::FIN);
        if whole >= 536 + 20 || (whole >= 88 + 20 && !ends) {
            self.sizes.short = len;
            if len == last {
                self.sizes.rcv_mss = len;
                self.window.expect(len);
                return;
            }
        }
        self.acks.pushed_twice |= self.acks.pushed;
        self.acks.pushed = true;
    }

    /// Send or delay the ACK for an arrival (Linux `__tcp_ack_snd_check`, or the RFC rules).
    #[inline(always)]
    pub(super) fn decide<const PLAIN: bool>(&mut self, now: Time, srtt: Span) {
        let gap = !PLAIN && !self.assembly.out_of_order.is_empty();
        let full_frames = self.rcv_nxt - self.acks.rcv_wup > self.sizes.rcv_mss as u64;
        match self.acks.mode {
            _ if PLAIN => self.decide_as_linux(now, srtt, full_frames, gap),
            DelayedAck::Off => self.acks.now = true,
            DelayedAck::Rfc => {
                if full_frames
                    || gap
                    || self.assembly.dsack.is_some()
                    || self.rcv_nxt - self.acks.rcv_wup >= 2 * self.sizes.rcv_mss as u64
                {
                    self.acks.now = true;
                } else if self.acks.timer.at == Time::NEVER {
                    self.acks.timer.at = now + self.acks.delack_timeout;
                }
            }
            DelayedAck::Linux => self.decide_as_linux(now, srtt, full_frames, gap),
        }
    }

    #[inline(always)]
    fn decide_as_linux(&mut self, now: Time, srtt: Span, full_frames: bool, gap: bool) {
        if full_frames && self.window.is_tight() {
            self.acks.quick = 0;
        }
        // An ACK that would shrink the window is deferred until the application's next read.
        self.acks.now |= full_frames && self.window.keeps() || (self.acks.quick > 0 && !self.acks.pingpong);
        if self.acks.now {
            return;
        }
        if !gap {
            self.acks.delay(now, srtt);
        } else if self.assembly.sack {
            self.acks.compress(now, srtt, self.window.measured().0, self.rcv_nxt);
        } else {
            self.acks.now = true;
        }
    }

    /// Earliest deadline of the receiving half.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.acks.due_at().min(self.reader.turn_at)
    }

    /// Whether the delayed-ACK timer expires at `deadline`.
    pub fn delays_until(&self, deadline: Time) -> bool {
        self.acks.timer.at == deadline
    }

    /// Whether a compressed or delayed ACK is due at `now`.
    #[cfg(test)]
    pub fn releases(&self, now: Time) -> bool {
        self.acks.due_at() <= now
    }

    /// Process expired timers, which may request an ACK.
    pub fn on_timer(&mut self, now: Time, rto: Span) {
        self.acks.on_timer(now, rto);
        if self.reader.turn_at <= now {
            self.on_turn(now);
        }
    }

    /// Whether a pure ACK must be sent now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.acks.now
            || self.acks.early.is_some()
            || self.marks.exact.as_ref().is_some_and(|e| e.before.is_some())
    }

    /// Request an immediate ACK (handshake, challenge).
    pub fn ack_now(&mut self) {
        self.acks.ack_now();
    }

    /// Request an ACK that acknowledges nothing new.
    pub fn answer(&mut self) {
        self.acks.now = true;
    }
}
