//! TCP Westwood of UCLA: Reno's growth, but a loss sets the window to what the path was seen to carry: estimated rate
//! times least RTT. The estimators are apart, one file each; [`Estimator`] is what they share.
//!
//! Sources: Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood" (MobiCom 2001): BE and the loss rules; Wang, Valla,
//! Sanadidi, Ng, Gerla, "Efficiency/friendliness tradeoffs in TCP Westwood" (ISCC 2002): RE and CRB; Wang, Valla,
//! Sanadidi, Gerla, "Adaptive bandwidth share estimation in TCP Westwood" (Globecom 2002): ABSE; Wang, Pau, Yamada,
//! Sanadidi, Gerla, "TCP startup performance in large bandwidth delay networks" (INFOCOM 2004): Astart.
//!
//! | variable | meaning |
//! |---|---|
//! | `d_k` | bytes that ACK k reports, each once: duplicate ACKs are credited and taken off the next advance |
//! | E | the estimate, bytes/s: BE, RE, CRB's choice, or ERE |
//! | `rtt_min` | least RTT of all samples |
//! | `startup` | Astart: until the first loss ssthresh follows E rtt_min upwards |
//!
//! Differs: a loss never raises cwnd, so ssthresh above cwnd takes effect when recovery ends; without any estimate a
//! loss halves.

mod abse;
mod be;
mod meter;
mod train;

use ackclock_core::{Span, Time};

use super::options::{Checked, Kind, Parameter};
use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;
use abse::Abse;
pub use abse::{AbseParams, FilterGain, Floor, LevelRate, PeakOver};
use be::Be;
use meter::Meter;
use train::Train;

/// What the estimators learn from each ACK.
#[derive(Clone, Copy, Debug)]
struct Credited {
    now: Time,
    /// d_k, bytes.
    bytes: f64,
    /// Latest RTT sample, seconds.
    rtt: f64,
    rtt_min: f64,
    /// Window, bytes.
    window: f64,
}

/// What an estimator knows, for the trace. Rates in bytes/s, times in seconds.
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
    /// At most two segments are credited to one ACK.
    cap: bool,
    astart: bool,
    initial_ssthresh: u32,
    startup: bool,
    begun: bool,
    /// Bytes credited through duplicate ACKs.
    accounted: u64,
    rtt: f64,
    rtt_min: f64,
    smss: u32,
    /// ssthresh that takes effect when recovery ends.
    pending: Option<u32>,
}

/// Options of `westwood`.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "estimator",
        kind: Kind::Choice(&["be", "re", "crb", "abse", "abse-batch"]),
        default: "abse",
        about: "what estimates the rate: packet pairs, packet trains, the likelier of both, adaptive share, adaptive share over whole batches of ACKs",
    },
    Parameter { name: "astart", kind: Kind::Flag, default: "true", about: "adaptive start: ssthresh follows the estimate until the first loss" },
    Parameter {
        name: "initial_ssthresh",
        kind: Kind::Whole { low: 2, high: 1_000_000 },
        default: "2",
        about: "segments, with astart",
    },
    Parameter { name: "cap", kind: Kind::Flag, default: "false", about: "credit at most two segments to one ACK" },
    Parameter {
        name: "n",
        kind: Kind::Number { low: 0.0, high: 1000.0 },
        default: "10",
        about: "abse: greatest damping, RTTs beyond the first; 0 is the fixed gain",
    },
    Parameter {
        name: "gain",
        kind: Kind::Choice(&["stability", "ewma"]),
        default: "stability",
        about: "abse: gain of the filter from tau, or constant 0.1 per sample",
    },
    Parameter {
        name: "t_min",
        kind: Kind::Choice(&["pair", "gap"]),
        default: "pair",
        about: "abse: least sampling interval: the least gap of the last RTT (a pair's), or the last gap between ACKs",
    },
    Parameter {
        name: "t_min_s",
        kind: Kind::Number { low: 0.0, high: 10.0 },
        default: "0",
        about: "abse: a constant in place of t_min, seconds; 0 is none",
    },
    Parameter {
        name: "level_rate",
        kind: Kind::Choice(&["achieved", "throughput", "filtered"]),
        default: "achieved",
        about: "abse: the rate that indicates congestion: that of the last RTT, of each ACK low-passed with 0.6 (the paper), or the estimate itself",
    },
    Parameter {
        name: "u_max",
        kind: Kind::Choice(&["last-10", "all-time"]),
        default: "last-10",
        about: "abse: over which values of U the greatest is taken",
    },
    Parameter {
        name: "beta",
        kind: Kind::Number { low: 0.0, high: 0.999 },
        default: "0.6",
        about: "abse: weight of the past in U",
    },
    Parameter {
        name: "first",
        kind: Kind::Choice(&["sample", "zero"]),
        default: "zero",
        about: "abse: the estimate begins with the first sample, or with zero",
    },
    Parameter {
        name: "nic_rate_bps",
        kind: Kind::Number { low: 0.0, high: 1e13 },
        default: "0",
        about: "abse: no sample above this rate, bit/s; 0 is no bound",
    },
    Parameter {
        name: "batch_gap_s",
        kind: Kind::Number { low: 0.0, high: 0.01 },
        default: "0.000005",
        about: "abse-batch: ACKs closer than this belong to one batch, seconds",
    },
    Parameter {
        name: "tau_s",
        kind: Kind::Number { low: 0.001, high: 100.0 },
        default: "0.5",
        about: "be, crb: time constant of the filter, seconds",
    },
    Parameter {
        name: "train_s",
        kind: Kind::Number { low: 0.0, high: 100.0 },
        default: "0",
        about: "re, crb: length of the train, seconds; 0 is one RTT",
    },
    Parameter {
        name: "theta",
        kind: Kind::Number { low: 0.0, high: 100.0 },
        default: "1.4",
        about: "crb: window over RE rtt_min above which a loss is taken for congestion",
    },
];

