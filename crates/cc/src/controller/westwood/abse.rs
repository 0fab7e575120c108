//! ABSE: the sampling interval adapts to congestion and the filter to the variance of the samples. An uncongested
//! path is sampled by packet pairs, a congested one by the packet train of a whole RTT.
//!
//! | variable | formula |
//! |---|---|
//! | VE, RE | expected rate cwnd/rtt_min; rate achieved over the last RTT, or Th (see [`LevelRate`]) |
//! | Th_k | bytes of the last RTT / RTT, low-passed: 0.6 Th_{k-1} + 0.4 times the new value |
//! | T_k | RTT (VE - RE)/VE, from T_min (see [`Floor`]) to RTT; with Th also T_min if Th RTT exceeds cwnd |
//! | s_k | bytes of the last T_k / T_k |
//! | U_k | beta U_{k-1} + (1 - beta) abs(s_k - s_{k-1}); U_max the maximum of the last ten |
//! | tau_k | RTT + N RTT U_k/U_max (Kim and Noble's stability filter) |
//! | S_k = ERE | alpha S_{k-1} + (1 - alpha) s_k, alpha = (2 tau - D)/(2 tau + D), 0 if negative, D the last gap |
//!
//! Over whole batches (`batch_gap`): interrupt coalescing delivers ACKs in batches, so gaps within a batch are
//! meaningless and gaps between batches are too long for the first ACK of a batch. A batch therefore counts as one ACK,
//! with its bytes and the time since the previous batch. A batch is complete when the first ACK of the next one
//! arrives. Samples over T_k end at the last complete batch, and T_min is the time between two batches.
//!
//! Th and T_k are those of Wang and others (2002) as quoted in a later paper by the same group
//! (scitepress.org/PublishedPapers/2004/13988, equations (3) and (4)). The formula is damaged in print there: the sum
//! over the last RTT is legible, but the division by RTT is inferred from the remaining fragments.
//!
//! Differs: two ACKs at the same instant count as 1 us apart.

use ackclock_core::{choice, Span, Time};

use super::{seconds, Credited, Insight, Meter, CLOCK};

/// How the filter gain is determined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterGain {
    /// Computed from tau_k.
    Stability,
    /// Constant: 0.9 old and 0.1 new per sample.
    Ewma,
}

choice! { FilterGain: Stability "stability", Ewma "ewma" }

/// Rate used as RE in T_k.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelRate {
    /// Rate achieved over the last RTT.
    Achieved,
    /// Rate achieved over the last RTT, low-passed with weight 0.6 at each ACK: Th_k, the paper's throughput filter as
    /// quoted.
    Quoted,
    /// Rate of each ACK, low-passed: 0.6 Th_{k-1} + 0.4 d_k/gap.
    Throughput,
    /// The estimate itself.
    Filtered,
}

choice! { LevelRate: Achieved "achieved", Quoted "quoted", Throughput "throughput", Filtered "filtered" }

/// Values over which U_max is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeakOver {
    /// The last ten values.
    LastTen,
    /// All values.
    AllTime,
}

choice! { PeakOver: LastTen "last-10", AllTime "all-time" }

/// Lower bound of T_k.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Floor {
    /// The last gap between ACKs. Pauses count as slow samples, so that over time the samples add up to the
    /// acknowledged bytes and the estimate approaches the achieved rate.
    Gap,
    /// The smallest gap in the last one to two RTTs, as between a packet pair. Pauses are not sampled.
    Pair,
    /// A constant, s.
    Fixed(f64),
}

/// Smallest gaps of the current and of the previous RTT.
#[derive(Clone, Copy, Debug)]
struct LeastGap {
    since: Time,
    now: Span,
    before: Span,
}

impl LeastGap {
    #[inline]
    fn update(&mut self, now: Time, gap: Span, rtt: f64) -> f64 {
        if seconds(now.since(self.since)) > rtt {
            (self.since, self.before, self.now) = (now, self.now, Span::MAX);
        }
        self.now = self.now.min(gap);
        seconds(self.now.min(self.before))
    }
}

/// Estimator constants. Rates are in bytes/s, times in s.
#[derive(Clone, Copy, Debug)]
pub struct AbseParams {
    /// N: maximum damping, RTTs beyond the first.
    pub n: f64,
    /// Weight of the past in U.
    pub beta: f64,
    /// Filter gain.
    pub gain: FilterGain,
    /// T_min: lower bound of T_k.
    pub floor: Floor,
    /// RE: rate used as the achieved rate.
    pub level: LevelRate,
    /// U_max: values over which the maximum is taken.
    pub peak: PeakOver,
    /// Whether S_0 is 0 instead of the first sample.
    pub from_zero: bool,
    /// Upper bound of samples; 0 for none.
    pub nic_rate: f64,
    /// Maximum gap between the ACKs of a batch; 0 processes each ACK individually.
    pub batch_gap: f64,
}

/// ABSE estimator.
#[derive(Clone, Debug)]
pub(super) struct Abse {
    params: AbseParams,
    meter: Meter,
    last: Option<Time>,
    batch: Batch,
    least: LeastGap,
    seeded: bool,
    /// Th_k, or the low-passed rate of individual ACKs.
    throughput: f64,
    rate: f64,
    sample: f64,
    interval: f64,
    tau: f64,
    u: f64,
    u_max: f64,
    recent: [f64; PEAK],
    at: usize,
}

/// The batch of ACKs being collected.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    begun: Time,
    latest: Time,
    bytes: f64,
}

