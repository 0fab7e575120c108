//! The closed set of congestion controllers and the registry of their names. A new controller needs its own file and,
//! here, a `mod` line, an entry in `ENTRIES` and a line in `controllers!`. `contract.rs` defines what all of them must
//! do.

mod bbr;
mod bbr3;
mod bic;
mod cdg;
mod compound;
mod contract;
mod copa;
mod cubic;
mod dctcp;
mod fast;
mod highspeed;
mod htcp;
mod hybla;
mod illinois;
mod ledbat;
mod minmax;
mod nv;
pub mod own;
mod prague;
mod recipe;
mod reno;
mod rounds;
mod scalable;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;
mod yeah;

use ackclock_core::trace::CaState;
use std::sync::Arc;

use ackclock_core::schema::{Described, Table};
use ackclock_core::{Span, Time};

use crate::window::Window;
pub use ackclock_core::options::{self, Options, Refusal, Value};
pub use bbr::Bbr;
pub use bbr3::Bbr3;
use bbr3::Bbr3Options;
pub use bic::Bic;
pub use cdg::Cdg;
use cdg::CdgOptions;
pub use compound::Compound;
#[cfg(test)]
pub(crate) use contract::tests;
use contract::{beta_from_permille, scale};
pub use contract::{
    AckSample, Arrival, CongestionControl, FieldRow, Hook, HookRow, HookText, NeedRow, Needs, RateSample,
    FIELDS, HOOKS, HOOK_TEXTS, MAX_VARS, NEEDS,
};
pub use copa::Copa;
use copa::CopaOptions;
use cubic::CubicOptions;
pub use cubic::{Cubic, CubicForm, CubicParams};
pub use dctcp::Dctcp;
pub use fast::Fast;
use fast::FastOptions;
use highspeed::HighSpeedOptions;
pub use highspeed::{HighSpeed, HighSpeedForm};
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use illinois::Illinois;
pub use ledbat::LedbatPlusPlus;
pub use nv::Nv;
use options::usual;
pub use prague::Prague;
use prague::PragueOptions;
pub use recipe::{Maker, Recipe};
pub use reno::Reno;
pub use scalable::Scalable;
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;
use westwood::WestwoodOptions;
pub use westwood_plus::WestwoodPlus;
pub use yeah::Yeah;

/// User-defined controller, boxed.
pub type Custom = Box<dyn CongestionControl + Send>;

/// Needed to copy a whole world. The caller has already checked that every controller can be copied.
impl Clone for Custom {
    fn clone(&self) -> Custom {
        self.copied().expect("invariant: asked whether there is a copy")
    }
}

/// Stack settings shared by all controllers that support them; `None` keeps the controller's own default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared {
    /// Fraction of the window kept by a reduction, in thousandths (Reno, CUBIC).
    pub beta_permille: Option<u32>,
    /// Fraction of the window kept by a reduction for a mark, in thousandths; `None` uses the value for losses (Reno,
    /// CUBIC; RFC 8511).
    pub ecn_beta_permille: Option<u32>,
    /// Whether the Reno window estimate grows per ACK rather than per acknowledged segment (CUBIC).
    pub counts_acks: bool,
}

/// Factory called once for each connection.
type Make = Arc<dyn Fn() -> Controller + Send + Sync>;

/// A built-in controller.
pub struct Entry {
    /// Name in a scenario.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Option table of the controller.
    pub options: &'static Table,
    /// Default options, used if a scenario gives none.
    pub usual: fn() -> Value,
    maker: fn(&Value, Shared) -> Result<Make, Refusal>,
}

/// Build an entry from its name, one-line description, options with their defaults, and constructor.
macro_rules! entry {
    ($name:literal, $about:literal, $options:ty, $usual:expr, $make:expr) => {
        Entry {
            name: $name,
            about: $about,
            options: <$options>::TABLE,
            usual: || {
                let usual: $options = $usual;
                usual.write()
            },
            maker: |given, shared| {
                let usual: $options = $usual;
                let options = usual.over(given)?;
                let make: fn(&$options, Shared) -> Controller = $make;
                Ok(Arc::new(move || make(&options, shared)))
            },
        }
    };
    ($name:literal, $about:literal, $make:expr) => {
        Entry {
            name: $name,
            about: $about,
            options: options::NONE,
            usual: || Value::Table(Vec::new()),
            maker: |_, shared| {
                let make: fn(Shared) -> Controller = $make;
                Ok(Arc::new(move || make(shared)))
            },
        }
    };
}

