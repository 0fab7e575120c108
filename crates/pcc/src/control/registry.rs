//! Names of the controllers and their options.

use ackclock_core::options::{self, usual, Options};
use ackclock_core::schema::{Described, Refusal, Table, Takes, Value, FLAG};
use ackclock_core::{choice, table, Span, Stream};

use super::{Algorithm, Allegro, AllegroParams, Controller, Length, Start, Vivace, VivaceParams};
use crate::config::{Config, Feedback};
use crate::utility::{Gradient, Kind};

/// Registry entry of a controller.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name in a scenario.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Option table.
    pub options: &'static Table,
    /// Default options of the controller.
    pub usual: fn() -> Value,
    recipe: fn(&Value) -> Result<Recipe, Refusal>,
}

/// Build an entry from its name, one-line description, option table, defaults and constants.
macro_rules! entry {
    ($name:literal, $about:literal, $options:ident, $usual:expr, $params:expr) => {
        Entry {
            name: $name,
            about: $about,
            options: $options::TABLE,
            usual: || {
                let usual: $options = $usual;
                usual.write()
            },
            recipe: |given| {
                let usual: $options = $usual;
                usual.over(given)?.recipe($params)
            },
        }
    };
}

/// All controllers of this transport.
pub const ENTRIES: &[Entry] = &[
    entry!("pcc-allegro", "PCC Allegro as in NSDI 2015", AllegroOptions, usual(), AllegroParams::PAPER),
    entry!(
        "pcc-allegro-modong",
        "PCC Allegro with the constants of its authors' code of 2014-16",
        AllegroOptions,
        AllegroOptions { fills_up: true, reordering: 1, ..AllegroOptions::of(&AllegroParams::MODONG) },
        AllegroParams::MODONG
    ),
    entry!(
        "pcc-allegro-herc",
        "PCC Allegro with the constants of Hercules",
        AllegroOptions,
        AllegroOptions::of(&AllegroParams::HERC),
        AllegroParams::HERC
    ),
    entry!(
        "pcc-allegro-ker",
        "PCC Allegro with the constants of the kernel module",
        AllegroOptions,
        AllegroOptions::of(&AllegroParams::KER),
        AllegroParams::KER
    ),
    entry!(
        "pcc-allegro-usp",
        "PCC Allegro with the constants of the user-space code",
        AllegroOptions,
        AllegroOptions { alpha: 1000.0, ..AllegroOptions::of(&AllegroParams::USP) },
        AllegroParams::USP
    ),
    entry!("pcc-vivace", "PCC Vivace (NSDI 2018)", VivaceOptions, usual(), VivaceParams::VIVACE),
    entry!(
        "pcc-proteus-p",
        "PCC Proteus, primary (SIGCOMM 2020)",
        VivaceOptions,
        usual(),
        VivaceParams::PROTEUS_P
    ),
    entry!(
        "pcc-proteus-s",
        "PCC Proteus, scavenger: yields to others (SIGCOMM 2020)",
        VivaceOptions,
        VivaceOptions { deviation: SCAVENGER, ..usual() },
        VivaceParams::PROTEUS_S
    ),
    entry!(
        "pcc-proteus-h",
        "PCC Proteus, hybrid: primary below a rate, scavenger above (SIGCOMM 2020)",
        HybridOptions,
        HybridOptions { deviation: SCAVENGER, ..usual() },
        VivaceParams::PROTEUS_P
    ),
];

/// Weight of the RTT deviation in a scavenger's utility, 1/s.
const SCAVENGER: f64 = 1500.0;

/// Name and one-line description of each controller.
pub const REGISTRY: &[(&str, &str)] = &{
    let mut out = [("", ""); ENTRIES.len()];
    let mut i = 0;
    while i < ENTRIES.len() {
        out[i] = (ENTRIES[i].name, ENTRIES[i].about);
        i += 1;
    }
    out
};

/// Utility function of Allegro; see [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    Safe,
    Latency,
    LatencyPaper,
    LossResilient,
    Incast,
}

choice! {
    Worth: Safe "safe", Latency "latency", LatencyPaper "latency-paper", LossResilient "loss-resilient", Incast "incast"
}