/// Number of values of U over which U_max is taken.
const PEAK: usize = 10;
/// Weight of the past in the throughput filter.
const PAST: f64 = 0.6;
/// Maximum duration of a batch, as a fraction of the RTT, even if there is no gap between ACKs.
const LONGEST_BATCH: f64 = 0.125;

impl Abse {
    pub fn new(params: AbseParams) -> Abse {
        Abse {
            params,
            meter: Meter::default(),
            last: None,
            batch: Batch::default(),
            least: LeastGap { since: Time::ZERO, now: Span::MAX, before: Span::MAX },
            seeded: false,
            throughput: 0.0,
            rate: 0.0,
            sample: 0.0,
            interval: 0.0,
            tau: 0.0,
            u: 0.0,
            u_max: 0.0,
            recent: [0.0; PEAK],
            at: 0,
        }
    }

    pub fn on_ack(&mut self, ack: &Credited) {
        if self.params.batch_gap == 0.0 {
            return self.on_arrival(ack);
        }
        let batch = self.batch;
        let together = seconds(ack.now.since(batch.latest)) < self.params.batch_gap
            && seconds(ack.now.since(batch.begun)) < LONGEST_BATCH * ack.rtt;
        if together && batch.bytes > 0.0 {
            self.batch.bytes += ack.bytes;
            self.batch.latest = ack.now;
            return;
        }
        self.batch = Batch { begun: ack.now, latest: ack.now, bytes: ack.bytes };
        if batch.bytes > 0.0 {
            self.on_arrival(&Credited { now: batch.begun, bytes: batch.bytes, ..*ack });
        }
    }

    /// Process an ACK, or a batch of ACKs.
    fn on_arrival(&mut self, ack: &Credited) {
        let rtt = Span((ack.rtt * 1e9) as u64);
        self.meter.add(ack.now, ack.bytes, rtt);
        let Some(last) = self.last.replace(ack.now) else { return };
        let gap = ack.now.since(last).max(CLOCK);
        let expected = ack.window / ack.rtt_min;
        let of_rtt = || self.meter.over(ack.now, rtt) / ack.rtt;
        let achieved = match self.params.level {
            LevelRate::Achieved => of_rtt(),
            LevelRate::Filtered => self.rate,
            LevelRate::Quoted | LevelRate::Throughput => {
                let latest = match self.params.level {
                    LevelRate::Quoted => of_rtt(),
                    _ => ack.bytes / seconds(gap),
                };
                // The quoted paper does not specify the initial value. The filter therefore starts at its first
                // sample, like the estimate.
                let begins = self.params.level == LevelRate::Quoted && !self.seeded && !self.params.from_zero;
                let past = if begins { 0.0 } else { PAST };
                self.throughput = past * self.throughput + (1.0 - past) * latest;
                self.throughput
            }
        };
        let floor = match self.params.floor {
            Floor::Gap => seconds(gap),
            Floor::Pair => self.least.update(ack.now, gap, ack.rtt),
            Floor::Fixed(t) => t,
        };
        self.interval = if self.params.level == LevelRate::Quoted && achieved * ack.rtt > ack.window {
            floor
        } else {
            sampling_interval(ack.rtt, expected, achieved, floor)
        };
        // no search is needed if the interval contains only this ACK
        let bytes = if self.interval <= seconds(gap) {
            ack.bytes
        } else {
            self.meter.over(ack.now, Span((self.interval * 1e9) as u64))
        };
        let mut sample = bytes / self.interval;
        if self.params.nic_rate > 0.0 {
            sample = sample.min(self.params.nic_rate);
        }
        self.filter(sample, seconds(gap), ack.rtt);
    }

    fn filter(&mut self, sample: f64, gap: f64, rtt: f64) {
        if !self.seeded {
            self.seeded = true;
            (self.sample, self.tau) = (sample, rtt);
            let old = if self.params.from_zero { coefficient(rtt, gap) } else { 0.0 };
            self.rate = (1.0 - old) * sample;
            return;
        }
        self.u = self.params.beta * self.u + (1.0 - self.params.beta) * (sample - self.sample).abs();
        self.sample = sample;
        self.recent[self.at] = self.u;
        self.at = (self.at + 1) % PEAK;
        self.u_max = match self.params.peak {
            PeakOver::LastTen => self.recent.iter().fold(0.0, |a: f64, &b| a.max(b)),
            PeakOver::AllTime => self.u_max.max(self.u),
        };
        self.tau = time_constant(rtt, self.params.n, self.u, self.u_max);
        let alpha = match self.params.gain {
            FilterGain::Stability => coefficient(self.tau, gap),
            FilterGain::Ewma => 0.9,
        };
        self.rate = alpha * self.rate + (1.0 - alpha) * sample;
    }

    /// Return ERE, bytes/s.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub fn insight(&self) -> Insight {
        Insight { sample: self.sample, interval: self.interval, tau: self.tau, u: self.u, u_max: self.u_max }
    }
}

/// Return T_k, s.
pub(super) fn sampling_interval(rtt: f64, expected: f64, achieved: f64, t_min: f64) -> f64 {
    (rtt * (expected - achieved) / expected).max(t_min).min(rtt.max(t_min))
}

/// Return tau_k, s.
pub(super) fn time_constant(rtt: f64, n: f64, u: f64, u_max: f64) -> f64 {
    if u_max > 0.0 {
        rtt + n * rtt * (u / u_max)
    } else {
        rtt
    }
}

/// alpha_k.
pub(super) fn coefficient(tau: f64, gap: f64) -> f64 {
    ((2.0 * tau - gap) / (2.0 * tau + gap)).max(0.0)
}