/// Every built-in controller.
pub const ENTRIES: &[Entry] = &[
    entry!("reno", "NewReno: slow start, one segment per RTT, halve on loss (RFC 5681; counts segments as Linux does)", |shared| Controller::Reno(reno(shared))),
    entry!("cubic", "CUBIC with HyStart as in current Linux (the algorithm of RFC 9438 in the kernel's integer arithmetic)", CubicOptions, CubicParams::LINUX.options(), |options, shared| cubic(CubicParams::LINUX.with(options), shared)),
    entry!("cubic-rfc9438", "CUBIC in the form of RFC 9438: real arithmetic, no HyStart", CubicOptions, CubicParams::RFC9438.options(), |options, shared| cubic(CubicParams::RFC9438.with(options), shared)),
    entry!("westwood", "TCP Westwood of UCLA: a loss sets the window to the estimated rate times the minimum RTT; ABSE with adaptive start", WestwoodOptions, usual(), |options, _| Controller::Westwood(Box::new(Westwood::new(options)))),
    entry!("westwood-plus", "Westwood+ as in Linux, where it is called westwood", |_| Controller::WestwoodPlus(WestwoodPlus::default())),
    entry!("fast", "FAST TCP: keeps a given number of its packets in the queues (INFOCOM 2004)", FastOptions, usual(), |options, _| Controller::Fast(Box::new(Fast::new(options)))),
    entry!("highspeed", "HighSpeed TCP (RFC 3649): growth and reduction depend on the window", HighSpeedOptions, usual(), |options, _| Controller::HighSpeed(HighSpeed::new(options.form))),
    entry!("bic", "BIC: binary search for the window between losses, as in Linux", |_| Controller::Bic(Bic::default())),
    entry!("htcp", "H-TCP: growth accelerates with the time since the last loss, as in Linux", |_| Controller::Htcp(Box::default())),
    entry!("scalable", "Scalable TCP: cwnd grows by 1/100 per round trip and shrinks by 1/8 per loss, as in Linux", |_| Controller::Scalable(Scalable)),
    entry!("vegas", "Vegas: keeps two to four packets in the queue, estimated from the RTT, as in Linux", |_| Controller::Vegas(Vegas::default())),
    entry!("illinois", "Illinois: gains follow the queueing delay, as in Linux", |_| Controller::Illinois(Box::default())),
    entry!("hybla", "Hybla: grows as on a path with an RTT of 25 ms, as in Linux", |_| Controller::Hybla(Hybla::default())),
    entry!("veno", "Veno: a loss on an uncongested path reduces cwnd by only a fifth, as in Linux", |_| Controller::Veno(Veno::default())),
    entry!("yeah", "YeAH: Scalable on an uncongested path, Reno on a congested one, as in Linux", |_| Controller::Yeah(Yeah::default())),
    entry!("nv", "NV: keeps at most ten packets in the queue, judged by delivery over the RTT, as in Linux", |_| Controller::Nv(Box::default())),
    entry!("cdg", "CDG: backs off at random as the RTT grows, as in Linux", CdgOptions, usual(), |options, _| Controller::Cdg(Box::new(Cdg::new(options)))),
    entry!("compound", "Compound: Reno's window plus a delay-based window (INFOCOM 2006)", |_| Controller::Compound(Compound::default())),
    entry!("copa", "Copa: a rate of 1/(delta times the queueing delay), delta 0.5 or as Reno where others fill the queue (NSDI 2018)", CopaOptions, usual(), |options, _| Controller::Copa(Box::new(Copa::new(options)))),
    entry!("dctcp", "DCTCP: reduces cwnd in proportion to the share of marked packets (RFC 8257); asks for ECN", |_| Controller::Dctcp(Dctcp::default())),
    entry!("prague", "TCP Prague: DCTCP adapted to the Internet, for L4S (draft-briscoe-iccrg-prague-congestion-control); asks for accurate ECN", PragueOptions, usual(), |options, _| Controller::Prague(Box::new(Prague::new(options)))),
    entry!("ledbat++", "LEDBAT++: background transport that keeps the queueing delay below 60 ms (draft-irtf-iccrg-ledbat-plus-plus)", |_| Controller::LedbatPlusPlus(Box::default())),
    entry!("bbr", "BBR, version 1, as in Linux: paces by a model of the path", |_| Controller::Bbr(Box::default())),
    entry!("bbr3", "BBR, version 3 (draft-ietf-ccwg-bbr): the model of version 1, bounded by losses", Bbr3Options, usual(), |options, _| Controller::Bbr3(Box::new(Bbr3::new(options)))),
];

