//! ProbeBW of version 3: down, cruise, refill, up; when to probe, how far, and what a probe teaches
//! (draft-ietf-ccwg-bbr §5.3.3, §5.5.10).

use ackclock_core::{Span, Time};

use super::{too_high, AckSample, Bbr3, RateSample, State, BETA};
use crate::window::Window;

/// Phase of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cycle {
    Down,
    Cruise,
    Refill,
    Up,
}

impl Cycle {
    /// Gains of pacing and window.
    pub fn gains(self) -> (f64, f64) {
        match self {
            Cycle::Down => (0.9, 2.0),
            Cycle::Cruise | Cycle::Refill => (1.0, 2.0),
            Cycle::Up => (1.25, 2.25),
        }
    }
}

/// What the ACKs that arrive tell of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Rounds after which a Reno flow of the same size would have recovered, at most.
const RENO_ROUNDS: f64 = 63.0;

impl Bbr3 {
    /// ProbeBW_DOWN: drain what the probe queued; the next probe comes in two to three seconds.
    pub(super) fn start_down(&mut self, now: Time) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
        self.probe_up_cnt = f64::INFINITY;
        self.rounds_since_probe = self.stream.below(2) as u32;
        self.probe_wait = Span::from_secs(2) + Span((self.stream.unit() * 1e9) as u64);
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBw(Cycle::Down);
    }

    fn start_refill(&mut self) {
        self.reset_shortterm();
        self.probe_up_rounds = 0;
        self.probe_up_acks = 0.0;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBw(Cycle::Refill);
    }

    fn start_up(&mut self, window: &Window, now: Time, bw: f64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw(bw);
        self.cycle_stamp = now;
        self.state = State::ProbeBw(Cycle::Up);
        self.raise_slope(window);
    }

    /// The longer a probe goes on without losses, the faster the bound rises: 1, 2, 4 segments a round.
    fn raise_slope(&mut self, window: &Window) {
        let growth = f64::from(1_u32 << self.probe_up_rounds.min(30));
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_cnt = (f64::from(window.cwnd) / growth).max(1.0);
    }

    fn time_to_probe(&mut self, window: &Window, now: Time) -> bool {
        let rounds = self.target_inflight(window).min(RENO_ROUNDS);
        let due = now > self.cycle_stamp + self.probe_wait || f64::from(self.rounds_since_probe) >= rounds;
        if due {
            self.start_refill();
        }
        due
    }

    fn time_to_go_down(&mut self, window: &Window, ack: &AckSample, bw: f64) -> bool {
        if ack.cwnd_limited && f64::from(window.cwnd) >= self.inflight_longterm {
            self.reset_full_bw(bw); // the bound, not the path, holds the rate back
            return false;
        }
        self.full_bw_now
    }

    /// Losses beyond 2 % in a probe: what was in flight then is the bound.
    fn handle_too_high(&mut self, window: &Window, ack: &AckSample, rate: &RateSample) {
        self.probe_samples = false;
        if !rate.is_app_limited {
            self.inflight_longterm = f64::from(rate.tx_in_flight).max(BETA * self.target_inflight(window));
        }
        if self.state == State::ProbeBw(Cycle::Up) {
            self.start_down(ack.now);
        }
    }

    fn adapt_longterm(&mut self, window: &Window, ack: &AckSample, rate: &RateSample) {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.probe_samples = false;
            self.ack_phase = AckPhase::Init;
            if matches!(self.state, State::ProbeBw(_)) && !rate.is_app_limited {
                self.bw_filter = [0.0, self.bw_filter[0]]; // the next cycle's maximum begins
            }
        }
        if too_high(rate) {
            if self.probe_samples {
                self.handle_too_high(window, ack, rate);
            }
            return;
        }
        if self.inflight_longterm.is_infinite() {
            return;
        }
        self.inflight_longterm = self.inflight_longterm.max(f64::from(rate.tx_in_flight));
        if self.state == State::ProbeBw(Cycle::Up) {
            self.probe_upwards(window, ack);
        }
    }

    fn probe_upwards(&mut self, window: &Window, ack: &AckSample) {
        if !ack.cwnd_limited || f64::from(window.cwnd) < self.inflight_longterm {
            return;
        }
        self.probe_up_acks += f64::from(ack.delivered);
        if self.probe_up_acks >= self.probe_up_cnt {
            let delta = libm::floor(self.probe_up_acks / self.probe_up_cnt);
            self.probe_up_acks -= delta * self.probe_up_cnt;
            self.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_slope(window);
        }
    }

    /// An ACK with a valid rate sample moves the cycle on.
    pub(super) fn update_cycle(&mut self, window: &Window, ack: &AckSample, rate: &RateSample, bw: f64) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_longterm(window, ack, rate);
        let State::ProbeBw(cycle) = self.state else { return };
        let in_flight = f64::from(ack.in_flight);
        match cycle {
            Cycle::Down => {
                if !self.time_to_probe(window, ack.now)
                    && in_flight <= self.inflight_with_headroom()
                    && in_flight <= self.inflight(1.0, window, ack.smss)
                {
                    self.state = State::ProbeBw(Cycle::Cruise);
                }
            }
            Cycle::Cruise => {
                self.time_to_probe(window, ack.now);
            }
            Cycle::Refill => {
                if self.round_start {
                    self.probe_samples = true;
                    self.start_up(window, ack.now, bw);
                }
            }
            Cycle::Up => {
                if self.time_to_go_down(window, ack, bw) {
                    self.start_down(ack.now);
                }
            }
        }
    }
}
