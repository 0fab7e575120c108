//! Arrival times of clients: a Poisson process, equal intervals, or given times. They depend only on the random
//! stream, not on the network, so the scenarios of a comparison see the same arrivals.

use std::rc::Rc;

use ackclock_core::schema::{Takes, DURATION, DURATION_OR_ZERO};
use ackclock_core::{choice, family, table, Span, Stream, Time};

family! {
    /// Arrival process of clients.
    pub enum ArrivalsConfig "arrivals" {
        Poisson(PoissonParams),
        Periodic(PeriodicParams),
        At(AtParams),
    }
}

table! {
    /// Clients arrive as a Poisson process; give its intensity as `rate` or as `load`.
    pub struct PoissonParams "poisson" {
        /// Clients per second, for all flows of the group together.
        rate: Option<f64> = Takes::Above(0.0, MOST_PER_S);
        /// Offered load: the packets of all responses, each sent once, as a fraction of the bottleneck's rate.
        load: Option<f64> = Takes::Above(0.0, 100.0);
        /// Packets that `load` counts: only data packets, or also the SYN-ACK, FIN and two ACKs of each connection.
        load_counts: LoadCounts = LoadCounts::TAKES, LoadCounts::Data;
    }
    rules |poisson, rules| {
        if poisson.rate.is_some() == poisson.load.is_some() {
            let found = if poisson.rate.is_none() { "neither rate nor load" } else { "both rate and load" };
            rules.refuse_as("", found, "one of them");
        }
    }
}

table! {
    /// Clients arrive at equal intervals, the first when the flow starts.
    pub struct PeriodicParams "periodic" {
        /// Time from one client of a flow to the next.
        interval: Span = DURATION;
    }
}

table! {
    /// Clients arrive at given times.
    pub struct AtParams "at" {
        /// Times from the start of the flow, in ascending order.
        times: Vec<Span> = Takes::List(&DURATION_OR_ZERO, 1);
    }
    rules |at, rules| {
        if let Some(i) = at.times.windows(2).position(|pair| pair[1] < pair[0]) {
            let earlier = rules.shown(&format!("times.{i}"));
            rules.refuse(&format!("times.{}", i + 1), format_args!("{earlier} or later"));
        }
    }
}

/// Packets included in an offered load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadCounts {
    /// Data packets.
    Data,
    /// All packets in the data direction.
    All,
}

choice!(LoadCounts: Data "data", All "all");

/// Maximum number of clients per second.
pub const MOST_PER_S: f64 = 1e7;

/// An arrival process.
#[derive(Clone, Debug)]
pub enum Process {
    /// Exponentially distributed intervals.
    Poisson {
        /// Mean interval, ns.
        mean_ns: f64,
    },
    /// Equal intervals; the first client arrives at the start.
    Periodic {
        /// Length of the interval.
        interval: Span,
    },
    /// Listed times, in ascending order.
    At {
        /// Times relative to the start.
        times: Rc<[Span]>,
    },
}

/// Successive arrivals of one flow.
#[derive(Clone)]
pub struct Arrivals {
    process: Process,
    stream: Stream,
    start: Time,
    last: Option<Time>,
    past: usize,
}

impl Arrivals {
    /// Return the arrivals from `start` on.
    pub fn new(process: Process, stream: Stream, start: Time) -> Arrivals {
        Arrivals { process, stream, start, last: None, past: 0 }
    }

    /// Time of the next arrival; `Time::NEVER` if there is none.
    pub fn following(&mut self) -> Time {
        let next = match (&self.process, self.last) {
            (Process::Poisson { mean_ns }, last) => {
                let gap = (self.stream.exponential() * mean_ns).min(FARTHEST_NS);
                last.unwrap_or(self.start) + Span(gap as u64)
            }
            (Process::Periodic { .. }, None) => self.start,
            (Process::Periodic { interval }, Some(last)) => last + *interval,
            (Process::At { times }, _) => {
                let next = times.get(self.past).map_or(Time::NEVER, |&t| self.start + t);
                self.past += 1;
                next
            }
        };
        self.last = Some(next);
        next
    }
}

/// Maximum interval, beyond the end of any run.
const FARTHEST_NS: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_arrivals_have_mean_and_variance_of_their_rate() {
        let process = Process::Poisson { mean_ns: 1e6 };
        let mut arrivals = Arrivals::new(process, Stream::new(1, "test"), Time(5));
        // 20,000 windows of 10 mean intervals: counts have mean and variance 10
        let (mut counts, end) = (vec![0u32; 20_000], Time(200_000_000_000));
        loop {
            let t = arrivals.following();
            if t >= end {
                break;
            }
            counts[(t.0 / 10_000_000) as usize] += 1;
        }
        let n = counts.len() as f64;
        let mean = counts.iter().map(|&c| c as f64).sum::<f64>() / n;
        let variance = counts.iter().map(|&c| (c as f64 - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 10.0).abs() < 0.1, "{mean}");
        assert!((variance - 10.0).abs() < 0.4, "{variance}");
    }

    #[test]
    fn given_times_and_intervals_count_from_the_start() {
        let take = |process| {
            let mut arrivals = Arrivals::new(process, Stream::new(1, "test"), Time(100));
            [arrivals.following(), arrivals.following(), arrivals.following()]
        };
        assert_eq!(take(Process::Periodic { interval: Span(7) }), [Time(100), Time(107), Time(114)]);
        assert_eq!(
            take(Process::At { times: Rc::new([Span(0), Span(30)]) }),
            [Time(100), Time(130), Time::NEVER]
        );
    }
}
