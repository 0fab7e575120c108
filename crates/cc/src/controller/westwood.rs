//! TCP Westwood of UCLA: Reno's growth, but a loss sets the window to the estimated capacity of the path, the estimated
//! rate times the minimum RTT. Each estimator has its own file; [`Estimator`] combines them.
//!
//! Sources: Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood" (MobiCom 2001): BE and the loss rules; Wang, Valla,
//! Sanadidi, Ng, Gerla, "Efficiency/friendliness tradeoffs in TCP Westwood" (ISCC 2002): RE and CRB; Wang, Valla,
//! Sanadidi, Gerla, "Adaptive bandwidth share estimation in TCP Westwood" (Globecom 2002): ABSE; Wang, Pau, Yamada,
//! Sanadidi, Gerla, "TCP startup performance in large bandwidth delay networks" (INFOCOM 2004): Astart.
//!
//! | variable | meaning |
//! |---|---|
//! | `d_k` | bytes reported by ACK k: duplicate ACKs are credited and subtracted from the next advance |
//! | E | the estimate, bytes/s: BE, RE, CRB's choice, or ERE |
//! | `rtt_min` | minimum RTT of the connection |
//! | `startup` | Astart: until the first loss, ssthresh is raised to E rtt_min |
//!
//! Differs: a loss never raises cwnd, so an ssthresh above cwnd takes effect when recovery ends. Without an estimate a
//! loss halves the window.

mod abse;
mod be;
mod meter;
mod train;

use ackclock_core::schema::{Takes, FLAG};
use ackclock_core::{choice, table, Span, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;
use abse::Abse;
pub use abse::{AbseParams, FilterGain, Floor, LevelRate, PeakOver};
use be::Be;
use meter::Meter;
use train::Train;

/// Input to the estimators for one ACK.
#[derive(Clone, Copy, Debug)]
struct Credited {
    now: Time,
    /// d_k, bytes.
    bytes: f64,
    /// Latest RTT sample, s.
    rtt: f64,
    rtt_min: f64,
    /// Congestion window, bytes.
    window: f64,
}

/// State of an estimator, for the trace. Rates are in bytes/s, times in s.
#[derive(Clone, Copy, Debug, Default)]
struct Insight {
    sample: f64,
    interval: f64,
    tau: f64,
    u: f64,
    u_max: f64,
}

#[derive(Clone, Debug)]
enum Estimator {
    Be(Be),
    Re(Train),
    Crb { be: Be, re: Train, theta: f64 },
    Abse(Abse),
}

/// TCP Westwood.
#[derive(Clone, Debug)]
pub struct Westwood {
    estimator: Estimator,
    /// Whether an ACK is credited with at most two segments.
    cap: bool,
    astart: bool,
    initial_ssthresh: u32,
    startup: bool,
    begun: bool,
    /// Bytes credited for duplicate ACKs and not yet subtracted.
    accounted: u64,
    rtt: f64,
    rtt_min: f64,
    smss: u32,
    /// ssthresh that takes effect at the end of recovery.
    pending: Option<u32>,
}

table! {
    /// Options of `westwood`.
    pub(super) struct WestwoodOptions "westwood" {
        /// rate estimator: packet pairs, packet trains, the likelier of the two, adaptive share, or adaptive share over
        /// whole batches of ACKs
        estimator: By = By::TAKES, By::Abse;
        /// adaptive start: ssthresh follows the estimate until the first loss
        astart: bool = FLAG, true;
        /// initial ssthresh, segments, with astart
        initial_ssthresh: u32 = Takes::Whole(2, 1_000_000), 2;
        /// credit at most two segments per ACK
        cap: bool = FLAG, false;
        /// abse: maximum damping, RTTs beyond the first; 0 uses the fixed gain
        n: f64 = Takes::Number(0.0, 1000.0), 10.0;
        /// abse: gain of the filter: from tau, or a constant 0.1 per sample
        gain: FilterGain = FilterGain::TAKES, FilterGain::Stability;
        /// abse: minimum sampling interval: the smallest gap between ACKs in the last RTT (pair), or the last gap
        t_min: Gap = Gap::TAKES, Gap::Pair;
        /// abse: constant sampling interval instead of t_min, seconds; 0 turns it off
        t_min_s: f64 = Takes::Number(0.0, 10.0), 0.0;
        /// abse: rate that indicates congestion: that of the last RTT, the same low-passed with weight 0.6 (the paper
        /// as quoted), the low-passed rate of each ACK, or the estimate itself
        level_rate: LevelRate = LevelRate::TAKES, LevelRate::Achieved;
        /// abse: values of U over which its maximum is taken
        u_max: PeakOver = PeakOver::TAKES, PeakOver::LastTen;
        /// abse: weight of the past in U
        beta: f64 = Takes::Number(0.0, 0.999), 0.6;
        /// abse: initial estimate: the first sample, or zero
        first: First = First::TAKES, First::Zero;
        /// abse: maximum rate of a sample, bit/s; 0 means no maximum
        nic_rate_bps: f64 = Takes::Number(0.0, 1e13), 0.0;
        /// abse-batch: maximum gap between the ACKs of a batch, seconds
        batch_gap_s: f64 = Takes::Number(0.0, 0.01), 5e-6;
        /// be, crb: time constant of the filter, seconds
        tau_s: f64 = Takes::Number(0.001, 100.0), 0.5;
        /// re, crb: length of a packet train, seconds; 0 means one RTT
        train_s: f64 = Takes::Number(0.0, 100.0), 0.0;
        /// crb: ratio of window to RE * rtt_min above which a loss is attributed to congestion
        theta: f64 = Takes::Number(0.0, 100.0), 1.4;
    }
}

/// Rate estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Be,
    Re,
    Crb,
    Abse,
    AbseBatch,
}

