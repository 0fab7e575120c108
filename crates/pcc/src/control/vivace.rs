//! PCC Vivace (NSDI 2018) and PCC Proteus (SIGCOMM 2020): the gradient of the utility, measured by pairs of intervals
//! at r (1 +- epsilon), determines how the rate changes. Successive changes in one direction become larger.
//!
//! Variables: r (`base`), bit/s; tau, number of rounds in the same direction; k (`at_bound`), number of rounds in which
//! the change bound was reached. Gradients use rates in Mbit/s. Proteus adds votes of more pairs and removes noise from
//! RTT gradients and deviations before the utility is computed (see [`Vivace::filter`]).
//!
//! Differs: after the starting phase every move is preceded by pairs, as in the authors' user-space code. The paper has
//! a moving phase of single intervals.

use ackclock_core::Stream;

use super::{heads, length, PathView, Plan, RateControl};
use crate::interval::Measured;

/// Rule that turns the results of the pairs into a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Votes {
    /// All pairs must agree.
    Unanimous,
    /// A majority suffices to increase; all must agree to decrease (Proteus' primary).
    EasilyUp,
    /// All must agree to increase; one suffices to decrease (Proteus' scavenger).
    EasilyDown,
}

/// Constants of one variant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VivaceParams {
    /// Number of packets per RTT in the first interval.
    pub start_packets: f64,
    /// Relative size of a trial.
    pub epsilon: f64,
    /// Number of pairs of trials in a decision.
    pub pairs: u32,
    /// Rule that turns the results of the pairs into a decision.
    pub votes: Votes,
    /// theta_0: conversion factor from gradient to change of rate.
    pub theta: f64,
    /// omega_0: initial bound on a change, relative to the rate.
    pub omega: f64,
    /// delta: increase of the bound per round in which it is reached.
    pub delta: f64,
    /// Minimum change of the rate, bit/s, but at most epsilon times the rate.
    pub min_change: f64,
    /// Minimum rate, bit/s.
    pub min_rate: f64,
    /// Maximum rate, bit/s.
    pub max_rate: f64,
    /// Minimum number of packets in an interval.
    pub packets: f64,
    /// Minimum length of an interval, RTTs.
    pub rtts: f64,
    /// Whether noise in RTT gradients and deviations counts as zero.
    pub gates: bool,
}

impl VivaceParams {
    /// NSDI 2018, with the paper's bounds; minimum rate and change as in the user-space code.
    pub const VIVACE: VivaceParams = VivaceParams {
        start_packets: 10.0,
        epsilon: 0.05,
        pairs: 1,
        votes: Votes::Unanimous,
        theta: 1.0,
        omega: 0.05,
        delta: 0.1,
        min_change: 0.5e6,
        min_rate: 0.5e6,
        max_rate: 1e10,
        packets: 10.0,
        rtts: 1.0,
        gates: false,
    };
    /// Primary of SIGCOMM 2020.
    pub const PROTEUS_P: VivaceParams =
        VivaceParams { pairs: 3, votes: Votes::EasilyUp, delta: 0.05, gates: true, ..VivaceParams::VIVACE };
    /// Scavenger of SIGCOMM 2020.
    pub const PROTEUS_S: VivaceParams =
        VivaceParams { pairs: 2, votes: Votes::EasilyDown, ..VivaceParams::PROTEUS_P };
}

const MAX_PAIRS: usize = 3;

#[derive(Clone, Copy, Default)]
struct Trial {
    utility: f64,
    loss: f64,
}

#[derive(Clone)]
enum Phase {
    Starting { rate: f64, known: Option<(f64, f64)> },
    Probing(Probe),
}

#[derive(Clone)]
struct Probe {
    up: [bool; 2 * MAX_PAIRS],
    trials: [Trial; 2 * MAX_PAIRS],
    planned: u32,
    known: u32,
    /// Trials of the first measurement, if it is being repeated because of a surprising result.
    first_look: Option<[Trial; 2 * MAX_PAIRS]>,
}

