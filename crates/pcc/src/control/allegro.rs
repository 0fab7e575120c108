//! PCC Allegro (NSDI 2015): double the rate while utility rises. Then try rates slightly above and below, in pairs of
//! intervals in random order, and move in the direction that all pairs favour, in growing steps, while utility rises.
//!
//! Variables: r (`base`), bit/s; epsilon, relative size of a trial; n (`step`), number of the step. The constants of
//! the public implementations differ; each has its set of [`AllegroParams`].
//!
//! Differs: effects of an implementation's clock or threads are not modelled here (see `ackclock_core::pacing`). The
//! RTT term in the utility of "usp" is omitted. "ker" ignores the first and last five packets of an interval, which
//! is not needed here because an interval spans a whole number of inter-packet gaps.
//!
//! Length: one state machine whose variants differ in constants only; a fifth of the file is their tables.

use ackclock_core::Stream;

use super::{heads, length, PathView, Plan, RateControl};
use crate::interval::Measured;

/// Initial rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Start {
    /// Number of packets per RTT.
    PerRtt(f64),
    /// Fixed rate, bit/s.
    Rate(f64),
}

/// Growth in the starting phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// With each interval, double the rate without waiting for results.
    Double,
    /// With each result, double the rate.
    DoubleOnResult,
    /// With each result, add the smaller of the rate and the delivery rate.
    AddDelivered,
}

/// Condition that ends the starting phase, and the rate after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Exit {
    /// When utility falls, return to the last rate at which it rose.
    LastGood,
    /// When utility falls, return to the last good rate, less the fraction lost.
    LastGoodLessLoss,
    /// When utility falls, halve the rate.
    Half,
    /// When utility per rate falls below this fraction of the previous value, return to the previous rate.
    BelowShare(f64),
}

/// Interval length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// Ten packets or m RTTs, whichever is longer, with m uniform between these bounds.
    Uniform(f64, f64),
    /// Ten packets or m RTTs, whichever is longer, with m drawn from low, low + 0.1, and so on up to high.
    Tenths(f64, f64),
    /// m RTTs, with m from {1.5, 1.6, 1.7}, if more than ten packets fit in 1.1 RTTs; otherwise ten packets or 5 ms,
    /// whichever is longer.
    Modong,
    /// Minimum number of packets and of RTTs.
    AtLeast(f64, f64),
}

/// First rate after a decision, relative to the base rate r of the winning trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstMove {
    /// r (1 +- e).
    Trial,
    /// r (1 +- e)^2.
    TrialSquared,
    /// 1 % after trials of 1 %, 2 % after 2 and 3 %, 3 % after 4 and 5 %.
    ByTrialSize,
    /// r (1 +- e)(1 +- step).
    TrialAndStep,
}

/// Constants of one implementation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AllegroParams {
    /// Initial rate.
    pub start: Start,
    /// Growth in the starting phase.
    pub growth: Growth,
    /// How the starting phase ends: condition and resulting rate.
    pub exit: Exit,
    /// Whether the first interval's utility is halved.
    pub first_counts_half: bool,
    /// Fraction of the rate used while a result of the starting phase is pending.
    pub start_filler: f64,
    /// Interval length.
    pub length: Length,
    /// Minimum relative size of a trial.
    pub epsilon_min: f64,
    /// Maximum relative size of a trial.
    pub epsilon_max: f64,
    /// Whether the minimum trial size follows the maximum.
    pub epsilon_wraps: bool,
    /// Number of pairs of trials, all of which must agree.
    pub pairs: u32,
    /// Whether all pairs use the same order.
    pub same_order: bool,
    /// Whether the rate of the last trial is kept instead of r while results are pending.
    pub keeps_last_trial: bool,
    /// Whether each trial waits for the previous result.
    pub sequential: bool,
    /// Change of the rate once the trials agree.
    pub first_move: FirstMove,
    /// Step size unit: step n is n times this size.
    pub step: f64,
    /// Maximum step size.
    pub step_max: f64,
    /// Number of the first step.
    pub first_step: u32,
    /// Whether the first interval at the new rate only sets the reference.
    pub first_move_is_reference: bool,
    /// Whether a failed step is reverted by its own size instead of to the previous rate.
    pub reverts_by_size: bool,
    /// Minimum change of a step, packets per interval.
    pub least_packets: f64,
    /// Threshold and margin in bit/s: a rate above the threshold that exceeds the measured sending rate by more than
    /// the margin is reduced to the sending rate. Like the authors' code this uses all packets sent in the interval,
    /// including lost ones, so it detects a slow host and ignores loss.
    pub resync: Option<(f64, f64)>,
    /// Minimum rate, bit/s.
    pub min_rate: f64,
    /// Maximum rate, bit/s.
    pub max_rate: f64,
}

