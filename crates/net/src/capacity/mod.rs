//! Links whose capacity varies in time. A constant rate is the link's own business; a link has one of these only if
//! it was asked for, so that it costs the others one branch.
//!
//! All kinds know the future as well as the past, so a departure is computed on arrival here too.

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
    /// How a link's capacity varies.
    pub enum CapacityConfig "capacities" {
        Schedule(ScheduleParams),
        Random(RandomParams),
        Mahimahi(MahimahiParams),
        Dummynet(DummynetParams),
        TokenBucket(TokenBucketParams),
    }
}

/// Properties of a link with this capacity; the link's own rate is infinite if it has none.
impl CapacityConfig {
    /// Nominal rate: for a trace its mean, for a schedule the first.
    pub fn nominal(&self, rate: Rate) -> Rate {
        match self {
            CapacityConfig::Mahimahi(params) => params.mean(),
            CapacityConfig::Schedule(params) if rate == Rate::INFINITE => {
                params.steps.first().and_then(|step| step.rate).unwrap_or(rate)
            }
            _ => rate,
        }
    }

    /// The greatest rate for long.
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

    /// Maximum number of changes in this time: each takes the engine some time, regardless of traffic.
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

    /// The longest delay.
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

/// A link's varying capacity at work.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "boxed as a whole, one for each link that has it")]
pub(crate) enum Capacity {
    Schedule(Schedule),
    Replay(Replay),
    Dummynet(Dummynet),
    TokenBucket(TokenBucket),
}

impl Capacity {
    /// `stream` gives the random stream of a part of the link.
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

    /// Whether the schedule loses this packet, which arrives at `now`.
    pub(crate) fn drops(&mut self, now: Time) -> bool {
        match self {
            Capacity::Schedule(schedule) => schedule.drops(now),
            Capacity::Replay(_) | Capacity::Dummynet(_) | Capacity::TokenBucket(_) => false,
        }
    }

    /// Transmission time of a packet at the moment, for a queue that needs an estimate.
    pub(crate) fn typical(&mut self, now: Time, bytes: u32) -> Span {
        match self {
            Capacity::Schedule(schedule) => schedule.rate(now).tx_time(bytes),
            Capacity::Replay(replay) => replay.typical(),
            Capacity::Dummynet(pipe) => pipe.typical(bytes),
            Capacity::TokenBucket(bucket) => bucket.typical(bytes),
        }
    }

    /// Start of a packet that may leave from `earliest` on, when it is taken from the queue.
    pub(crate) fn start(&self, earliest: Time) -> Time {
        match self {
            Capacity::Schedule(_) | Capacity::TokenBucket(_) => earliest,
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
            Capacity::TokenBucket(bucket) => {
                let end = bucket.transmit(earliest, bytes);
                (end, end)
            }
        }
    }

    /// Arrival at the far end of a packet whose transmission has just been settled, to end at `end`.
    pub(crate) fn delivery(&mut self, end: Time) -> Time {
        match self {
            Capacity::Schedule(schedule) => schedule.delivery(end),
            Capacity::Replay(replay) => end + replay.delay,
            Capacity::Dummynet(pipe) => pipe.delivery(end),
            Capacity::TokenBucket(bucket) => bucket.delivery(end),
        }
    }

    /// Whether the schedule had to be given up.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Capacity::Schedule(schedule) => schedule.is_lost(),
            Capacity::Replay(_) | Capacity::Dummynet(_) | Capacity::TokenBucket(_) => false,
        }
    }

    /// Delivery opportunities up to `now`, and those of which some was used.
    pub(crate) fn opportunities(&self, now: Time) -> (u64, u64) {
        match self {
            Capacity::Schedule(_) | Capacity::Dummynet(_) | Capacity::TokenBucket(_) => (0, 0),
            Capacity::Replay(replay) => replay.opportunities(now),
        }
    }
}
