//! When clients come: a Poisson process, equal intervals, or given times. Instants depend on the stream alone, not on
//! what the network does, so that two arms of a comparison see the same arrivals.

use std::rc::Rc;

use ackclock_core::{Span, Stream, Time};

/// A process of arrivals.
#[derive(Clone, Debug)]
pub enum Process {
    /// Exponential intervals of this mean, ns.
    Poisson {
        /// Mean interval, ns.
        mean_ns: f64,
    },
    /// Equal intervals, the first arrival at once.
    Periodic {
        /// Interval.
        interval: Span,
    },
    /// These times after the start, in order.
    At {
        /// The times.
        times: Rc<[u64]>,
    },
}

/// The arrivals of one flow, one after another.
pub struct Arrivals {
    process: Process,
    stream: Stream,
    start: Time,
    last: Option<Time>,
    past: usize,
}

impl Arrivals {
    /// Arrivals from `start` on.
    pub fn new(process: Process, stream: Stream, start: Time) -> Arrivals {
        Arrivals { process, stream, start, last: None, past: 0 }
    }

    /// The next arrival; `Time::NEVER` if there is none.
    pub fn following(&mut self) -> Time {
        let next = match (&self.process, self.last) {
            (Process::Poisson { mean_ns }, last) => {
                let gap = (self.stream.exponential() * mean_ns).min(FARTHEST_NS);
                last.unwrap_or(self.start) + Span(gap as u64)
            }
            (Process::Periodic { .. }, None) => self.start,
            (Process::Periodic { interval }, Some(last)) => last + *interval,
            (Process::At { times }, _) => {
                let next = times.get(self.past).map_or(Time::NEVER, |&t| self.start + Span(t));
                self.past += 1;
                next
            }
        };
        self.last = Some(next);
        next
    }
}

/// Longest interval: beyond every run.
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
        assert_eq!(take(Process::At { times: Rc::new([0, 30]) }), [Time(100), Time(130), Time::NEVER]);
    }
}
