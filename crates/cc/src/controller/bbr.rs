//! BBR, version 1: a model of the path (greatest delivery rate of ten rounds, least RTT of ten seconds) sets pacing rate
//! and window; losses hardly count.
//!
//! Sources: Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 2016); integer arithmetic of Linux
//! `tcp_bbr`. Rates are segments per us, times 2^24; gains are in 1/256.
//!
//! | variable | meaning |
//! |---|---|
//! | `bw` | windowed maximum of delivery rates |
//! | `min_rtt` | least RTT, us; ProbeRTT looks anew when it is ten seconds old |
//! | `full_bw`, `full_bw_cnt` | Startup ends when the rate grew by less than a quarter in three rounds |
//! | `packet_conservation` | first round of recovery: send as much as is delivered |
//! | `extra_acked` | ACKs beyond the rate, of this and the former window of five rounds |
//!
//! Differs: no long-term sampling (the search for a policer, from a fifth of losses on); samples taken in ProbeRTT are
//! not marked application-limited, which a maximum does not notice.

use std::cell::Cell;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use super::minmax::RunningMax;
use super::{AckSample, CongestionControl, Needs, RateSample};
use crate::window::Window;

const BW_SCALE: u32 = 24;
const BW_UNIT: u64 = 1 << BW_SCALE;
const UNIT: u64 = 256;
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = UNIT * 2;
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Rounds of the filter of rates.
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
const PROBE_RTT: Span = Span::from_ms(200);
const MIN_CWND: u32 = 4;
const INIT_CWND: u32 = 10;
/// Pacing stays a hundredth below the rate.
const MARGIN_PERCENT: u64 = 1;
/// Rounds of a window of extra ACKs, and bounds.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_MAX_US: u64 = 100_000;
const EPOCH_RESET: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBRv1.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    bw: RunningMax,
    min_rtt: u64,
    min_rtt_stamp: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    rtt_cnt: u64,
    next_rtt_delivered: u64,
    delivered: u64,
    round_start: bool,
    packet_conservation: bool,
    prev_state: CaState,
    prior_cwnd: u32,
    idle_restart: bool,
    has_seen_rtt: bool,
    smss: u32,
    full_bw: u64,
    full_bw_cnt: u8,
    full_bw_reached: bool,
    cycle_idx: usize,
    cycle_stamp: Time,
    pacing_gain: u64,
    cwnd_gain: u64,
    epoch_stamp: Time,
    epoch_acked: u64,
    extra_acked: [u32; 2],
    extra_idx: usize,
    extra_rounds: u32,
    /// Pacing rate, and the burst at that rate.
    burst: Cell<(u64, u32)>,
    stream: Stream,
}

impl Default for Bbr {
    fn default() -> Bbr {
        Bbr {
            mode: Mode::Startup,
            bw: RunningMax::default(),
            min_rtt: u64::MAX,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            delivered: 0,
            round_start: false,
            packet_conservation: false,
            prev_state: CaState::Open,
            prior_cwnd: 0,
            idle_restart: false,
            has_seen_rtt: false,
            smss: 0,
            full_bw: 0,
            full_bw_cnt: 0,
            full_bw_reached: false,
            cycle_idx: 0,
            cycle_stamp: Time::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            epoch_stamp: Time::ZERO,
            epoch_acked: 0,
            extra_acked: [0; 2],
            extra_idx: 0,
            extra_rounds: 0,
            burst: Cell::new((0, 1)),
            stream: Stream::new(0, "bbr"),
        }
    }
}

/// bytes/s of a rate times a gain, less the margin.
fn pacing_rate(bw: u64, gain: u64, smss: u32) -> u64 {
    let rate = (bw.saturating_mul(u64::from(smss)).saturating_mul(gain)) / UNIT;
    rate.saturating_mul(10_000 * (100 - MARGIN_PERCENT)) >> BW_SCALE
}

