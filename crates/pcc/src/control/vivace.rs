//! PCC Vivace (NSDI 2018) and PCC Proteus (SIGCOMM 2020): the utility's gradient, measured by pairs of intervals at
//! r (1 +- epsilon), sets how far the rate moves; the same direction again and again moves it further.
//!
//! Variables, rates in Mbit/s inside: r (`base`), bit/s; tau, rounds in the same direction; k (`at_bound`), rounds in
//! which the change bound was met. Proteus adds votes of more pairs, and gates out RTT gradients and deviations that are
//! noise (a change of the utility's input, see [`Vivace::filter`]).
//!
//! Differs: after the starting phase every move is preceded by pairs, as in the authors' user-space code; the paper's
//! text has a moving phase of single intervals.

use ackclock_core::Stream;

use super::{heads, length, PathView, Plan, RateControl};
use crate::interval::Measured;

/// How pairs vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Votes {
    /// All must agree.
    Unanimous,
    /// A majority goes up, only all together go down (Proteus' primary).
    EasilyUp,
    /// Only all together go up, one suffices to go down (Proteus' scavenger).
    EasilyDown,
}

/// Constants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VivaceParams {
    /// Packets per RTT of the first interval.
    pub start_packets: f64,
    /// Relative size of a trial.
    pub epsilon: f64,
    /// Pairs of trials of a decision.
    pub pairs: u32,
    /// Decision rule of the pairs.
    pub votes: Votes,
    /// theta_0.
    pub theta: f64,
    /// omega_0.
    pub omega: f64,
    /// delta: increase per round at the bound.
    pub delta: f64,
    /// Smallest change and minimum rate, bit/s.
    pub min_change: f64,
    /// Minimum rate, bit/s.
    pub min_rate: f64,
    /// Maximum rate, bit/s.
    pub max_rate: f64,
    /// Minimum of packets and RTTs in an interval.
    pub packets: f64,
    /// Minimum length of an interval, RTTs.
    pub rtts: f64,
    /// Gradients and deviations that are noise count as zero.
    pub gates: bool,
}

impl VivaceParams {
    /// NSDI 2018; bounds as in the paper, minimum rate and change as in the user-space code.
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
    /// SIGCOMM 2020, primary.
    pub const PROTEUS_P: VivaceParams =
        VivaceParams { pairs: 3, votes: Votes::EasilyUp, delta: 0.05, gates: true, ..VivaceParams::VIVACE };
    /// SIGCOMM 2020, scavenger.
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
    /// A second look at a surprising result: the first one's trials.
    first_look: Option<[Trial; 2 * MAX_PAIRS]>,
}

/// State of the algorithm.
#[derive(Clone)]
pub struct Vivace {
    params: VivaceParams,
    stream: Stream,
    phase: Phase,
    base: f64,
    epoch: u32,
    begun: bool,
    /// +1, -1; 0 = none yet.
    direction: i8,
    tau: u32,
    at_bound: u32,
    trend: Trend,
    deviation: Band,
}

impl Vivace {
    /// An algorithm that has not begun.
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

    /// Take what is noise out of an interval's figures (Proteus): a gradient smaller than its own standard error counts
    /// only if the trend over several intervals leaves its usual band; a deviation of the RTT only if it exceeds its
    /// mean by four mean deviations and 1 ms.
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
        // by direction: the trials in order of their pairs, first the upper one of each
        let mut trials = [Trial::default(); 2 * MAX_PAIRS];
        for pair in 0..p.pairs as usize {
            let (a, b) = (probe.trials[2 * pair], probe.trials[2 * pair + 1]);
            (trials[2 * pair], trials[2 * pair + 1]) = if up[2 * pair] { (a, b) } else { (b, a) };
        }
        match first_look {
            None if trials.chunks_exact(2).take(p.pairs as usize).any(|t| t[0].loss < t[1].loss) => {
                return self.probe(self.base, Some(trials)); // more rate, less loss? once more
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

    /// Move by a gradient, in utility per Mbit/s.
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
            // the smallest k whose bound would still hold it
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
                    *rate = measured.rate; // the rate planned last is still to be tried
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
                // no information: this trial again, and with it all that have begun since
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

/// A running mean with its mean deviation, gain 0.1.
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

    /// Whether `x` exceeds the mean by more than this many deviations.
    fn exceeds(&self, x: f64, deviations: f64) -> bool {
        self.samples > 0 && x > self.mean + deviations * self.deviation
    }
}

/// The mean RTTs of the last intervals, and the usual range of their slope.
#[derive(Clone, Copy, Default)]
struct Trend {
    rtts: [(f64, f64); TREND],
    n: usize,
    band: Band,
}

const TREND: usize = 6;

impl Trend {
    /// Add an interval; returns whether the slope over the last six leaves its usual band by two deviations.
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