/// Algorithm state.
#[derive(Clone)]
pub struct Vivace {
    params: VivaceParams,
    stream: Stream,
    phase: Phase,
    base: f64,
    epoch: u32,
    begun: bool,
    /// Direction of the last change, +1 or -1; 0 before the first.
    direction: i8,
    tau: u32,
    at_bound: u32,
    trend: Trend,
    deviation: Band,
}

impl Vivace {
    /// Create the algorithm in its starting phase.
    pub fn new(params: VivaceParams, stream: Stream) -> Vivace {
        Vivace {
            phase: Phase::Starting { rate: params.min_rate, known: None },
            base: params.min_rate,
            epoch: 0,
            begun: false,
            direction: 0,
            tau: 0,
            at_bound: 0,
            trend: Trend::default(),
            deviation: Band::default(),
            stream,
            params,
        }
    }

    /// Remove noise from the measurements of an interval (Proteus). A gradient smaller than its standard error counts
    /// only if the trend over several intervals is unusual. An RTT deviation counts only if it exceeds its mean by four
    /// mean deviations and is at least 1 ms.
    pub fn filter(&mut self, measured: &mut Measured) {
        if !self.params.gates || measured.rtt_mean == 0.0 {
            return;
        }
        let trending = self.trend.is_unusual(measured);
        if libm::fabs(measured.rtt_gradient) < measured.gradient_error && !trending {
            measured.rtt_gradient = 0.0;
        }
        let deviation = measured.rtt_deviation;
        let unusual = self.deviation.exceeds(deviation, 4.0);
        self.deviation.update(deviation);
        if !unusual || deviation < 1e-3 {
            measured.rtt_deviation = 0.0;
        }
    }

    fn clamp(&self, rate: f64) -> f64 {
        rate.clamp(self.params.min_rate, self.params.max_rate)
    }

    fn probe(&mut self, base: f64, first_look: Option<[Trial; 2 * MAX_PAIRS]>) {
        self.base = self.clamp(base);
        self.epoch += 1;
        let mut up = [false; 2 * MAX_PAIRS];
        for pair in up.chunks_exact_mut(2) {
            pair[0] = heads(&mut self.stream);
            pair[1] = !pair[0];
        }
        let trials = [Trial::default(); 2 * MAX_PAIRS];
        self.phase = Phase::Probing(Probe { up, trials, planned: 0, known: 0, first_look });
    }

    fn trial_rate(&self, up: bool) -> f64 {
        self.base * if up { 1.0 + self.params.epsilon } else { 1.0 - self.params.epsilon }
    }

    fn conclude(&mut self) {
        let Phase::Probing(probe) = &self.phase else { return };
        let p = self.params;
        let (up, first_look) = (probe.up, probe.first_look);
        // trials sorted by direction: upper one first in each pair
        let mut trials = [Trial::default(); 2 * MAX_PAIRS];
        for pair in 0..p.pairs as usize {
            let (a, b) = (probe.trials[2 * pair], probe.trials[2 * pair + 1]);
            (trials[2 * pair], trials[2 * pair + 1]) = if up[2 * pair] { (a, b) } else { (b, a) };
        }
        match first_look {
            None if trials.chunks_exact(2).take(p.pairs as usize).any(|t| t[0].loss < t[1].loss) => {
                return self.probe(self.base, Some(trials)); // higher rate but less loss: measure again
            }
            Some(first) => {
                for (now, before) in trials.iter_mut().zip(first) {
                    now.utility = (now.utility + before.utility) / 2.0;
                }
            }
            None => {}
        }
        let mbps = self.base * 1e-6;
        let gradient = |t: &[Trial]| (t[0].utility - t[1].utility) / (2.0 * p.epsilon * mbps);
        let pairs = || trials.chunks_exact(2).take(p.pairs as usize);
        let ups = pairs().filter(|t| gradient(t) > 0.0).count() as u32;
        let goes_up = match p.votes {
            Votes::EasilyUp => 2 * ups > p.pairs,
            _ => ups == p.pairs,
        };
        let goes_down = match p.votes {
            Votes::EasilyDown => ups < p.pairs,
            _ => ups == 0,
        };
        if !goes_up && !goes_down {
            (self.direction, self.tau, self.at_bound) = (0, 0, 0);
            return self.probe(self.base, None);
        }
        let agreeing = || pairs().map(gradient).filter(|g| (*g > 0.0) == goes_up);
        let mean = agreeing().sum::<f64>() / agreeing().count().max(1) as f64;
        self.step(mean);
    }