/// Initial value of the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Sample,
    Zero,
}

/// Option that selects a [`Floor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    Pair,
    Gap,
}

choice! { By: Be "be", Re "re", Crb "crb", Abse "abse", AbseBatch "abse-batch" }
choice! { First: Sample "sample", Zero "zero" }
choice! { Gap: Pair "pair", Gap "gap" }

impl Westwood {
    /// Create the controller with the parameters of a scenario.
    pub(super) fn new(options: &WestwoodOptions) -> Westwood {
        let be = || Be::new(options.tau_s);
        let re = || Train::new(options.train_s);
        let abse = |batch_gap| {
            Abse::new(AbseParams {
                n: options.n,
                beta: options.beta,
                gain: options.gain,
                floor: match (options.t_min_s, options.t_min) {
                    (t, _) if t > 0.0 => Floor::Fixed(t),
                    (_, Gap::Gap) => Floor::Gap,
                    (_, Gap::Pair) => Floor::Pair,
                },
                level: options.level_rate,
                peak: options.u_max,
                from_zero: options.first == First::Zero,
                nic_rate: options.nic_rate_bps / 8.0,
                batch_gap,
            })
        };
        let estimator = match options.estimator {
            By::Be => Estimator::Be(be()),
            By::Re => Estimator::Re(re()),
            By::Crb => Estimator::Crb { be: be(), re: re(), theta: options.theta },
            By::Abse => Estimator::Abse(abse(0.0)),
            By::AbseBatch => Estimator::Abse(abse(options.batch_gap_s)),
        };
        Westwood {
            estimator,
            cap: options.cap,
            astart: options.astart,
            initial_ssthresh: options.initial_ssthresh,
            startup: true,
            begun: false,
            accounted: 0,
            rtt: 0.0,
            rtt_min: f64::INFINITY,
            smss: 1,
            pending: None,
        }
    }

    /// Return d_k of this ACK, computed as in Linux `westwood_acked_count`.
    fn credit(&mut self, ack: &Arrival) -> u64 {
        let seg = u64::from(ack.smss);
        let advance = ack.acked_bytes;
        let d = if advance == 0 {
            if !ack.is_dup {
                return 0;
            }
            self.accounted += seg;
            seg
        } else if advance <= seg {
            advance
        } else if self.accounted >= advance {
            self.accounted -= advance;
            seg
        } else {
            advance - std::mem::take(&mut self.accounted)
        };
        if self.cap {
            d.min(2 * seg)
        } else {
            d
        }
    }