impl AllegroParams {
    /// The algorithm as in the paper.
    pub const PAPER: AllegroParams = AllegroParams {
        start: Start::PerRtt(2.0),
        growth: Growth::Double,
        exit: Exit::LastGood,
        first_counts_half: false,
        start_filler: 1.0,
        length: Length::Uniform(1.7, 2.2),
        epsilon_min: 0.01,
        epsilon_max: 0.05,
        epsilon_wraps: false,
        pairs: 2,
        same_order: false,
        keeps_last_trial: false,
        sequential: false,
        first_move: FirstMove::Trial,
        step: 0.01,
        step_max: 1.0,
        first_step: 1,
        first_move_is_reference: false,
        reverts_by_size: false,
        least_packets: 0.0,
        resync: None,
        min_rate: MIN_RATE,
        max_rate: MAX_RATE,
    };

    /// The authors' code of 2014 to 2016 (modong/pcc).
    pub const MODONG: AllegroParams = AllegroParams {
        start: Start::Rate(2e6),
        first_counts_half: true,
        length: Length::Modong,
        epsilon_wraps: true,
        keeps_last_trial: true,
        first_move: FirstMove::ByTrialSize,
        first_step: 2,
        first_move_is_reference: true,
        reverts_by_size: true,
        resync: Some((200e6, 30e6)),
        ..AllegroParams::PAPER
    };

    /// Hercules (netsec-ethz/hercules).
    pub const HERC: AllegroParams = AllegroParams {
        start: Start::PerRtt(1.0),
        growth: Growth::DoubleOnResult,
        exit: Exit::LastGoodLessLoss,
        length: Length::Tenths(1.7, 2.2),
        same_order: true,
        sequential: true,
        least_packets: 10.0,
        min_rate: 12e6, // 1000 packets/s of 1500 bytes
        ..AllegroParams::PAPER
    };

    /// The kernel module (PCCproject/PCC-Kernel, Allegro).
    pub const KER: AllegroParams = AllegroParams {
        start: Start::Rate(512.0 * 1024.0 * 8.0),
        growth: Growth::AddDelivered,
        exit: Exit::BelowShare(0.75),
        length: Length::AtLeast(40.0, 1.0),
        first_move: FirstMove::TrialSquared,
        first_move_is_reference: true,
        step_max: 0.05,
        min_rate: 8192.0,
        ..AllegroParams::PAPER
    };

    /// The user-space code (PCCproject/PCC-Uspace) when it runs Allegro.
    pub const USP: AllegroParams = AllegroParams {
        start: Start::PerRtt(10.0),
        growth: Growth::DoubleOnResult,
        exit: Exit::Half,
        start_filler: 0.5,
        length: Length::AtLeast(10.0, 1.0),
        epsilon_min: 0.05,
        pairs: 3,
        first_move: FirstMove::TrialAndStep,
        first_move_is_reference: true,
        step: 0.02,
        step_max: 0.10,
        first_step: 2,
        ..AllegroParams::PAPER
    };
}

/// Two 1500-byte packets per second. Differs: the paper gives no minimum rate.
const MIN_RATE: f64 = 24_000.0;
/// 10 Gbit/s, because the starting phase would never end on links without a rate limit.
const MAX_RATE: f64 = 1e10;

/// Algorithm state.
#[derive(Clone)]
pub struct Allegro {
    params: AllegroParams,
    stream: Stream,
    phase: Phase,
    /// r, bit/s.
    base: f64,
    /// Number of the current phase; results that carry a smaller number are ignored.
    epoch: u32,
    first_rtt: bool,
}

#[derive(Clone)]
enum Phase {
    Starting { rate: f64, planned: u32, known: Option<Known>, waiting: bool },
    Decision(Decision),
    Adjusting(Adjusting),
}

#[derive(Clone, Copy)]
struct Known {
    rate: f64,
    utility: f64,
}