fn reno(shared: Shared) -> Reno {
    let beta = shared.beta_permille.map_or(Reno::default().beta, beta_from_permille);
    Reno { beta, ecn_beta: shared.ecn_beta_permille.map_or(beta, beta_from_permille) }
}

fn cubic(params: CubicParams, shared: Shared) -> Controller {
    let beta = shared.beta_permille.map_or(params.beta, beta_from_permille);
    let ecn_beta = shared.ecn_beta_permille.map(beta_from_permille);
    Controller::Cubic(Cubic::new(CubicParams { beta, ecn_beta, counts_acks: shared.counts_acks, ..params }))
}

/// Name and one-line description of each built-in controller.
pub const REGISTRY: &[(&str, &str)] = &NAMES;

const NAMES: [(&str, &str); ENTRIES.len()] = {
    let mut names = [("", ""); ENTRIES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = (ENTRIES[i].name, ENTRIES[i].about);
        i += 1;
    }
    names
};

/// Return the entry called `name`.
fn find(name: &str) -> Result<&'static Entry, Refusal> {
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        Refusal::new(format_args!("{name:?}"), names.join(", "))
    })
}

/// Define the enum of controllers and the dispatch of calls to the contained controller.
macro_rules! controllers {
    ($d:tt $($variant:ident($held:ty),)*) => {
        /// All built-in controllers, and a variant for user-defined ones.
        #[derive(Clone)]
        #[allow(missing_docs, reason = "each variant holds the controller of its name")]
        pub enum Controller {
            $($variant($held),)*
            Custom(Custom),
        }

        impl Controller {
            /// Return a copy in the same state, or the reason why copying is impossible.
            pub fn copy(&self) -> Result<Controller, String> {
                match self {
                    $(Controller::$variant(c) => Ok(Controller::$variant(c.clone())),)*
                    Controller::Custom(c) => c.copied().map(Controller::Custom),
                }
            }
        }

        macro_rules! dispatch {
            ($d self:ident, $d c:ident => $d e:expr) => {
                match $d self {
                    $(Controller::$variant($d c) => $d e,)*
                    Controller::Custom($d c) => $d e,
                }
            };
        }
    };
}

controllers! { $
    Reno(Reno),
    Cubic(Cubic),
    Westwood(Box<Westwood>),
    WestwoodPlus(WestwoodPlus),
    Fast(Box<Fast>),
    HighSpeed(HighSpeed),
    Bic(Bic),
    Htcp(Box<Htcp>),
    Scalable(Scalable),
    Vegas(Vegas),
    Illinois(Box<Illinois>),
    Hybla(Hybla),
    Veno(Veno),
    Yeah(Yeah),
    Nv(Box<Nv>),
    Cdg(Box<Cdg>),
    Compound(Compound),
    Copa(Box<Copa>),
    Dctcp(Dctcp),
    Prague(Box<Prague>),
    LedbatPlusPlus(Box<LedbatPlusPlus>),
    Bbr(Box<Bbr>),
    Bbr3(Box<Bbr3>),
}