/// Define the options of a controller, followed by those of its transport.
macro_rules! with_transport {
    ($(#[doc = $about:literal])+ $name:ident $kind:literal { $($own:tt)* }) => {
        table! {
            $(#[doc = $about])+
            struct $name $kind {
                $($own)*
                /// maximum rate, Mbit/s
                max_rate_mbps: f64 = Takes::Number(0.1, 1e6), AllegroParams::PAPER.max_rate / 1e6;
                /// number of datagrams per report; 20 in the authors' receiver of 2014-16
                feedback: u32 = Takes::Whole(1, 256), Feedback::default().every;
                /// maximum time that a datagram waits for its report, ms
                feedback_flush_ms: f64 = Takes::Number(0.0, 10_000.0), Feedback::default().flush.0 as f64 / 1e6;
                /// repeat earlier reports in each report; if false, a lost report makes its datagrams look lost
                feedback_repeats: bool = FLAG, Feedback::default().repeats;
                /// retransmit unacknowledged data while there is no new data to send
                fills_up: bool = FLAG, Config::default().fills_up;
                /// number of datagrams with larger numbers that are reported before an unreported datagram counts as
                /// lost
                reordering: u32 = Takes::Whole(1, 255), Config::default().reordering;
                /// evaluate the utility with the rate that was set instead of the measured rate; stalls of the sender
                /// then have no effect on the utility
                nominal_rate: bool = FLAG, Config::default().nominal;
            }
        }

        impl $name {
            fn transport(&self) -> Config {
                let feedback = Feedback {
                    every: self.feedback,
                    flush: Span((self.feedback_flush_ms * 1e6) as u64),
                    repeats: self.feedback_repeats,
                };
                Config {
                    feedback,
                    nominal: self.nominal_rate,
                    fills_up: self.fills_up,
                    reordering: self.reordering,
                    ..Config::default()
                }
            }
        }
    };
}

with_transport! {
    /// Options of Allegro.
    AllegroOptions "pcc-allegro" {
        /// utility function of an interval
        utility: Worth = Worth::TAKES, Worth::Safe;
        /// steepness of the sigmoid; for n senders at least 2.2 (n - 1)
        alpha: f64 = Takes::Number(1.0, 1e6), 100.0;
        /// minimum size of a trial, relative to the rate
        epsilon_min: f64 = Takes::Number(1e-4, 0.5), AllegroParams::PAPER.epsilon_min;
        /// maximum size of a trial, relative to the rate
        epsilon_max: f64 = Takes::Number(1e-4, 0.5), AllegroParams::PAPER.epsilon_max;
        /// unit of the steps while the rate moves in one direction: step n changes the rate by n times this share
        step: f64 = Takes::Number(1e-4, 0.5), AllegroParams::PAPER.step;
        /// length of an interval, RTTs, without the random part; default: the variant's
        interval_rtts: Option<f64> = Takes::Number(0.5, 20.0);
        /// rate of the first interval, Mbit/s; default: the variant's
        start_rate_mbps: Option<f64> = Takes::Number(0.001, 1e5);
        /// number of pairs of trials per decision
        pairs: u32 = Takes::Whole(1, 3), AllegroParams::PAPER.pairs;
    }
}

impl AllegroOptions {
    /// Default options of a variant.
    fn of(params: &AllegroParams) -> AllegroOptions {
        let &AllegroParams { epsilon_min, epsilon_max, step, pairs, .. } = params;
        AllegroOptions { epsilon_min, epsilon_max, step, pairs, ..usual() }
    }

    fn recipe(&self, params: AllegroParams) -> Result<Recipe, Refusal> {
        let &AllegroOptions { epsilon_min, epsilon_max, step, pairs, alpha, utility, .. } = self;
        if epsilon_min > epsilon_max {
            let allowed = format_args!("at most epsilon_max, {epsilon_max}");
            return Err(Refusal::new(epsilon_min, allowed).within("epsilon_min"));
        }
        let max_rate = self.max_rate_mbps * 1e6;
        let params = AllegroParams {
            epsilon_min,
            epsilon_max,
            step,
            pairs,
            length: self.interval_rtts.map_or(params.length, |rtts| Length::Uniform(rtts, rtts)),
            start: self.start_rate_mbps.map_or(params.start, |rate| Start::Rate(rate * 1e6)),
            max_rate,
            min_rate: params.min_rate.min(max_rate),
            ..params
        };
        Ok(Recipe { family: Family::Allegro(params, utility, alpha), config: self.transport() })
    }
}

/// Define the options of Vivace, `more`, and those of the transport.
macro_rules! gradient_options {
    ($(#[doc = $about:literal])+ $name:ident $kind:literal { $($more:tt)* } $threshold:expr) => {
        with_transport! {
            $(#[doc = $about])+
            $name $kind {
                /// t: exponent of the rate
                exponent: f64 = Takes::Number(0.01, 0.99), Gradient::default().exponent;
                /// b: weight of the RTT gradient
                latency: f64 = Takes::Number(0.0, 1e6), Gradient::default().latency;
                /// c: weight of the loss rate
                loss: f64 = Takes::Number(0.01, 1e6), Gradient::default().loss;
                /// d: weight of the RTT's standard deviation, 1/s
                deviation: f64 = Takes::Number(0.0, 1e6), Gradient::default().deviation;
                $($more)*
            }
        }

        impl $name {
            fn recipe(&self, params: VivaceParams) -> Result<Recipe, Refusal> {
                let &$name { exponent, latency, loss, deviation, .. } = self;
                let threshold: fn(&$name) -> f64 = $threshold;
                let threshold = threshold(self);
                let gradient = Gradient { exponent, latency, loss, deviation, threshold, ..Gradient::default() };
                let max_rate = self.max_rate_mbps * 1e6;
                let params = VivaceParams { max_rate, min_rate: params.min_rate.min(max_rate), ..params };
                Ok(Recipe { family: Family::Vivace(params, gradient), config: self.transport() })
            }
        }
    };
}

gradient_options! {
    /// Options of Vivace and Proteus.
    VivaceOptions "pcc-vivace" {} |_| Gradient::default().threshold
}

gradient_options! {
    /// Options of Proteus' hybrid.
    HybridOptions "pcc-proteus-h" {
        /// rate above which the flow acts as a scavenger, Mbit/s
        threshold_mbps: f64 = Takes::Number(0.0, 1e6), 10.0;
    } |options| options.threshold_mbps
}

#[derive(Clone, Copy)]
enum Family {
    /// Constants, utility function, and its steepness.
    Allegro(AllegroParams, Worth, f64),
    Vivace(VivaceParams, Gradient),
}

/// Recipe for the controller of each flow, with the settings of its transport.
#[derive(Clone, Copy)]
pub struct Recipe {
    family: Family,
    /// Settings of sender and receiver.
    pub config: Config,
}

/// Return the recipe for a controller by name, or an error about the name or the options.
pub fn build(name: &str, options: &Options) -> Result<Recipe, Refusal> {
    let Some(entry) = ENTRIES.iter().find(|e| e.name == name) else {
        let allowed = REGISTRY.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(Refusal::new(format_args!("{name:?}"), allowed));
    };
    (entry.recipe)(&options::named(name, options, entry.options)?)
}

impl Recipe {
    /// Create a controller that draws random numbers from `stream`.
    pub fn controller(&self, stream: Stream) -> Controller {
        let utility = match self.family {
            Family::Vivace(_, gradient) => Kind::Gradient(gradient),
            Family::Allegro(_, worth, alpha) => match worth {
                Worth::Safe => Kind::Safe { alpha, tolerance: 0.05 },
                Worth::Latency => Kind::Latency { alpha, rtt_alpha: 10.0 },
                Worth::LatencyPaper => Kind::LatencyPaper { alpha },
                Worth::LossResilient => Kind::LossResilient,
                Worth::Incast => Kind::Incast,
            },
        };
        self.controller_with(stream, utility)
    }

    /// Create a controller with another utility function.
    pub fn controller_with(&self, stream: Stream, utility: Kind) -> Controller {
        let algorithm = match self.family {
            Family::Allegro(p, ..) => Algorithm::Allegro(Box::new(Allegro::new(p, stream))),
            Family::Vivace(p, ..) => Algorithm::Vivace(Box::new(Vivace::new(p, stream))),
        };
        Controller::new(algorithm, utility)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, option: &str, value: Value) -> Result<Recipe, Refusal> {
        build(name, &Options::from([(option.to_string(), value)]))
    }

    /// Rule in the paper: r_n = r_(n-1) (1 + n epsilon_min dir).
    #[test]
    fn steps_and_trials_are_sized_by_their_options() {
        let options = Options::from([
            ("epsilon_min".to_string(), Value::Number(0.04)),
            ("step".to_string(), Value::Number(0.04)),
        ]);
        let Family::Allegro(p, ..) = build("pcc-allegro", &options).expect("allowed").family else {
            panic!()
        };
        assert_eq!((p.epsilon_min, p.step), (0.04, 0.04));
        let Family::Allegro(p, ..) = build("pcc-allegro-usp", &Options::new()).expect("allowed").family
        else {
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
        assert_eq!((refused.key.as_str(), refused.found.as_str()), ("utility", "\"save\""));
        assert!(refused.allowed.contains("safe, latency"));
        let refused = with("pcc-vivace", "alpha", Value::Number(3.0)).err().expect("refused");
        assert_eq!(refused.found, "an unknown option");
        let refused = with("pcc-allegro", "epsilon_min", Value::Number(0.2)).err().expect("refused");
        assert_eq!(refused.allowed, "at most epsilon_max, 0.05");
    }
}