#[derive(Clone)]
struct Decision {
    epsilon: f64,
    /// Direction of each trial: whether it raises the rate.
    up: [bool; 2 * MAX_PAIRS],
    planned: u32,
    utility: [f64; 2 * MAX_PAIRS],
    known: u32,
}

#[derive(Clone)]
struct Adjusting {
    up: bool,
    /// Number of the current step; 0 while the reference is measured.
    step: u32,
    /// Rate and utility before the step.
    before: Known,
    rate: f64,
    size: f64,
    planned: bool,
    /// Size of the trials that led to this move.
    epsilon: f64,
}

const MAX_PAIRS: usize = 3;
/// Layout of a purpose: epoch, and interval number within it. The last number marks intervals that test nothing.
const NUMBER_BITS: u32 = 3;
const FILLER: u32 = (1 << NUMBER_BITS) - 1;
const EPOCHS: u32 = u32::MAX >> NUMBER_BITS;

impl Allegro {
    /// Create the algorithm in its starting phase.
    pub fn new(params: AllegroParams, stream: Stream) -> Allegro {
        let rate = match params.start {
            Start::Rate(rate) => rate,
            Start::PerRtt(_) => params.min_rate,
        };
        Allegro {
            phase: Phase::Starting { rate, planned: 0, known: None, waiting: false },
            base: rate,
            epoch: 0,
            first_rtt: true,
            stream,
            params,
        }
    }

    /// Current trial size; 0 outside of decisions.
    pub fn epsilon(&self) -> f64 {
        match &self.phase {
            Phase::Decision(d) => d.epsilon,
            _ => 0.0,
        }
    }

    fn clamp(&self, rate: f64) -> f64 {
        rate.clamp(self.params.min_rate, self.params.max_rate)
    }

    fn decide(&mut self, base: f64, epsilon: f64) {
        self.base = self.clamp(base);
        self.epoch += 1;
        let pairs = self.params.pairs as usize;
        let mut up = [false; 2 * MAX_PAIRS];
        let mut first = heads(&mut self.stream);
        for pair in 0..pairs {
            if pair > 0 && !self.params.same_order {
                first = heads(&mut self.stream);
            }
            (up[2 * pair], up[2 * pair + 1]) = (first, !first);
        }
        let utility = [0.0; 2 * MAX_PAIRS];
        self.phase = Phase::Decision(Decision { epsilon, up, planned: 0, utility, known: 0 });
    }

    fn trial_rate(base: f64, epsilon: f64, up: bool) -> f64 {
        base * if up { 1.0 + epsilon } else { 1.0 - epsilon }
    }

    /// Decide from the results of all trials.
    fn conclude(&mut self) {
        let Phase::Decision(Decision { epsilon, up, utility, .. }) = self.phase else { return };
        let p = self.params;
        let pairs = p.pairs as usize;
        let favours_up = |pair: usize| {
            let (a, b) = (utility[2 * pair], utility[2 * pair + 1]);
            if a == b {
                return None;
            }
            Some((a > b) == up[2 * pair])
        };
        let first = favours_up(0);
        if first.is_none() || (1..pairs).any(|pair| favours_up(pair) != first) {
            let larger = epsilon + p.epsilon_min.min(0.01);
            let epsilon = match larger > p.epsilon_max + 1e-9 {
                true if p.epsilon_wraps => p.epsilon_min,
                true => p.epsilon_max,
                false => larger,
            };
            return self.decide(self.base, epsilon);
        }
        let up_wins = first == Some(true);
        let sign = if up_wins { 1.0 } else { -1.0 };
        let size = match p.first_move {
            FirstMove::ByTrialSize if epsilon < 0.015 => 0.01,
            FirstMove::ByTrialSize if epsilon < 0.035 => 0.02,
            FirstMove::ByTrialSize => 0.03,
            _ => epsilon,
        };
        let mut rate = self.base * (1.0 + sign * size);
        match p.first_move {
            FirstMove::TrialSquared => rate *= 1.0 + sign * epsilon,
            FirstMove::TrialAndStep => rate *= 1.0 + sign * p.step,
            _ => {}
        }
        let winners = (0..2 * pairs).filter(|&i| up[i] == up_wins);
        let mean = winners.map(|i| utility[i]).sum::<f64>() / pairs as f64;
        let before = Known { rate: self.clamp(rate), utility: mean };
        self.epoch += 1;
        let mut next = Adjusting {
            up: up_wins,
            step: p.first_step - 1,
            before,
            rate: before.rate,
            size,
            planned: false,
            epsilon,
        };
        if p.first_move_is_reference {
            next.step = 0;
        } else {
            self.advance(&mut next, 0.0);
        }
        self.base = next.rate;
        self.phase = Phase::Adjusting(next);
    }

