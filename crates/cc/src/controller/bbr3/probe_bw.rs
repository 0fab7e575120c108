//! ProbeBW: down, cruise, refill, up. Timing and size of the probes, and the bounds derived from them
//! (draft-ietf-ccwg-bbr §5.3.3, §5.5.10.2).

use ackclock_core::{Span, Time};

use super::{AckSample, Bbr3, Flavour, RateSample, State, UNBOUNDED};
use crate::window::Window;

/// Maximum number of rounds between probes (§5.3.3.5): by then a Reno flow with the same window has recovered from a
/// loss.
const RENO_ROUNDS: u32 = 63;
/// Time between probes (§5.3.3.5): 2 s plus a random part of up to 1 s.
const PROBE_WAIT: Span = Span::from_secs(2);

/// Phase of a cycle (§5.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cycle {
    /// Pace below the estimated rate until the queue is drained.
    Down,
    /// Pace at the estimated rate, with headroom for other flows.
    Cruise,
    /// Pace at the estimated rate without short-term bounds for one round, to refill the pipe.
    Refill,
    /// Pace above the estimated rate.
    Up,
}

/// BBR.ack_phase: part of the probe that arriving ACKs belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Probing-cycle state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// BBR.rounds_since_bw_probe.
    pub rounds_since_probe: u32,
    /// BBR.cycle_stamp: start of the phase.
    pub cycle_stamp: Time,
    /// BBR.bw_probe_wait: time until the next probe, drawn for each cycle.
    pub wait: Span,
    pub ack_phase: AckPhase,
    /// BBR.bw_probe_samples: rate samples belong to a probe, so their losses set the long-term bound.
    pub samples: bool,
    /// BBR.prev_probe_too_high: the last probe exceeded the loss threshold, so the next one ends when the long-term
    /// bound is reached.
    pub prev_too_high: bool,
    /// BBR.stopped_risky_probe: the current probe ended at the long-term bound. If its feedback shows no excessive
    /// loss, the next probe follows at once.
    stopped_risky: bool,
    /// BBR.bw_probe_up_rounds, BBR.bw_probe_up_acks, BBR.probe_up_cnt: the bound rises by one for each `up_cnt`
    /// segments delivered.
    pub up_rounds: u32,
    up_acks: u32,
    pub up_cnt: u32,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe {
            rounds_since_probe: 0,
            cycle_stamp: Time::ZERO,
            wait: Span::ZERO,
            ack_phase: AckPhase::Init,
            samples: false,
            prev_too_high: false,
            stopped_risky: false,
            up_rounds: 0,
            up_acks: 0,
            up_cnt: u32::MAX,
        }
    }
}

impl Bbr3 {
    /// BBRResetCongestionSignals.
    pub(super) fn forget_signals(&mut self) {
        self.bounds.reset_signals();
        (self.marks.in_round, self.marks.in_cycle) = (false, false);
    }

    /// BBRStartProbeBW_DOWN, BBRPickProbeWait: drain the queue that the probe built. The next probe starts in two to
    /// three seconds.
    pub(super) fn start_down(&mut self, now: Time) {
        self.forget_signals();
        self.probe.up_cnt = u32::MAX;
        self.probe.rounds_since_probe = self.stream.below(2) as u32;
        self.probe.wait = PROBE_WAIT
            + match self.flavour {
                Flavour::Draft06 => Span((self.stream.unit() * 1e9) as u64),
                Flavour::LinuxV3 => Span::from_us(self.stream.below(1_000_000)),
            };
        self.probe.cycle_stamp = now;
        self.probe.ack_phase = AckPhase::ProbeStopping;
        self.rounds.start();
        self.state = State::ProbeBw(Cycle::Down);
        self.settled = false;
    }

