//! Names of the controllers and their options.

use ackclock_core::options::{Checked, Kind as Takes, Options, Parameter, Refusal};
use ackclock_core::{Span, Stream};

use super::{Algorithm, Allegro, AllegroParams, Controller, Vivace, VivaceParams};
use crate::config::{Config, Feedback};
use crate::utility::{Gradient, Kind};

/// A controller by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name in a scenario.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Its options.
    pub parameters: &'static [Parameter],
    family: Family,
}

#[derive(Clone, Copy)]
enum Family {
    Allegro(AllegroParams),
    /// Parameters, weight of the deviation per second, rate from which on it counts in Mbit/s.
    Vivace(VivaceParams, f64, f64),
}

const fn entry(
    name: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
    family: Family,
) -> Entry {
    Entry { name, about, parameters, family }
}

/// Every controller of this transport.
pub const ENTRIES: &[Entry] = &[
    entry("pcc-allegro", "PCC Allegro as in NSDI 2015", ALLEGRO, Family::Allegro(AllegroParams::PAPER)),
    entry(
        "pcc-allegro-modong",
        "PCC Allegro with the constants of its authors' code of 2014-16",
        ALLEGRO,
        Family::Allegro(AllegroParams::MODONG),
    ),
    entry(
        "pcc-allegro-herc",
        "PCC Allegro with the constants of Hercules",
        ALLEGRO,
        Family::Allegro(AllegroParams::HERC),
    ),
    entry(
        "pcc-allegro-ker",
        "PCC Allegro with the constants of the kernel module",
        ALLEGRO,
        Family::Allegro(AllegroParams::KER),
    ),
    entry(
        "pcc-allegro-usp",
        "PCC Allegro with the constants of the user-space code",
        ALLEGRO,
        Family::Allegro(AllegroParams::USP),
    ),
    entry("pcc-vivace", "PCC Vivace (NSDI 2018)", VIVACE, Family::Vivace(VivaceParams::VIVACE, 0.0, 0.0)),
    entry(
        "pcc-proteus-p",
        "PCC Proteus, primary (SIGCOMM 2020)",
        VIVACE,
        Family::Vivace(VivaceParams::PROTEUS_P, 0.0, 0.0),
    ),
    entry(
        "pcc-proteus-s",
        "PCC Proteus, scavenger: yields to others (SIGCOMM 2020)",
        VIVACE,
        Family::Vivace(VivaceParams::PROTEUS_S, 1500.0, 0.0),
    ),
    entry(
        "pcc-proteus-h",
        "PCC Proteus, hybrid: primary below a rate, scavenger above (SIGCOMM 2020)",
        HYBRID,
        Family::Vivace(VivaceParams::PROTEUS_P, 1500.0, 10.0),
    ),
];

/// Name and one line for each.
pub const REGISTRY: &[(&str, &str)] = &{
    let mut out = [("", ""); ENTRIES.len()];
    let mut i = 0;
    while i < ENTRIES.len() {
        out[i] = (ENTRIES[i].name, ENTRIES[i].about);
        i += 1;
    }
    out
};

/// Names of the utilities that an option may ask for.
pub const UTILITIES: &[&str] = &["safe", "latency", "latency-paper", "loss-resilient", "incast"];

const fn parameter(name: &'static str, kind: Takes, default: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind, default, about }
}

const fn number(
    name: &'static str,
    low: f64,
    high: f64,
    default: &'static str,
    about: &'static str,
) -> Parameter {
    parameter(name, Takes::Number { low, high }, default, about)
}

const FEEDBACK: Parameter = parameter(
    "feedback",
    Takes::Whole { low: 1, high: 256 },
    "1",
    "datagrams per report; the authors' receiver of 2014-16 takes 20",
);
const FLUSH: Parameter =
    number("feedback_flush_ms", 0.0, 10_000.0, "10", "longest that a datagram waits for its report, ms");
const REPEATS: Parameter = parameter(
    "feedback_repeats",
    Takes::Flag,
    "true",
    "each report repeats earlier ones; otherwise a lost report makes its datagrams look lost",
);
const FILLS_UP: Parameter = parameter(
    "fills_up",
    Takes::Flag,
    "false; true for modong",
    "with nothing new to send, send again what is not acknowledged",
);
const REORDERING: Parameter = parameter(
    "reordering",
    Takes::Whole { low: 1, high: 255 },
    "3; 1 for modong",
    "a datagram is lost when this many with larger numbers were reported and it was not",
);
const NOMINAL: Parameter = parameter(
    "nominal_rate",
    Takes::Flag,
    "false",
    "utility uses the rate set instead of the rate measured, so stalls of the sender go unseen",
);
const MAX_RATE: Parameter = number("max_rate_mbps", 0.1, 1e6, "10000", "greatest rate, Mbit/s");

