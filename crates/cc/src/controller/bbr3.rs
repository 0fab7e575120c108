//! BBR, version 3: the model of version 1, bounded by losses: long-term and short-term limits of what may be in flight,
//! and probes whose size and spacing let loss-based flows live.
//!
//! Source: draft-ietf-ccwg-bbr §4 and §5; the names are the draft's. Rates are segments per second, times seconds.
//!
//! | variable | meaning |
//! |---|---|
//! | `max_bw` | greatest delivery rate of this probing cycle and the one before |
//! | `bw_shortterm`, `inflight_shortterm` | bounds learnt from losses since the last probe |
//! | `inflight_longterm` | bound learnt in probes: where losses passed 2 % |
//! | `extra_acked` | ACKs beyond the rate, greatest of five to ten rounds |
//!
//! Differs: losses are judged when an ACK arrives, by the newest segment it covers, not segment by segment as they are
//! marked; a loss event is an ACK that shows losses.
//!
//! Length: the parts of the draft in its order, until they are divided.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use super::{AckSample, CongestionControl, Needs, RateSample};
use crate::window::Window;

mod probe;
use probe::{AckPhase, Cycle};

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const CWND_GAIN: f64 = 2.0;
const MARGIN: f64 = 0.99;
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_CWND: u32 = 4;
const INIT_CWND: u64 = 10;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const PROBE_RTT_DURATION: Span = Span::from_ms(200);
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
const MIN_RTT_FILTER: Span = Span::from_secs(10);
const EXTRA_ACKED_ROUNDS: u32 = 5;
const STARTUP_LOSS_EVENTS: u32 = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBw(Cycle),
    ProbeRtt,
}

/// BBRv3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// This cycle and the one before.
    bw_filter: [f64; 2],
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events: u32,
    min_rtt: f64,
    min_rtt_stamp: Time,
    probe_rtt_min: f64,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    delivered: u64,
    next_round_delivered: u64,
    round_start: bool,
    rounds_since_probe: u32,
    full_bw: f64,
    full_bw_count: u8,
    full_bw_now: bool,
    full_bw_reached: bool,
    cycle_stamp: Time,
    probe_wait: Span,
    ack_phase: AckPhase,
    probe_samples: bool,
    probe_up_rounds: u32,
    probe_up_acks: f64,
    probe_up_cnt: f64,
    prior_cwnd: u32,
    prev_state: CaState,
    idle_restart: bool,
    has_seen_rtt: bool,
    smss: u32,
    epoch_stamp: Time,
    epoch_acked: f64,
    extra_acked: [f64; 2],
    extra_rounds: u32,
    stream: Stream,
}

impl Default for Bbr3 {
    fn default() -> Bbr3 {
        Bbr3 {
            state: State::Startup,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: CWND_GAIN,
            bw_filter: [0.0; 2],
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_events: 0,
            min_rtt: f64::INFINITY,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min: f64::INFINITY,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            delivered: 0,
            next_round_delivered: 0,
            round_start: false,
            rounds_since_probe: 0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            cycle_stamp: Time::ZERO,
            probe_wait: Span::ZERO,
            ack_phase: AckPhase::Init,
            probe_samples: false,
            probe_up_rounds: 0,
            probe_up_acks: 0.0,
            probe_up_cnt: f64::INFINITY,
            prior_cwnd: 0,
            prev_state: CaState::Open,
            idle_restart: false,
            has_seen_rtt: false,
            smss: 0,
            epoch_stamp: Time::ZERO,
            epoch_acked: 0.0,
            extra_acked: [0.0; 2],
            extra_rounds: 0,
            stream: Stream::new(0, "bbr3"),
        }
    }
}

impl Bbr3 {
    fn max_bw(&self) -> f64 {
        self.bw_filter[0].max(self.bw_filter[1])
    }