    /// Change the rate by a gradient, in utility per Mbit/s.
    fn step(&mut self, gradient: f64) {
        let p = self.params;
        let direction = if gradient > 0.0 { 1 } else { -1 };
        if direction == self.direction {
            self.tau += 1;
        } else {
            (self.direction, self.tau, self.at_bound) = (direction, 1, 0);
        }
        // m(tau)
        let confidence = if self.tau <= 3 { self.tau } else { 2 * self.tau - 3 } as f64;
        let mut change = libm::fabs(confidence * p.theta * gradient) * 1e6;
        let bound = (p.omega + self.at_bound as f64 * p.delta) * self.base;
        if change > bound {
            change = bound;
            self.at_bound += 1;
        } else {
            // the smallest k with a bound that permits the change
            let k = libm::ceil((change / self.base - p.omega).max(0.0) / p.delta);
            self.at_bound = self.at_bound.min(k as u32);
        }
        change = change.max(p.min_change.min(self.base * p.epsilon));
        self.probe(self.base + direction as f64 * change, None);
    }
}

impl RateControl for Vivace {
    fn begin(&mut self, path: &PathView) -> Plan {
        let p = self.params;
        if !std::mem::replace(&mut self.begun, true) {
            let rate = p.start_packets * path.packet_bits() / path.srtt.as_secs().max(1e-6);
            self.phase = Phase::Starting { rate: self.clamp(rate), known: None };
        }
        let (rate, number) = match &mut self.phase {
            Phase::Starting { rate, .. } => {
                let now = *rate;
                *rate = (*rate * 2.0).min(p.max_rate);
                (now, 0)
            }
            Phase::Probing(probe) if probe.planned < 2 * p.pairs => {
                let number = probe.planned;
                probe.planned += 1;
                let up = probe.up[number as usize];
                (self.trial_rate(up), number)
            }
            Phase::Probing(_) => (self.base, FILLER),
        };
        let rate = self.clamp(rate);
        let length = length(rate, p.packets, path.packet_bits(), p.rtts, path.srtt);
        Plan { rate, length, purpose: (self.epoch & EPOCHS) << NUMBER_BITS | number }
    }

    fn on_result(&mut self, measured: &Measured, utility: f64, purpose: u32) -> bool {
        let (epoch, number) = (purpose >> NUMBER_BITS, purpose & FILLER);
        if epoch != self.epoch & EPOCHS || number == FILLER {
            return false;
        }
        let vanished = measured.lost == measured.sent;
        match &mut self.phase {
            Phase::Starting { rate, .. } if measured.limited => {
                if *rate <= measured.rate * 2.0 {
                    *rate = measured.rate; // repeat the last planned rate
                }
                false
            }
            Phase::Starting { known, .. } => {
                let before = known.replace((measured.rate, utility));
                match before {
                    Some((rate, before)) if utility < before || vanished => {
                        self.probe(rate, None);
                        true
                    }
                    _ => false,
                }
            }
            Phase::Probing(probe) if measured.limited => {
                // uninformative: repeat this trial and all trials started since
                if probe.planned == number + 1 {
                    probe.planned = number;
                } else {
                    self.probe(self.base, None);
                }
                true
            }
            Phase::Probing(_) if vanished => {
                (self.direction, self.tau, self.at_bound) = (0, 0, 0);
                self.probe(self.base / 2.0, None);
                true
            }
            Phase::Probing(probe) => {
                probe.trials[number as usize] = Trial { utility, loss: measured.loss() };
                probe.known += 1;
                if probe.known < 2 * self.params.pairs {
                    return false;
                }
                self.conclude();
                true
            }
        }
    }

    fn rate(&self) -> f64 {
        match &self.phase {
            Phase::Starting { rate, .. } => *rate,
            Phase::Probing(probe) if probe.planned < 2 * self.params.pairs => {
                self.trial_rate(probe.up[probe.planned as usize])
            }
            Phase::Probing(_) => self.base,
        }
    }