    /// BBRStartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        self.state = State::ProbeBw(Cycle::Cruise);
        self.settled = false;
        let bounds = &mut self.bounds;
        if self.flavour == Flavour::LinuxV3 && bounds.inflight_shortterm != UNBOUNDED {
            bounds.inflight_shortterm = bounds.inflight_shortterm.min(bounds.inflight_longterm);
        }
    }

    /// BBRStartProbeBW_REFILL. The following probe starts to grow as if it had already reached round `up_rounds`.
    pub(super) fn start_refill(&mut self, up_rounds: u32) {
        self.bounds.reset_shortterm();
        self.probe.stopped_risky = false;
        self.probe.up_rounds = up_rounds;
        self.probe.up_acks = 0;
        self.probe.ack_phase = AckPhase::Refilling;
        self.rounds.start();
        self.state = State::ProbeBw(Cycle::Refill);
        self.settled = false;
    }

    /// BBRStartProbeBW_UP.
    pub(super) fn start_up(&mut self, window: &Window, now: Time, bw: u64) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.rounds.start();
        self.full_pipe.reset(bw);
        self.probe.cycle_stamp = now;
        self.state = State::ProbeBw(Cycle::Up);
        self.settled = false;
        self.raise_slope(window);
    }

    /// BBRRaiseInflightLongtermSlope: the growth of the bound doubles with each round without losses: 1, 2, 4 segments
    /// per round.
    pub(super) fn raise_slope(&mut self, window: &Window) {
        let growth = 1_u32 << self.probe.up_rounds.min(30);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.up_cnt = (window.cwnd / growth).max(1);
    }

    /// BBRIsTimeToProbeBW, BBRIsRenoCoexistenceProbeTime (§5.3.3.5).
    fn time_to_probe(&mut self, window: &Window, ack: &AckSample) -> bool {
        if let Some(up_rounds) = self.reprobe_after_marks(ack) {
            self.start_refill(up_rounds);
            return true;
        }
        let rounds = self.target_inflight(window).min(RENO_ROUNDS);
        let due =
            ack.now > self.probe.cycle_stamp + self.probe.wait || self.probe.rounds_since_probe >= rounds;
        if due {
            self.start_refill(0);
        }
        due
    }

    /// BBRIsTimeToGoDown: the rate has stopped growing although the bound does not limit it, or a volume that was too
    /// high before is in flight again.
    fn time_to_go_down(&mut self, window: &Window, ack: &AckSample, in_net: u32, bw: u64) -> bool {
        if self.probe.prev_too_high && in_net >= self.bounds.inflight_longterm {
            self.probe.stopped_risky = true;
            return true;
        }
        if self.held_by_window(ack) && window.cwnd >= self.bounds.inflight_longterm {
            self.full_pipe.reset(bw); // the bound, not the path, limits the rate
            return false;
        }
        self.full_pipe.now
    }

    /// BBRHandleInflightTooHigh: the losses of a probe exceed the threshold, so the volume then in flight becomes the
    /// bound.
    pub(super) fn handle_too_high(
        &mut self,
        window: &Window,
        now: Time,
        inflight: u32,
        is_app_limited: bool,
    ) {
        self.probe.prev_too_high = true;
        self.probe.samples = false;
        if !is_app_limited {
            self.bounds.inflight_longterm = inflight.max(self.c.beta.of_volume(self.target_inflight(window)));
        }
        if self.state == State::ProbeBw(Cycle::Up) {
            self.start_down(now);
        }
    }

    /// Whether the window limits the flow. Linux uses its own flag, which is not relaxed in slow start.
    fn held_by_window(&self, ack: &AckSample) -> bool {
        match self.flavour {
            Flavour::Draft06 => ack.cwnd_limited,
            Flavour::LinuxV3 => ack.window_held,
        }
    }

    /// BBRAdaptLongTermModel. Return true if a cautious probe succeeded and the next one starts.
    fn adapt_longterm(&mut self, window: &Window, ack: &AckSample, rate: &RateSample) -> bool {
        if self.probe.ack_phase == AckPhase::ProbeStarting && self.rounds.round_start {
            self.probe.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe.ack_phase == AckPhase::ProbeStopping && self.rounds.round_start {
            self.probe.samples = false;
            self.probe.ack_phase = AckPhase::Init;
            if matches!(self.state, State::ProbeBw(_)) && !rate.is_app_limited {
                self.advance_bw_filter();
            }
            if matches!(self.state, State::ProbeBw(_))
                && self.probe.stopped_risky
                && !self.probe.prev_too_high
            {
                self.start_refill(0);
                return true;
            }
        }
        if self.too_high(rate) {
            if self.probe.samples {
                self.handle_too_high(window, ack.now, rate.tx_in_flight, rate.is_app_limited);
            }
            return false;
        }
        if self.bounds.inflight_longterm == UNBOUNDED {
            return false;
        }
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(rate.tx_in_flight);
        if self.state == State::ProbeBw(Cycle::Up) {
            self.probe_upwards(window, ack);
        }
        false
    }

    /// BBRProbeInflightLongtermUpward.
    fn probe_upwards(&mut self, window: &Window, ack: &AckSample) {
        if !self.held_by_window(ack) || window.cwnd < self.bounds.inflight_longterm {
            return;
        }
        self.probe.up_acks += ack.delivered;
        if self.probe.up_acks >= self.probe.up_cnt {
            let delta = self.probe.up_acks / self.probe.up_cnt;
            self.probe.up_acks -= delta * self.probe.up_cnt;
            self.bounds.inflight_longterm =
                self.bounds.inflight_longterm.saturating_add(delta).min(UNBOUNDED - 1);
            self.settled = false;
        }
        if self.rounds.round_start {
            self.raise_slope(window);
        }
    }

    /// BBRUpdateProbeBWCyclePhase: an ACK with a valid rate sample advances the cycle.
    pub(super) fn update_cycle(&mut self, window: &Window, ack: &AckSample, rate: &RateSample, bw: u64) {
        if !self.full_pipe.reached {
            return;
        }
        if self.adapt_longterm(window, ack, rate) {
            return;
        }
        let State::ProbeBw(cycle) = self.state else { return };
        let in_flight = self.in_net(ack.prior_in_flight, ack, ack.smss, window.pacing_rate);
        match cycle {
            Cycle::Down => {
                if !self.time_to_probe(window, ack)
                    && in_flight <= self.inflight_with_headroom()
                    && in_flight <= self.inflight(self.max_bw(), window, ack.smss)
                {
                    self.start_cruise(); // BBRIsTimeToCruise
                }
            }
            Cycle::Cruise => {
                self.time_to_probe(window, ack);
            }
            Cycle::Refill => {
                if self.rounds.round_start {
                    self.probe.samples = true;
                    self.start_up(window, ack.now, bw);
                }
            }
            Cycle::Up => {
                if self.time_to_go_down(window, ack, in_flight, bw) {
                    self.probe.prev_too_high = false;
                    self.start_down(ack.now);
                }
            }
        }
    }
}