impl Controller {
    /// Return the controller called `name`, if there is one.
    pub fn by_name(name: &str) -> Option<Controller> {
        Controller::build(name, &Options::new(), Shared::default()).ok()
    }

    /// Names of all variables that built-in controllers expose in traces.
    pub fn known_vars() -> Vec<&'static str> {
        let mut known = Vec::new();
        for entry in ENTRIES {
            let recipe = Recipe::by_name(entry.name).expect("invariant: no option is needed");
            known
                .extend(recipe.needs().vars.iter().filter(|name| !known.contains(*name)).collect::<Vec<_>>());
        }
        known
    }

    /// Return the controller called `name` with these options.
    pub fn build(name: &str, options: &Options, shared: Shared) -> Result<Controller, Refusal> {
        Ok(Recipe::new(name, options, shared)?.make())
    }

    /// Whether the controller uses an RTT sample taken at `now`.
    #[inline]
    pub fn heeds_rtt(&self, now: Time) -> bool {
        match self {
            Controller::Cubic(c) => c.heeds_rtt(now),
            _ => true,
        }
    }
}

macro_rules! dispatched {
    ($($section:ident { $(
        $(#[doc = $about:literal])+
        fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
        [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
    )* })*) => {
        #[allow(clippy::needless_arbitrary_self_type, reason = "one form for all hooks")]
        impl CongestionControl for Controller {
            $($($(#[$inline])? fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)? {
                hand_on!($hook $me ($($arg),*))
            })*)*
        }
    };
}

/// Forward a hook to the contained controller. Only `copied` differs: it copies the whole enum.
macro_rules! hand_on {
    (copied $me:ident ()) => {
        $me.copy().map(|copy| Box::new(copy) as Custom)
    };
    ($hook:ident $me:ident ($($arg:ident),*)) => {
        dispatch!($me, c => c.$hook($($arg),*))
    };
}

crate::hooks!(dispatched);

#[cfg(test)]
mod closed_set {
    use super::*;
    use ackclock_core::schema::Takes;

    fn refused(name: &str, option: &str, value: Value) -> Refusal {
        let options = Options::from([(option.to_string(), value)]);
        Controller::build(name, &options, Shared::default()).err().expect("refused")
    }

    #[test]
    fn what_is_unknown_or_out_of_bounds_is_refused_with_what_is_allowed() {
        let refusal = refused("westwood", "estimator", Value::Text("abs".into()));
        assert_eq!((refusal.key.as_str(), refusal.found.as_str()), ("estimator", "\"abs\""));
        assert_eq!(refusal.allowed, "be, re, crb, abse, abse-batch");
        assert!(refused("westwood", "estimater", Value::Flag(true)).allowed.starts_with("estimator, astart"));
        assert_eq!(refused("fast", "gamma", Value::Number(0.0)).allowed, "a number from 0.001 to 1");
        assert_eq!(refused("reno", "x", Value::Flag(true)).allowed, "no option for reno");
        assert_eq!(refused("westwod", "", Value::Flag(true)).found, "\"westwod\"");
    }

    #[test]
    fn every_default_and_every_choice_is_accepted() {
        for entry in ENTRIES {
            let usual = (entry.usual)();
            for key in entry.options.keys {
                let mut values = match key.takes {
                    Takes::Flag => vec![Value::Flag(true), Value::Flag(false)],
                    Takes::Number(low, high) => vec![Value::Number(low), Value::Number(high)],
                    Takes::Whole(low, high) => vec![Value::Whole(low), Value::Whole(high)],
                    Takes::Choice(names) => names.iter().map(|n| Value::Text(n.to_string())).collect(),
                    other => panic!("{} {}: {other:?}", entry.name, key.name),
                };
                values.push(usual.get(key.name).expect("a default").clone());
                for value in values {
                    let options = Options::from([(key.name.to_string(), value.clone())]);
                    let built = Controller::build(entry.name, &options, Shared::default());
                    assert!(built.is_ok(), "{} {} {value}", entry.name, key.name);
                }
            }
        }
    }
}
