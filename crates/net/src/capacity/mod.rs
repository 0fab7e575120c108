//! Links whose capacity varies in time. A constant rate is the link's own business; a link has one of these only if
//! it was asked for, so that it costs the others one branch.
//!
//! All kinds know the future as well as the past, so a departure is computed on arrival here too.

mod dummynet;
mod schedule;
mod trace;

use std::sync::Arc;

use ackclock_core::schema::Family;
use ackclock_core::{Distribution, Rate, Span, Time};

pub use dummynet::DummynetParams;
pub use schedule::{Step, MOST_PHASES};
pub use trace::Trace;

use dummynet::Dummynet;
use schedule::Schedule;
use trace::Replay;

/// Every way in which a link's capacity can vary: its name in a scenario, and what it does.
pub const REGISTRY: &[(&str, &str)] = &[
    ("schedule", "rate, delay and loss change at listed times, once or in a cycle"),
    ("random", "rate, delay and loss are drawn anew at fixed intervals"),
    ("mahimahi", "packets leave at the delivery opportunities of a Mahimahi trace, which repeats"),
    ("dummynet", "packets leave at the ticks of a clock, as in FreeBSD's dummynet"),
];

/// Those that describe themselves.
pub const FAMILY: &Family = &Family { name: "capacities", tables: &[DummynetParams::TABLE] };

/// How a link's capacity varies.
#[derive(Clone, Debug, PartialEq)]
pub enum CapacityConfig {
    /// At listed times.
    Steps {
        /// In order of time; the first at zero.
        steps: Arc<[Step]>,
        /// After this long it all begins again; `None`: the last step lasts.
        repeat: Option<Span>,
    },
    /// Drawn anew at intervals. What has no distribution stays as the link has it, or, for the loss, is none.
    Random {
        /// Length of an interval, positive.
        every: Span,
        /// bit/s.
        rate: Option<Distribution>,
        /// Seconds.
        delay: Option<Distribution>,
        /// Probability.
        loss: Option<Distribution>,
    },
    /// Delivery opportunities.
    Trace(Arc<Trace>),
    /// Ticks of a clock.
    Dummynet(DummynetParams),
}

/// A link's varying capacity at work.
#[allow(clippy::large_enum_variant, reason = "boxed as a whole, one for each link that has it")]
pub(crate) enum Capacity {
    Schedule(Schedule),
    Replay(Replay),
    Dummynet(Dummynet),
}

impl Capacity {
    /// `stream` gives the random stream of a part of the link.
    pub(crate) fn new(
        config: &CapacityConfig,
        rate: Rate,
        delay: Span,
        stream: impl Fn(&str) -> ackclock_core::Stream,
    ) -> Capacity {
        match config {
            CapacityConfig::Trace(trace) => Capacity::Replay(Replay::new(trace.clone(), delay)),
            CapacityConfig::Dummynet(params) => Capacity::Dummynet(Dummynet::new(params, rate, delay)),
            _ => Capacity::Schedule(Schedule::new(config, rate, delay, stream)),
        }
    }

    /// Whether the schedule loses this packet, which arrives at `now`.
    pub(crate) fn drops(&mut self, now: Time) -> bool {
        match self {
            Capacity::Schedule(schedule) => schedule.drops(now),
            Capacity::Replay(_) | Capacity::Dummynet(_) => false,
        }
    }

    /// What the transmission of a packet takes at the moment, for a queue that wants to know.
    pub(crate) fn typical(&mut self, now: Time, bytes: u32) -> Span {
        match self {
            Capacity::Schedule(schedule) => schedule.rate(now).tx_time(bytes),
            Capacity::Replay(replay) => replay.typical(),
            Capacity::Dummynet(pipe) => pipe.typical(bytes),
        }
    }

    /// When a packet that may go from `earliest` on starts; it is taken from the queue then.
    pub(crate) fn start(&self, earliest: Time) -> Time {
        match self {
            Capacity::Schedule(_) => earliest,
            Capacity::Replay(replay) => replay.start(earliest),
            Capacity::Dummynet(pipe) => pipe.start(earliest),
        }
    }

    /// Use the capacity for a packet that may go from `earliest` on: start and end of its transmission. `earliest`
    /// never decreases.
    pub(crate) fn transmit(&mut self, earliest: Time, bytes: u32) -> (Time, Time) {
        match self {
            Capacity::Schedule(schedule) => (earliest, schedule.transmit(earliest, bytes)),
            Capacity::Replay(replay) => replay.transmit(earliest, bytes),
            Capacity::Dummynet(pipe) => {
                let end = pipe.transmit(earliest, bytes);
                (end, end)
            }
        }
    }

    /// When a packet whose transmission has just been settled, to end at `end`, reaches the far end.
    pub(crate) fn delivery(&mut self, end: Time) -> Time {
        match self {
            Capacity::Schedule(schedule) => schedule.delivery(end),
            Capacity::Replay(replay) => end + replay.delay,
            Capacity::Dummynet(pipe) => pipe.delivery(end),
        }
    }

    /// Whether the schedule had to be given up.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Capacity::Schedule(schedule) => schedule.is_lost(),
            Capacity::Replay(_) | Capacity::Dummynet(_) => false,
        }
    }

    /// Delivery opportunities up to `now`, and those of which some was used.
    pub(crate) fn opportunities(&self, now: Time) -> (u64, u64) {
        match self {
            Capacity::Schedule(_) | Capacity::Dummynet(_) => (0, 0),
            Capacity::Replay(replay) => replay.opportunities(now),
        }
    }
}