    /// Plan the next step.
    fn advance(&self, adjusting: &mut Adjusting, per_interval: f64) {
        let p = &self.params;
        adjusting.step = (adjusting.step + 1).max(p.first_step);
        adjusting.size = (adjusting.step as f64 * p.step).min(p.step_max);
        let mut change = adjusting.before.rate * adjusting.size;
        if p.least_packets > 0.0 && per_interval > 0.0 {
            change = change.max(p.least_packets * adjusting.before.rate / per_interval);
        }
        let sign = if adjusting.up { 1.0 } else { -1.0 };
        adjusting.rate = self.clamp(adjusting.before.rate + sign * change);
        adjusting.planned = false;
    }

    fn on_start(&mut self, measured: &Measured, utility: f64) -> bool {
        let p = self.params;
        let epoch = self.epoch;
        let Phase::Starting { rate, known, waiting, .. } = &mut self.phase else { return false };
        let utility = if known.is_none() && p.first_counts_half { utility / 2.0 } else { utility };
        let now = Known { rate: measured.rate, utility };
        let vanished = measured.lost == measured.sent;
        let fell = known.is_some_and(|before| match p.exit {
            Exit::BelowShare(share) => now.utility / now.rate < share * (before.utility / before.rate),
            _ => now.utility < before.utility,
        });
        if let Some(before) = known.filter(|_| fell || vanished) {
            let base = match p.exit {
                Exit::Half => now.rate * 0.5,
                Exit::LastGoodLessLoss => before.rate * (1.0 - measured.loss()),
                _ => before.rate,
            };
            self.decide(base, p.epsilon_min);
            return true;
        }
        *known = Some(now);
        match p.growth {
            Growth::Double => return false,
            Growth::DoubleOnResult => *rate = now.rate * 2.0,
            Growth::AddDelivered => *rate = now.rate + now.rate.min(measured.throughput_mbps() * 1e6),
        }
        *rate = rate.clamp(p.min_rate, p.max_rate);
        *waiting = false;
        self.epoch = epoch + 1;
        true
    }

    /// Repeat the rate of an interval in which the application ran out of data, because the interval is
    /// uninformative. Otherwise the rate would double with every piece of data that an application sends.
    fn start_again_at(&mut self, limited: f64) {
        let Phase::Starting { rate, waiting, .. } = &mut self.phase else { return };
        *waiting = false;
        if self.params.growth == Growth::Double && *rate <= limited * 2.0 {
            *rate = limited;
        }
    }

    fn on_trial(&mut self, measured: &Measured, utility: f64, number: u32) -> bool {
        let p = self.params;
        let Phase::Decision(decision) = &mut self.phase else { return false };
        if measured.limited {
            // uninformative: repeat this trial and all trials started since
            if decision.planned == number + 1 {
                decision.planned = number;
            } else {
                let epsilon = decision.epsilon;
                self.decide(self.base, epsilon);
            }
            return true;
        }
        decision.utility[number as usize] = utility;
        decision.known += 1;
        if decision.known < 2 * p.pairs {
            return p.sequential; // whether the next trial may begin
        }
        self.conclude();
        true
    }

    fn on_step(&mut self, measured: &Measured, utility: f64) -> bool {
        let p = self.params;
        let Phase::Adjusting(adjusting) = &mut self.phase else { return false };
        if measured.limited {
            adjusting.planned = false; // no information: repeat this step
            return true;
        }
        let Adjusting { up, step, before, rate, size, epsilon, .. } = *adjusting;
        if step > 0 && utility < before.utility {
            let sign = if up { 1.0 } else { -1.0 };
            let back = if p.reverts_by_size { rate * (1.0 - sign * size) } else { before.rate };
            self.decide(back, p.epsilon_min);
            return true;
        }
        let mut next =
            Adjusting { up, step, before: Known { rate, utility }, rate, size, planned: false, epsilon };
        self.advance(&mut next, measured.sent as f64);
        if next.rate == rate {
            self.decide(rate, p.epsilon_min); // the rate is at its minimum or maximum
            return true;
        }
        self.epoch += 1;
        self.base = next.rate;
        self.phase = Phase::Adjusting(next);
        true
    }
}