impl Bbr {
    /// Segments that one burst of the device would hold at this rate; the window leaves room for three. Remembered,
    /// because the rate seldom changes and the division is what an ACK costs most here.
    fn burst(&self, window: &Window, smss: u32) -> u32 {
        let rate = window.pacing_rate;
        let (known, burst) = self.burst.get();
        if known == rate {
            return burst;
        }
        let least = if rate < 150_000 { 1 } else { 2 };
        let burst = ((rate >> 10).min(65_535 - 320) / u64::from(smss.max(1))).clamp(least, 0x7f) as u32;
        self.burst.set((rate, burst));
        burst
    }

    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        if self.min_rtt == u64::MAX {
            return u64::from(INIT_CWND);
        }
        (bw.saturating_mul(self.min_rtt).saturating_mul(gain) / UNIT).div_ceil(BW_UNIT)
    }

    fn with_budget(&self, cwnd: u64, window: &Window, smss: u32) -> u64 {
        let cwnd = (cwnd + 3 * u64::from(self.burst(window, smss)) + 1) & !1;
        cwnd + 2 * u64::from(self.mode == Mode::ProbeBw && self.cycle_idx == 0)
    }

    fn inflight(&self, bw: u64, gain: u64, window: &Window, smss: u32) -> u64 {
        self.with_budget(self.bdp(bw, gain), window, smss)
    }

    /// In flight when the next segment may leave.
    fn in_net(&self, in_flight: u32, window: &Window, smss: u32) -> u64 {
        u64::from(in_flight) + if self.pacing_gain > UNIT { u64::from(self.burst(window, smss)) } else { 0 }
    }

    fn update_bw(&mut self, rate: Option<&RateSample>) {
        self.round_start = false;
        let Some(rate) = rate.filter(|rate| rate.interval > Span::ZERO) else { return };
        if rate.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = self.delivered;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        let bw = u64::from(rate.delivered) * BW_UNIT / rate.interval.as_us().max(1);
        if !rate.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.rtt_cnt, bw);
        }
    }

    fn update_extra_acked(&mut self, window: &Window, ack: &AckSample) {
        if ack.delivered == 0 || ack.rate.is_none_or(|rate| rate.interval == Span::ZERO) {
            return;
        }
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra_idx ^= 1;
                self.extra_acked[self.extra_idx] = 0;
            }
        }
        let expected = |bw: u64, since: Span| bw.saturating_mul(since.as_us()) >> BW_SCALE;
        let mut due = expected(self.bw.get(), ack.now.since(self.epoch_stamp));
        if self.epoch_acked <= due || self.epoch_acked + u64::from(ack.delivered) >= EPOCH_RESET {
            self.epoch_acked = 0;
            self.epoch_stamp = ack.now;
            due = 0;
        }
        self.epoch_acked = (self.epoch_acked + u64::from(ack.delivered)).min(0xf_ffff);
        let extra = (self.epoch_acked - due).min(u64::from(window.cwnd)) as u32;
        let slot = &mut self.extra_acked[self.extra_idx];
        *slot = (*slot).max(extra);
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle_idx = (self.cycle_idx + 1) % CYCLE.len();
        self.cycle_stamp = now;
    }

    fn update_cycle(&mut self, window: &Window, ack: &AckSample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full_length = ack.now.since(self.cycle_stamp).as_us() > self.min_rtt;
        let (bw, gain) = (self.bw.get(), self.pacing_gain);
        let next = if gain == UNIT {
            full_length
        } else {
            let in_net = self.in_net(ack.prior_in_flight, window, ack.smss);
            if gain > UNIT {
                full_length && (ack.newly_lost > 0 || in_net >= self.inflight(bw, gain, window, ack.smss))
            } else {
                full_length || in_net <= self.inflight(bw, UNIT, window, ack.smss)
            }
        };
        if next {
            self.advance_cycle(ack.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cycle_idx = CYCLE.len() - 1 - self.stream.below(7) as usize;
        self.advance_cycle(now);
    }

    fn check_full_bw(&mut self, rate: Option<&RateSample>) {
        if self.full_bw_reached || !self.round_start || rate.is_none_or(|rate| rate.is_app_limited) {
            return;
        }
        if self.bw.get() >= self.full_bw * 5 / 4 {
            self.full_bw = self.bw.get();
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= 3;
    }

    fn check_drain(&mut self, window: &mut Window, ack: &AckSample) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.bw.get(), UNIT, window, ack.smss) as u32;
        }
        if self.mode == Mode::Drain
            && self.in_net(ack.in_flight, window, ack.smss)
                <= self.inflight(self.bw.get(), UNIT, window, ack.smss)
        {
            self.enter_probe_bw(ack.now);
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        let expired = ack.now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt {
            let delayed = ack.rate.is_some_and(|rate| rate.is_ack_delayed);
            if rtt.as_us() < self.min_rtt || (expired && !delayed) {
                self.min_rtt = rtt.as_us();
                self.min_rtt_stamp = ack.now;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window.cwnd);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_done {
                None if ack.in_flight <= MIN_CWND => {
                    self.probe_rtt_done = Some(ack.now + PROBE_RTT);
                    self.probe_rtt_round_done = false;
                    self.next_rtt_delivered = self.delivered;
                }
                Some(done) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done && ack.now > done {
                        self.min_rtt_stamp = ack.now;
                        window.cwnd = window.cwnd.max(self.prior_cwnd);
                        match self.full_bw_reached {
                            true => self.enter_probe_bw(ack.now),
                            false => self.mode = Mode::Startup,
                        }
                    }
                }
                None => {}
            }
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        self.prior_cwnd = match self.prev_state < CaState::Recovery && self.mode != Mode::ProbeRtt {
            true => cwnd,
            false => self.prior_cwnd.max(cwnd),
        };
    }

    fn set_pacing(&mut self, window: &mut Window, ack: &AckSample) {
        let rate = pacing_rate(self.bw.get(), self.pacing_gain, ack.smss);
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.has_seen_rtt = true;
            self.pace_from_rtt(window, ack.srtt, ack.smss);
        }
        if self.full_bw_reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    fn pace_from_rtt(&self, window: &mut Window, srtt: Span, smss: u32) {
        let us = if srtt > Span::ZERO { srtt.as_us().max(1) } else { 1_000 };
        let bw = u64::from(window.cwnd.max(1)) * BW_UNIT / us;
        window.pacing_rate = pacing_rate(bw, HIGH_GAIN, smss);
    }

    /// Recovery conserves packets for a round and restores the window at its end. True if the window is set.
    fn recover_or_restore(&mut self, cwnd: &mut u32, ack: &AckSample) -> bool {
        let (before, state) = (self.prev_state, ack.ca_state);
        self.prev_state = state;
        *cwnd = cwnd.saturating_sub(ack.newly_lost).max(1);
        if state == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = self.delivered;
            *cwnd = ack.in_flight + ack.delivered;
        } else if before >= CaState::Recovery && state < CaState::Recovery {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            *cwnd = (*cwnd).max(ack.in_flight + ack.delivered);
        }
        self.packet_conservation
    }

    fn set_cwnd(&mut self, window: &mut Window, ack: &AckSample) {
        let mut cwnd = window.cwnd;
        if ack.delivered > 0 && !self.recover_or_restore(&mut cwnd, ack) {
            let bw = self.bw.get();
            let mut target = self.bdp(bw, self.cwnd_gain);
            if self.full_bw_reached {
                let most = bw.saturating_mul(EXTRA_MAX_US) >> BW_SCALE;
                target += u64::from(self.extra_acked[0].max(self.extra_acked[1])).min(most);
            }
            let target = self.with_budget(target, window, ack.smss).min(u64::from(u32::MAX)) as u32;
            if self.full_bw_reached {
                cwnd = cwnd.saturating_add(ack.delivered).min(target);
            } else if cwnd < target || self.delivered < u64::from(INIT_CWND) {
                cwnd = cwnd.saturating_add(ack.delivered);
            }
            cwnd = cwnd.max(MIN_CWND);
        }
        window.cwnd = cwnd.min(window.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }
}