    fn bw(&self) -> f64 {
        self.max_bw().min(self.bw_shortterm)
    }

    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt.is_infinite() {
            return INIT_CWND as f64;
        }
        libm::ceil(gain * bw * self.min_rtt)
    }

    /// Room for three bursts, an even number, and two more while probing upwards.
    fn quantized(&self, inflight: f64, window: &Window, smss: u32) -> f64 {
        let rate = window.pacing_rate;
        let burst = ((rate / 1000).min(65_536) / u64::from(smss.max(1))).max(2) as f64;
        let inflight = inflight.max(3.0 * burst).max(f64::from(MIN_PIPE_CWND));
        inflight + if self.state == State::ProbeBw(Cycle::Up) { 2.0 } else { 0.0 }
    }

    fn inflight(&self, gain: f64, window: &Window, smss: u32) -> f64 {
        self.quantized(self.bdp(self.max_bw(), gain), window, smss)
    }

    fn target_inflight(&self, window: &Window) -> f64 {
        self.bdp(self.bw(), 1.0).min(f64::from(window.cwnd))
    }

    fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(f64::from(MIN_PIPE_CWND))
    }

    fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    fn reset_full_bw(&mut self, full_bw: f64) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (full_bw, 0, false);
    }

    fn reset_shortterm(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBw(Cycle::Refill | Cycle::Up))
    }

    fn update_signals(&mut self, window: &Window, ack: &AckSample, rate: &RateSample, bw: f64) {
        self.round_start = rate.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.rounds_since_probe += 1;
        }
        if bw >= self.max_bw() || !rate.is_app_limited {
            self.bw_filter[0] = self.bw_filter[0].max(bw);
        }
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(f64::from(rate.delivered));
        self.loss_round_start = rate.prior_delivered >= self.loss_round_delivered;
        if ack.newly_lost > 0 {
            self.loss_in_round = true;
            self.loss_events += 1;
        }
        if self.loss_round_start {
            self.loss_round_delivered = self.delivered;
            if self.loss_in_round && !self.is_probing_bw() {
                if self.bw_shortterm.is_infinite() {
                    self.bw_shortterm = self.max_bw();
                }
                if self.inflight_shortterm.is_infinite() {
                    self.inflight_shortterm = f64::from(window.cwnd);
                }
                self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
                self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
            }
        }
    }

    fn update_extra_acked(&mut self, window: &Window, ack: &AckSample) {
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ACKED_ROUNDS {
                self.extra_rounds = 0;
                self.extra_acked = [0.0, self.extra_acked[0]];
            }
        }
        let mut expected = self.bw() * ack.now.since(self.epoch_stamp).as_secs();
        if self.epoch_acked <= expected {
            (self.epoch_acked, self.epoch_stamp, expected) = (0.0, ack.now, 0.0);
        }
        self.epoch_acked += f64::from(ack.delivered);
        let extra = (self.epoch_acked - expected).min(f64::from(window.cwnd));
        self.extra_acked[0] = self.extra_acked[0].max(extra);
    }

    fn check_full_bw(&mut self, rate: &RateSample, bw: f64) {
        if self.full_bw_now || rate.is_app_limited {
            return;
        }
        if bw >= self.full_bw * 1.25 {
            return self.reset_full_bw(bw);
        }
        if self.round_start {
            self.full_bw_count += 1;
            self.full_bw_now = self.full_bw_count >= 3;
            self.full_bw_reached |= self.full_bw_now;
        }
    }

    fn check_startup(&mut self, ack: &AckSample, rate: &RateSample) {
        if self.state != State::Startup {
            return;
        }
        let lossy = self.loss_round_start
            && ack.ca_state == CaState::Recovery
            && self.loss_events >= STARTUP_LOSS_EVENTS
            && too_high(rate);
        if lossy && !self.full_bw_reached {
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.max_bw(), 1.0).max(self.inflight_latest);
        }
        if self.full_bw_reached {
            self.state = State::Drain;
        }
    }

    fn update_min_rtt(&mut self, ack: &AckSample) {
        self.probe_rtt_expired = ack.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt.map(Span::as_secs) {
            if rtt < self.probe_rtt_min || self.probe_rtt_expired {
                self.probe_rtt_min = rtt;
                self.probe_rtt_min_stamp = ack.now;
            }
        }
        let expired = ack.now > self.min_rtt_stamp + MIN_RTT_FILTER;
        if self.probe_rtt_min < self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    fn probe_rtt_cwnd(&self) -> u32 {
        (self.bdp(self.bw(), PROBE_RTT_CWND_GAIN) as u32).max(MIN_PIPE_CWND)
    }

    fn check_probe_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd(window.cwnd);
            self.state = State::ProbeRtt;
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            match self.probe_rtt_done {
                None if ack.in_flight <= self.probe_rtt_cwnd() => {
                    self.probe_rtt_done = Some(ack.now + PROBE_RTT_DURATION);
                    self.probe_rtt_round_done = false;
                    self.start_round();
                }
                Some(done) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done && ack.now > done {
                        self.probe_rtt_min_stamp = ack.now;
                        window.cwnd = window.cwnd.max(self.prior_cwnd);
                        self.reset_shortterm();
                        if self.full_bw_reached {
                            self.start_down(ack.now);
                            self.state = State::ProbeBw(Cycle::Cruise);
                        } else {
                            self.state = State::Startup;
                        }
                    }
                }
                None => {}
            }
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let steady = self.prev_state < CaState::Recovery && self.state != State::ProbeRtt;
        self.prior_cwnd = if steady { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    fn set_pacing(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.has_seen_rtt = true;
            pace_from_rtt(window, ack.srtt, ack.smss);
        }
        let rate = (self.pacing_gain * self.bw() * MARGIN * f64::from(ack.smss)) as u64;
        if self.bw() > 0.0 && (self.full_bw_reached || rate > window.pacing_rate) {
            window.pacing_rate = rate.max(1);
        }
    }

    fn set_cwnd(&mut self, window: &mut Window, ack: &AckSample) {
        let mut cwnd = window.cwnd;
        if ack.newly_lost > 0 && ack.ca_state >= CaState::Recovery {
            cwnd = cwnd.saturating_sub(ack.newly_lost).max(1);
        }
        if self.prev_state >= CaState::Recovery && ack.ca_state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
        }
        self.prev_state = ack.ca_state;
        let max_inflight = self.bdp(self.bw(), self.cwnd_gain) + self.extra_acked[0].max(self.extra_acked[1]);
        let max_inflight = self.quantized(max_inflight, window, ack.smss).min(1e9) as u32;
        if self.full_bw_reached {
            cwnd = cwnd.saturating_add(ack.delivered).min(max_inflight);
        } else if cwnd < max_inflight || self.delivered < INIT_CWND {
            cwnd = cwnd.saturating_add(ack.delivered);
        }
        cwnd = cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::ProbeBw(Cycle::Cruise) | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.inflight_longterm,
            _ => f64::INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(f64::from(MIN_PIPE_CWND)).min(1e9);
        window.cwnd = cwnd.min(cap as u32).min(window.cwnd_clamp);
    }
}

