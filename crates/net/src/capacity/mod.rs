//! Capacity that varies over time. A constant rate is handled by the link itself; only a link with `capacity` has one
//! of these kinds, so other links pay only for one branch.
//!
//! Every kind is known in advance, so departures can still be computed on arrival.

mod dummynet;
mod schedule;
mod token_bucket;
mod trace;

use ackclock_core::{family, Rate, Span, Stream, Time};

pub use dummynet::DummynetParams;
pub use schedule::{RandomParams, ScheduleParams, Step, MOST_PHASES};
pub use token_bucket::TokenBucketParams;
pub use trace::{read_trace, MahimahiParams, Opportunities};

use dummynet::Dummynet;
use schedule::Schedule;
use token_bucket::TokenBucket;
use trace::Replay;

family! {
    /// Variation of a link's capacity over time.
    pub enum CapacityConfig "capacities" {
        Schedule(ScheduleParams),
        Random(RandomParams),
        Mahimahi(MahimahiParams),
        Dummynet(DummynetParams),
        TokenBucket(TokenBucketParams),
    }
}

/// Properties of a link with this capacity. `rate` is the link's own rate, infinite if there is none.
impl CapacityConfig {
    /// Nominal rate: the mean of a trace, the first rate of a schedule.
    pub fn nominal(&self, rate: Rate) -> Rate {
        match self {
            CapacityConfig::Mahimahi(params) => params.mean(),
            CapacityConfig::Schedule(params) if rate == Rate::INFINITE => {
                params.steps.first().and_then(|step| step.rate).unwrap_or(rate)
            }
            _ => rate,
        }
    }

    /// Maximum sustained rate.
    pub fn greatest(&self, rate: Rate) -> Rate {
        match self {
            CapacityConfig::Schedule(params) => {
                let own = (rate != Rate::INFINITE).then_some(rate);
                params.steps.iter().filter_map(|step| step.rate).chain(own).max().unwrap_or(rate)
            }
            CapacityConfig::Random(params) => {
                params.rate.as_ref().map_or(rate, |drawn| Rate(drawn.greatest() as u64))
            }
            CapacityConfig::Mahimahi(_) | CapacityConfig::Dummynet(_) | CapacityConfig::TokenBucket(_) => {
                self.nominal(rate)
            }
        }
    }

    /// Maximum number of changes within `time`. Each change costs the engine some work, regardless of traffic.
    pub fn changes(&self, time: Span) -> f64 {
        let times = |every: Span| time.0 as f64 / every.0.max(1) as f64;
        match self {
            CapacityConfig::Schedule(params) => {
                params.steps.len() as f64 * params.repeat.map_or(1.0, |every| times(every).max(1.0))
            }
            CapacityConfig::Random(params) => times(params.every),
            CapacityConfig::Mahimahi(_) | CapacityConfig::Dummynet(_) => times(Span::from_us(1000)),
            CapacityConfig::TokenBucket(_) => 0.0,
        }
    }

    /// Maximum delay.
    pub fn longest(&self, delay: Span) -> Span {
        match self {
            CapacityConfig::Schedule(params) => {
                params.steps.iter().filter_map(|step| step.delay).fold(delay, Span::max)
            }
            CapacityConfig::Random(params) => {
                params.delay.as_ref().map_or(delay, |drawn| Span((drawn.greatest() * 1e9) as u64))
            }
            CapacityConfig::Mahimahi(_) | CapacityConfig::Dummynet(_) | CapacityConfig::TokenBucket(_) => {
                delay
            }
        }
    }
}

/// State of a link's varying capacity.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "boxed as a whole, one for each link that has it")]
pub(crate) enum Capacity {
    Schedule(Schedule),
    Replay(Replay),
    Dummynet(Dummynet),
    TokenBucket(TokenBucket),
}

impl Capacity {
    /// Return the state at the start of a run. `stream` returns the random stream for a part of the link.
    pub(crate) fn new(
        config: &CapacityConfig,
        rate: Rate,
        delay: Span,
        stream: impl Fn(&str) -> Stream,
    ) -> Capacity {
        match config {
            CapacityConfig::Schedule(p) => Capacity::Schedule(Schedule::listed(p, rate, delay, stream)),
            CapacityConfig::Random(p) => Capacity::Schedule(Schedule::random(p, rate, delay, stream)),
            CapacityConfig::Mahimahi(params) => Capacity::Replay(Replay::new(params, delay)),
            CapacityConfig::Dummynet(params) => Capacity::Dummynet(Dummynet::new(params, rate, delay)),
            CapacityConfig::TokenBucket(params) => {
                Capacity::TokenBucket(TokenBucket::new(params, rate, delay))
            }
        }
    }

    /// Whether the schedule loses a packet that arrives at `now`.
    pub(crate) fn drops(&mut self, now: Time) -> bool {
        match self {
            Capacity::Schedule(schedule) => schedule.drops(now),
            Capacity::Replay(_) | Capacity::Dummynet(_) | Capacity::TokenBucket(_) => false,
        }
    }

    /// Current transmission time of a packet, as an estimate for queues.
    pub(crate) fn typical(&mut self, now: Time, bytes: u32) -> Span {
        match self {
            Capacity::Schedule(schedule) => schedule.rate(now).tx_time(bytes),
            Capacity::Replay(replay) => replay.typical(),
            Capacity::Dummynet(pipe) => pipe.typical(bytes),
            Capacity::TokenBucket(bucket) => bucket.typical(bytes),
        }
    }

    /// Time at which the queue releases a packet that may be sent no earlier than `earliest`.
    pub(crate) fn start(&self, earliest: Time) -> Time {
        match self {
            Capacity::Schedule(_) | Capacity::TokenBucket(_) => earliest,
            Capacity::Replay(replay) => replay.start(earliest),
            Capacity::Dummynet(pipe) => pipe.start(earliest),
        }
    }

    /// Transmit a packet no earlier than `earliest`, which must not decrease from call to call. Returns the start and
    /// end of its transmission.
    pub(crate) fn transmit(&mut self, earliest: Time, bytes: u32) -> (Time, Time) {
        match self {
            Capacity::Schedule(schedule) => (earliest, schedule.transmit(earliest, bytes)),
            Capacity::Replay(replay) => replay.transmit(earliest, bytes),
            Capacity::Dummynet(pipe) => {
                let end = pipe.transmit(earliest, bytes);
                (end, end)
            }
            Capacity::TokenBucket(bucket) => {
                let end = bucket.transmit(earliest, bytes);
                (end, end)
            }
        }
    }

    /// Arrival time at the far end of the last packet transmitted, whose transmission ends at `end`.
    pub(crate) fn delivery(&mut self, end: Time) -> Time {
        match self {
            Capacity::Schedule(schedule) => schedule.delivery(end),
            Capacity::Replay(replay) => end + replay.delay,
            Capacity::Dummynet(pipe) => pipe.delivery(end),
            Capacity::TokenBucket(bucket) => bucket.delivery(end),
        }
    }

    /// Whether the schedule has been abandoned.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Capacity::Schedule(schedule) => schedule.is_lost(),
            Capacity::Replay(_) | Capacity::Dummynet(_) | Capacity::TokenBucket(_) => false,
        }
    }

    /// Delivery opportunities up to `now`, and the number used at least in part.
    pub(crate) fn opportunities(&self, now: Time) -> (u64, u64) {
        match self {
            Capacity::Schedule(_) | Capacity::Dummynet(_) | Capacity::TokenBucket(_) => (0, 0),
            Capacity::Replay(replay) => replay.opportunities(now),
        }
    }
}