impl RateControl for Allegro {
    fn begin(&mut self, path: &PathView) -> Plan {
        let p = self.params;
        if std::mem::take(&mut self.first_rtt) {
            if let (Start::PerRtt(packets), Phase::Starting { rate, .. }) = (p.start, &mut self.phase) {
                *rate = (packets * path.packet_bits() / path.srtt.as_secs().max(1e-6)).max(p.min_rate);
                self.base = *rate;
            }
        }
        let (rate, number) = match &mut self.phase {
            Phase::Starting { rate, planned, waiting, .. } => {
                let now = *rate;
                if p.growth == Growth::Double {
                    *rate = (*rate * 2.0).min(p.max_rate);
                    *planned += 1;
                    (now, 0)
                } else if std::mem::replace(waiting, true) {
                    (now * p.start_filler, FILLER)
                } else {
                    (now, 0)
                }
            }
            Phase::Decision(d) => {
                let ready = d.planned < 2 * p.pairs && (!p.sequential || d.planned == d.known);
                if ready {
                    let number = d.planned;
                    d.planned += 1;
                    (Allegro::trial_rate(self.base, d.epsilon, d.up[number as usize]), number)
                } else if p.keeps_last_trial && d.planned > 0 {
                    let last = d.up[d.planned as usize - 1];
                    (Allegro::trial_rate(self.base, d.epsilon, last), FILLER)
                } else {
                    (self.base, FILLER)
                }
            }
            Phase::Adjusting(a) => {
                let number = if std::mem::replace(&mut a.planned, true) { FILLER } else { 0 };
                (a.rate, number)
            }
        };
        let rate = self.clamp(rate);
        let m = match p.length {
            Length::Uniform(low, high) => low + (high - low) * self.stream.unit(),
            Length::Tenths(low, high) => {
                let n = ((high - low) * 10.0 + 1.5) as u64;
                low + 0.1 * self.stream.below(n) as f64
            }
            Length::Modong => 1.5 + 0.1 * self.stream.below(3) as f64,
            Length::AtLeast(_, m) => m,
        };
        let bits = path.packet_bits();
        let length = match p.length {
            Length::Modong if 1.1 * path.srtt.as_secs() * rate > 10.0 * bits => {
                length(rate, 0.0, bits, m, path.srtt)
            }
            Length::Modong => length(rate, 10.0, bits, 1.0, ackclock_core::Span::from_ms(5)),
            Length::AtLeast(packets, _) => length(rate, packets, bits, m, path.srtt),
            _ => length(rate, 10.0, bits, m, path.srtt),
        };
        Plan { rate, length, purpose: (self.epoch & EPOCHS) << NUMBER_BITS | number }
    }

    fn on_result(&mut self, measured: &Measured, utility: f64, purpose: u32) -> bool {
        let (epoch, number) = (purpose >> NUMBER_BITS, purpose & FILLER);
        if let Some((above, margin)) = self.params.resync {
            let sent = measured.sent_mbps() * 1e6;
            let adjusting = matches!(self.phase, Phase::Adjusting(_));
            if adjusting && !measured.limited && self.base > above && self.base > sent + margin {
                self.decide(sent, self.params.epsilon_min);
                return true;
            }
        }
        if epoch != self.epoch & EPOCHS || number == FILLER {
            return false;
        }
        match self.phase {
            Phase::Starting { .. } if measured.limited => {
                self.start_again_at(measured.rate);
                false
            }
            Phase::Starting { .. } => self.on_start(measured, utility),
            Phase::Decision(_) => self.on_trial(measured, utility, number),
            Phase::Adjusting(_) => self.on_step(measured, utility),
        }
    }

    fn rate(&self) -> f64 {
        match &self.phase {
            Phase::Starting { rate, .. } => *rate,
            Phase::Decision(d) if d.planned < 2 * self.params.pairs => {
                Allegro::trial_rate(self.base, d.epsilon, d.up[d.planned as usize])
            }
            Phase::Decision(_) => self.base,
            Phase::Adjusting(a) => a.rate,
        }
    }

    fn state(&self) -> &'static str {
        match self.phase {
            Phase::Starting { .. } => "starting",
            Phase::Decision(_) => "decision",
            Phase::Adjusting(_) => "adjusting",
        }
    }
}

#[cfg(test)]
mod tests;