    fn state(&self) -> &'static str {
        match self.phase {
            Phase::Starting { .. } => "starting",
            Phase::Probing(_) => "probing",
        }
    }
}

/// Running mean and mean deviation, with gain 0.1.
#[derive(Clone, Copy, Default)]
struct Band {
    mean: f64,
    deviation: f64,
    samples: u32,
}

impl Band {
    fn update(&mut self, x: f64) {
        if self.samples == 0 {
            self.mean = x;
        } else {
            self.deviation += 0.1 * (libm::fabs(x - self.mean) - self.deviation);
            self.mean += 0.1 * (x - self.mean);
        }
        self.samples = self.samples.saturating_add(1);
    }

    /// Whether `x` exceeds the mean by more than `deviations` mean deviations.
    fn exceeds(&self, x: f64, deviations: f64) -> bool {
        self.samples > 0 && x > self.mean + deviations * self.deviation
    }
}

/// Mean RTTs of the last intervals, and the usual range of their slope.
#[derive(Clone, Copy, Default)]
struct Trend {
    rtts: [(f64, f64); TREND],
    n: usize,
    band: Band,
}

const TREND: usize = 6;

impl Trend {
    /// Add an interval. Return whether the slope over the last six exceeds its mean by two deviations.
    fn is_unusual(&mut self, measured: &Measured) -> bool {
        self.rtts.rotate_left(1);
        self.rtts[TREND - 1] = (measured.start.as_secs(), measured.rtt_mean);
        self.n += 1;
        if self.n < TREND {
            return false;
        }
        let n = TREND as f64;
        let (t, r) = self.rtts.iter().fold((0.0, 0.0), |(t, r), x| (t + x.0 / n, r + x.1 / n));
        let (mut tt, mut tr) = (0.0, 0.0);
        for (ti, ri) in self.rtts {
            tt += (ti - t) * (ti - t);
            tr += (ti - t) * (ri - r);
        }
        let slope = if tt > 0.0 { tr / tt } else { 0.0 };
        let unusual = self.band.exceeds(slope, 2.0);
        self.band.update(slope);
        unusual
    }
}

const NUMBER_BITS: u32 = 3;
const FILLER: u32 = (1 << NUMBER_BITS) - 1;
const EPOCHS: u32 = u32::MAX >> NUMBER_BITS;

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{Span, Time};

    fn path(rtt_ms: u64) -> PathView {
        let rtt = Span::from_ms(rtt_ms);
        PathView { now: Time::ZERO, srtt: rtt, min_rtt: rtt, packet_bytes: 1500 }
    }

    #[test]
    fn rounds_at_the_bound_widen_it_and_a_reversal_narrows_it() {
        let mut v = Vivace::new(VivaceParams::VIVACE, Stream::new(1, "test"));
        v.probe(100e6, None);
        let mut rates = Vec::new();
        for _ in 0..3 {
            v.step(1e3);
            rates.push(v.base / 1e6);
        }
        // omega_0 + k delta = 0.05, 0.15, 0.25 of the rate
        for (rate, expected) in rates.iter().zip([105.0, 105.0 * 1.15, 105.0 * 1.15 * 1.25]) {
            assert!((rate - expected).abs() < 1e-9, "{rates:?}");
        }
        let before = v.base;
        v.step(-1e3);
        assert!((v.base / before - 0.95).abs() < 1e-12);
    }

    #[test]
    fn a_small_gradient_moves_by_confidence_times_gradient() {
        let mut v =
            Vivace::new(VivaceParams { min_change: 0.0, ..VivaceParams::VIVACE }, Stream::new(1, "test"));
        v.probe(100e6, None);
        let mut moved = Vec::new();
        for _ in 0..6 {
            let before = v.base;
            v.step(0.1);
            moved.push(((v.base - before) / 1e5).round());
        }
        assert_eq!(moved, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]); // m(tau) x 0.1 Mbit/s
    }

    #[test]
    fn intervals_last_an_rtt() {
        let mut v = Vivace::new(VivaceParams::VIVACE, Stream::new(1, "test"));
        let plan = v.begin(&path(100));
        assert_eq!(plan.rate, 10.0 * 12_000.0 / 0.1);
        assert_eq!(plan.length, Span::from_ms(100));
    }
}