const ALLEGRO: &[Parameter] = &[
    parameter("utility", Takes::Choice(UTILITIES), "safe", "what an interval is worth"),
    number(
        "alpha",
        1.0,
        1e6,
        "100; 1000 for usp",
        "steepness of the sigmoid; at least 2.2 (n - 1) for n senders",
    ),
    number("epsilon_min", 1e-4, 0.5, "0.01; 0.05 for usp", "least size of a trial"),
    number("epsilon_max", 1e-4, 0.5, "0.05", "greatest size of a trial"),
    number("step", 1e-4, 0.5, "0.01; 0.02 for usp", "size of step n of a moving rate is n times this"),
    number(
        "interval_rtts",
        0.5,
        20.0,
        "as the variant has it",
        "length of an interval, RTTs, without the random part",
    ),
    number("start_rate_mbps", 0.001, 1e5, "as the variant has it", "rate of the first interval, Mbit/s"),
    parameter("pairs", Takes::Whole { low: 1, high: 3 }, "2; 3 for usp", "pairs of trials in a decision"),
    MAX_RATE,
    FEEDBACK,
    FLUSH,
    REPEATS,
    FILLS_UP,
    REORDERING,
    NOMINAL,
];

const EXPONENT: Parameter = number("exponent", 0.01, 0.99, "0.9", "t: exponent of the rate");
const LATENCY: Parameter = number("latency", 0.0, 1e6, "900", "b: weight of the RTT gradient");
const LOSS: Parameter = number("loss", 0.01, 1e6, "11.35", "c: weight of the loss rate");
const DEVIATION: Parameter = number(
    "deviation",
    0.0,
    1e6,
    "1500 for proteus-s and proteus-h, else 0",
    "d: weight of the RTT's standard deviation, 1/s",
);
const THRESHOLD: Parameter =
    number("threshold_mbps", 0.0, 1e6, "10", "rate from which on it is a scavenger, Mbit/s");

const VIVACE: &[Parameter] =
    &[EXPONENT, LATENCY, LOSS, DEVIATION, MAX_RATE, FEEDBACK, FLUSH, REPEATS, FILLS_UP, REORDERING, NOMINAL];
const HYBRID: &[Parameter] = &[
    EXPONENT, LATENCY, LOSS, DEVIATION, THRESHOLD, MAX_RATE, FEEDBACK, FLUSH, REPEATS, FILLS_UP, REORDERING,
    NOMINAL,
];

/// A recipe for the controller of each flow, and the settings of its transport.
#[derive(Clone, Copy)]
pub struct Recipe {
    family: Family,
    alpha: f64,
    utility: &'static str,
    gradient: Gradient,
    /// Settings of both ends.
    pub config: Config,
}