impl CongestionControl for Bbr {
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        if srtt > Span::ZERO {
            self.min_rtt = srtt.as_us();
            self.has_seen_rtt = true;
        }
        self.min_rtt_stamp = now;
        self.epoch_stamp = now;
        self.smss = smss;
        self.pace_from_rtt(window, srtt, smss);
    }

    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.delivered += u64::from(ack.delivered);
        self.smss = ack.smss;
        self.update_bw(ack.rate.as_ref());
        self.update_extra_acked(window, ack);
        self.update_cycle(window, ack);
        self.check_full_bw(ack.rate.as_ref());
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
        self.set_pacing(window, ack);
        self.set_cwnd(window, ack);
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full_bw = 0;
            self.round_start = true;
        }
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        window.cwnd
    }

    fn on_tx_start(&mut self, window: &mut Window, now: Time, idle: Span) {
        if idle == Span::ZERO {
            return;
        }
        self.idle_restart = true;
        self.epoch_stamp = now;
        self.epoch_acked = 0;
        if self.mode == Mode::ProbeBw && window.pacing_rate != Window::UNPACED {
            window.pacing_rate = window.pacing_rate * UNIT / self.pacing_gain.max(1);
        }
    }

    fn seed(&mut self, seed: u64) {
        self.stream = Stream::new(seed, "bbr");
    }

    fn needs(&self) -> Needs {
        Needs {
            control: true,
            rate: true,
            pacing: true,
            seed: true,
            vars: &["estimate_bps", "min_rtt_s", "mode", "pacing_gain", "cwnd_gain"],
            ..Needs::default()
        }
    }

    fn vars(&self, values: &mut [f64]) {
        let gain = |g: u64| g as f64 / UNIT as f64;
        let rtt = if self.min_rtt == u64::MAX { f64::NAN } else { self.min_rtt as f64 * 1e-6 };
        let bps = self.bw.get() as f64 / BW_UNIT as f64 * 1e6 * 8.0 * f64::from(self.smss);
        let all = [bps, rtt, self.mode as u8 as f64, gain(self.pacing_gain), gain(self.cwnd_gain)];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests;