impl Westwood {
    /// As the scenario wants it.
    pub(super) fn from_options(options: &Checked) -> Westwood {
        let be = || Be::new(options.number("tau_s", 0.5));
        let re = || Train::new(options.number("train_s", 0.0));
        let batch_gap = match options.choice("estimator") {
            Some("abse-batch") => options.number("batch_gap_s", 5e-6),
            _ => 0.0,
        };
        let estimator = match options.choice("estimator") {
            Some("be") => Estimator::Be(be()),
            Some("re") => Estimator::Re(re()),
            Some("crb") => Estimator::Crb { be: be(), re: re(), theta: options.number("theta", 1.4) },
            _ => Estimator::Abse(Abse::new(AbseParams {
                n: options.number("n", 10.0),
                beta: options.number("beta", 0.6),
                gain: match options.choice("gain") {
                    Some("ewma") => FilterGain::Ewma,
                    _ => FilterGain::Stability,
                },
                floor: match (options.number("t_min_s", 0.0), options.choice("t_min")) {
                    (t, _) if t > 0.0 => Floor::Fixed(t),
                    (_, Some("gap")) => Floor::Gap,
                    _ => Floor::Pair,
                },
                level: match options.choice("level_rate") {
                    Some("filtered") => LevelRate::Filtered,
                    Some("throughput") => LevelRate::Throughput,
                    _ => LevelRate::Achieved,
                },
                peak: match options.choice("u_max") {
                    Some("all-time") => PeakOver::AllTime,
                    _ => PeakOver::LastTen,
                },
                from_zero: options.choice("first") != Some("sample"),
                nic_rate: options.number("nic_rate_bps", 0.0) / 8.0,
                batch_gap,
            })),
        };
        Westwood {
            estimator,
            cap: options.flag("cap", false),
            astart: options.flag("astart", true),
            initial_ssthresh: options.whole("initial_ssthresh", 2),
            startup: true,
            begun: false,
            accounted: 0,
            rtt: 0.0,
            rtt_min: f64::INFINITY,
            smss: 1,
            pending: None,
        }
    }

    /// d_k of this ACK (Linux `westwood_acked_count` counts alike).
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

    /// E, bytes/s, for a loss at this window.
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

    /// E rtt_min in segments, at least 2; none without an estimate.
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

/// Resolution of the clock that ACKs are stamped with: a host does not see two at the same instant.
const CLOCK: Span = Span::from_us(1);

#[cfg(test)]
mod tests;