    /// Return E in bytes/s for a loss at this window.
    fn estimate(&self, cwnd: u32) -> f64 {
        match &self.estimator {
            Estimator::Be(be) => be.rate(),
            Estimator::Re(re) => re.rate(),
            Estimator::Crb { be, re, theta } => {
                let pipe = re.rate() * self.rtt_min / f64::from(self.smss);
                match f64::from(cwnd) > theta * pipe {
                    true => re.rate(),
                    false => be.rate(),
                }
            }
            Estimator::Abse(abse) => abse.rate(),
        }
    }

    /// Return E rtt_min in segments, at least 2; `None` without an estimate.
    fn target(&self, cwnd: u32) -> Option<u32> {
        let rate = self.estimate(cwnd);
        if rate <= 0.0 || !self.rtt_min.is_finite() {
            return None;
        }
        Some(((rate * self.rtt_min / f64::from(self.smss)).min(1e9) as u32).max(2))
    }
}

impl CongestionControl for Westwood {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        self.smss = ack.smss;
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt.as_secs();
            self.rtt_min = self.rtt_min.min(self.rtt);
        } else if self.rtt == 0.0 {
            self.rtt = ack.srtt.as_secs();
        }
        if !self.begun {
            self.begun = true;
            if self.astart && window.ssthresh == Window::INFINITE {
                window.ssthresh = self.initial_ssthresh;
            }
        }
        let bytes = self.credit(ack);
        if bytes == 0 || self.rtt <= 0.0 || !self.rtt_min.is_finite() {
            return;
        }
        let arrival = Credited {
            now: ack.now,
            bytes: bytes as f64,
            rtt: self.rtt,
            rtt_min: self.rtt_min,
            window: f64::from(window.cwnd) * f64::from(ack.smss),
        };
        match &mut self.estimator {
            Estimator::Be(be) => be.on_ack(&arrival),
            Estimator::Re(re) => re.on_ack(&arrival),
            Estimator::Crb { be, re, .. } => {
                be.on_ack(&arrival);
                re.on_ack(&arrival);
            }
            Estimator::Abse(abse) => abse.on_ack(&arrival),
        }
        if self.startup && self.astart {
            if let Some(target) = self.target(window.cwnd) {
                window.ssthresh = window.ssthresh.max(target);
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        window.grow_as_reno(ack);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        self.startup = false;
        let target = self.target(window.cwnd).unwrap_or((window.cwnd / 2).max(2));
        self.pending = Some(target);
        target.min(window.cwnd.max(2))
    }

    fn on_recovered(&mut self, window: &mut Window, _now: Time) {
        if let Some(target) = self.pending.take() {
            window.ssthresh = window.ssthresh.max(target);
        }
    }

    fn on_rto(&mut self, window: &mut Window, now: Time) {
        match &mut self.estimator {
            Estimator::Be(be) | Estimator::Crb { be, .. } => be.on_silence(now),
            _ => {}
        }
        self.pending = None;
        if let Some(target) = self.target(window.prior_cwnd) {
            window.ssthresh = target;
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            vars: &[
                "estimate_bps",
                "sample_bps",
                "interval_s",
                "tau_s",
                "u_bps",
                "u_max_bps",
                "sample_rtt_s",
                "rtt_min_s",
            ],
            ..Needs::default()
        }
    }

    fn vars(&self, values: &mut [f64]) {
        let insight = match &self.estimator {
            Estimator::Be(be) | Estimator::Crb { be, .. } => be.insight(),
            Estimator::Re(re) => re.insight(),
            Estimator::Abse(abse) => abse.insight(),
        };
        let known = |x: f64| if x > 0.0 { x } else { f64::NAN };
        let all = [
            8.0 * self.estimate(0),
            8.0 * insight.sample,
            known(insight.interval),
            known(insight.tau),
            8.0 * insight.u,
            8.0 * insight.u_max,
            known(self.rtt),
            if self.rtt_min.is_finite() { self.rtt_min } else { f64::NAN },
        ];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 * 1e-9
}

/// Clock resolution for ACK arrivals: a host does not observe two ACKs at the same instant.
const CLOCK: Span = Span::from_us(1);

#[cfg(test)]
mod tests;