/// Losses since its transmission exceed 2 % of what was in flight then.
fn too_high(rate: &RateSample) -> bool {
    f64::from(rate.lost) > f64::from(rate.tx_in_flight) * LOSS_THRESH
}

fn pace_from_rtt(window: &mut Window, srtt: Span, smss: u32) {
    let rtt = if srtt > Span::ZERO { srtt.as_secs() } else { 0.001 };
    let bw = f64::from(window.cwnd.max(1)) / rtt;
    window.pacing_rate = (STARTUP_PACING_GAIN * bw * f64::from(smss) * MARGIN) as u64;
}

impl CongestionControl for Bbr3 {
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        if srtt > Span::ZERO {
            (self.min_rtt, self.probe_rtt_min) = (srtt.as_secs(), srtt.as_secs());
            self.has_seen_rtt = true;
        }
        (self.min_rtt_stamp, self.probe_rtt_min_stamp, self.epoch_stamp) = (now, now, now);
        self.smss = smss;
        pace_from_rtt(window, srtt, smss);
    }

    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.delivered += u64::from(ack.delivered);
        self.smss = ack.smss;
        self.round_start = false;
        self.loss_round_start = false;
        let valid = ack.rate.filter(|rate| rate.interval > Span::ZERO);
        if let Some(rate) = valid {
            let bw = rate.segments_per_second().unwrap_or(0.0);
            self.update_signals(window, ack, &rate, bw);
            self.update_extra_acked(window, ack);
            self.check_full_bw(&rate, bw);
            self.check_startup(ack, &rate);
            if self.state == State::Drain && f64::from(ack.in_flight) <= self.inflight(1.0, window, ack.smss)
            {
                self.start_down(ack.now);
            }
            self.update_cycle(window, ack, &rate, bw);
            if self.loss_round_start {
                self.loss_in_round = false;
                self.loss_events = 0;
                self.bw_latest = bw;
                self.inflight_latest = f64::from(rate.delivered);
            }
        }
        self.update_min_rtt(ack);
        self.check_probe_rtt(window, ack);
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (STARTUP_PACING_GAIN, CWND_GAIN),
            State::Drain => (DRAIN_PACING_GAIN, CWND_GAIN),
            State::ProbeBw(cycle) => cycle.gains(),
            State::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        };
        self.set_pacing(window, ack);
        self.set_cwnd(window, ack);
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Loss {
            self.prev_state = CaState::Loss;
        }
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        self.reset_full_bw(0.0);
        self.reset_shortterm();
        window.cwnd.max(self.prior_cwnd)
    }

    fn on_tx_start(&mut self, _window: &mut Window, now: Time, idle: Span) {
        if idle > Span::ZERO {
            self.idle_restart = true;
            (self.epoch_stamp, self.epoch_acked) = (now, 0.0);
        }
    }

    fn seed(&mut self, seed: u64) {
        self.stream = Stream::new(seed, "bbr3");
    }

    fn needs(&self) -> Needs {
        Needs {
            control: true,
            rate: true,
            pacing: true,
            seed: true,
            vars: &[
                "estimate_bps",
                "min_rtt_s",
                "mode",
                "pacing_gain",
                "cwnd_gain",
                "inflight_longterm",
                "inflight_shortterm",
            ],
            ..Needs::default()
        }
    }

    fn vars(&self, values: &mut [f64]) {
        let mode = match self.state {
            State::Startup => 0.0,
            State::Drain => 1.0,
            State::ProbeBw(cycle) => 2.0 + cycle as u8 as f64 / 10.0,
            State::ProbeRtt => 3.0,
        };
        let known = |x: f64| if x.is_finite() { x } else { f64::NAN };
        let all = [
            self.bw() * 8.0 * f64::from(self.smss),
            known(self.min_rtt),
            mode,
            self.pacing_gain,
            self.cwnd_gain,
            known(self.inflight_longterm),
            known(self.inflight_shortterm),
        ];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests;