/// The recipe of a controller by name, or what is wrong with name or options.
pub fn build(name: &str, options: &Options) -> Result<Recipe, Refusal> {
    let Some(entry) = ENTRIES.iter().find(|e| e.name == name) else {
        let allowed = REGISTRY.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(Refusal { option: String::new(), found: format!("{name:?}"), allowed });
    };
    let given = Checked::new(name, options, entry.parameters)?;
    let modong = name == "pcc-allegro-modong";
    let feedback = Feedback {
        every: given.number("feedback", 1.0) as u32,
        flush: Span((given.number("feedback_flush_ms", 10.0) * 1e6) as u64),
        repeats: given.flag("feedback_repeats", true),
    };
    let config = Config {
        feedback,
        nominal: given.flag("nominal_rate", false),
        fills_up: given.flag("fills_up", modong),
        reordering: given.number("reordering", if modong { 1.0 } else { 3.0 }) as u32,
        ..Config::default()
    };
    let mut gradient = Gradient::default();
    let max_rate = given.number("max_rate_mbps", 1e4) * 1e6;
    let family = match entry.family {
        Family::Allegro(mut p) => {
            p.epsilon_min = given.number("epsilon_min", p.epsilon_min);
            p.epsilon_max = given.number("epsilon_max", p.epsilon_max);
            if p.epsilon_min > p.epsilon_max {
                return Err(Refusal {
                    option: "epsilon_min".into(),
                    found: p.epsilon_min.to_string(),
                    allowed: format!("at most epsilon_max, {}", p.epsilon_max),
                });
            }
            p.pairs = given.number("pairs", p.pairs as f64) as u32;
            p.step = given.number("step", p.step);
            let rtts = given.number("interval_rtts", 0.0);
            if rtts > 0.0 {
                p.length = super::allegro::Length::Uniform(rtts, rtts);
            }
            let start = given.number("start_rate_mbps", 0.0);
            if start > 0.0 {
                p.start = super::allegro::Start::Rate(start * 1e6);
            }
            p.max_rate = max_rate;
            p.min_rate = p.min_rate.min(max_rate);
            Family::Allegro(p)
        }
        Family::Vivace(mut p, deviation, threshold) => {
            gradient.exponent = given.number("exponent", gradient.exponent);
            gradient.latency = given.number("latency", gradient.latency);
            gradient.loss = given.number("loss", gradient.loss);
            gradient.deviation = given.number("deviation", deviation);
            gradient.threshold = given.number("threshold_mbps", threshold);
            p.max_rate = max_rate;
            p.min_rate = p.min_rate.min(max_rate);
            Family::Vivace(p, deviation, threshold)
        }
    };
    let wanted = given.choice("utility").unwrap_or("safe");
    let utility = UTILITIES.iter().copied().find(|u| *u == wanted).expect("invariant: checked");
    let alpha = given.number("alpha", if name == "pcc-allegro-usp" { 1000.0 } else { 100.0 });
    Ok(Recipe { family, alpha, utility, gradient, config })
}

impl Recipe {
    /// A controller; its random draws are those of `stream`.
    pub fn controller(&self, stream: Stream) -> Controller {
        let alpha = self.alpha;
        let utility = match (self.family, self.utility) {
            (Family::Vivace(..), _) => Kind::Gradient(self.gradient),
            (_, "latency") => Kind::Latency { alpha, rtt_alpha: 10.0 },
            (_, "latency-paper") => Kind::LatencyPaper { alpha },
            (_, "loss-resilient") => Kind::LossResilient,
            (_, "incast") => Kind::Incast,
            _ => Kind::Safe { alpha, tolerance: 0.05 },
        };
        self.controller_with(stream, utility)
    }

    /// The same, judging by another utility.
    pub fn controller_with(&self, stream: Stream, utility: Kind) -> Controller {
        let algorithm = match self.family {
            Family::Allegro(p) => Algorithm::Allegro(Box::new(Allegro::new(p, stream))),
            Family::Vivace(p, ..) => Algorithm::Vivace(Box::new(Vivace::new(p, stream))),
        };
        Controller::new(algorithm, utility)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::options::Value;

    fn with(name: &str, option: &str, value: Value) -> Result<Recipe, Refusal> {
        build(name, &Options::from([(option.to_string(), value)]))
    }

    /// The paper's rule: r_n = r_(n-1) (1 + n epsilon_min dir).
    #[test]
    fn steps_and_trials_are_sized_by_their_options() {
        let options = Options::from([
            ("epsilon_min".to_string(), Value::Number(0.04)),
            ("step".to_string(), Value::Number(0.04)),
        ]);
        let Family::Allegro(p) = build("pcc-allegro", &options).expect("allowed").family else { panic!() };
        assert_eq!((p.epsilon_min, p.step), (0.04, 0.04));
        let Family::Allegro(p) = build("pcc-allegro-usp", &Options::new()).expect("allowed").family else {
            panic!()
        };
        assert_eq!((p.epsilon_min, p.step), (0.05, 0.02));
    }

    #[test]
    fn every_name_builds_and_every_refusal_says_what_is_allowed() {
        for (name, about) in REGISTRY {
            assert!(!about.is_empty());
            assert!(build(name, &Options::new()).is_ok(), "{name}");
        }
        let refused = with("pcc-allegro", "utility", Value::Text("save".into())).err().expect("refused");
        assert_eq!((refused.option.as_str(), refused.found.as_str()), ("utility", "\"save\""));
        assert!(refused.allowed.contains("safe, latency"));
        let refused = with("pcc-vivace", "alpha", Value::Number(3.0)).err().expect("refused");
        assert_eq!(refused.found, "an unknown option");
        let refused = with("pcc-allegro", "epsilon_min", Value::Number(0.2)).err().expect("refused");
        assert_eq!(refused.allowed, "at most epsilon_max, 0.05");
    }
}
