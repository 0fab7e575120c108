//! The gate: a host loses its processor from time to time, as a virtual machine on a shared processor does. While the
//! gate is closed, the host neither receives nor sends, and its timers do not fire. Pending work is done when the
//! gate opens.
//!
//! On-times and off-times alternate, each drawn at random. The first on-time is cut short at a random point, so that
//! hosts with fixed times are not synchronised.

use ackclock_core::schema::{Takes, Unit};
use ackclock_core::{family, table, Distribution, Span, Stream, Time};

table! {
    /// Periods with and without the processor alternate, each drawn from a distribution.
    /// The first on-period is shortened at random.
    pub struct TimesParams "times" {
        /// Length of a period with the processor.
        on: Distribution = Takes::Drawn(Unit::Duration);
        /// Length of a period without the processor.
        off: Distribution = Takes::Drawn(Unit::Duration);
    }
    rules |times, rules| {
        for (key, drawn) in [("on", &times.on), ("off", &times.off)] {
            if drawn.mean() <= 0.0 {
                rules.refuse_as(key, "no time", "times above zero");
            }
        }
    }
}

table! {
    /// A virtual machine under Xen's credit scheduler.
    /// It runs for one, two or three ticks of 10 ms, then stalls while each of its competitors runs for a slice of 30
    /// ms.
    pub struct XenParams "xen" {
        /// Number of other virtual machines that compete for the processor and are always busy.
        competitors: u32 = Takes::Whole(1, 1000), 1;
    }
}

family! {
    /// Periods during which a host has no processor.
    pub enum GateConfig "gates" {
        Times(TimesParams),
        Xen(XenParams),
    }
}

/// Slice of Xen's credit scheduler, s. The scheduler checks its queue three times per slice.
pub(super) const SLICE: f64 = 0.03;
const TICK: f64 = 0.01;

impl GateConfig {
    /// Return the gate's on-times and off-times.
    pub(super) fn times(&self) -> TimesParams {
        match self {
            GateConfig::Times(times) => times.clone(),
            GateConfig::Xen(xen) => TimesParams {
                on: Distribution::Choice { values: [1.0, 2.0, 3.0].map(|ticks| TICK * ticks).to_vec() },
                off: Distribution::Constant { value: SLICE * xen.competitors as f64 },
            },
        }
    }
}

/// Gate state. Must be queried with non-decreasing times.
#[derive(Clone)]
pub(crate) struct Gate {
    config: TimesParams,
    stream: Stream,
    open: bool,
    /// Time of the next change.
    until: Time,
    stalled: Span,
    stalls: u64,
    longest: Span,
    /// Length of the current off-time, or of the last one.
    length: Span,
}

impl Gate {
    pub(crate) fn new(config: TimesParams, mut stream: Stream) -> Gate {
        let first = seconds(config.on.draw(&mut stream) * stream.unit());
        let (stalled, longest, length) = (Span::ZERO, Span::ZERO, Span::ZERO);
        Gate { config, stream, open: true, until: Time::ZERO + first, stalled, stalls: 0, longest, length }
    }

    /// Time at which the gate opens next; `None` if it is open at `now`.
    pub(crate) fn closed_until(&mut self, now: Time) -> Option<Time> {
        while self.until <= now {
            self.open = !self.open;
            let times = if self.open { &self.config.on } else { &self.config.off };
            // at least one nanosecond, so that time always advances
            let length = seconds(times.draw(&mut self.stream)).0.max(1);
            self.until += Span(length);
            if !self.open {
                self.length = Span(length);
                self.stalled = self.stalled + self.length;
                self.stalls += 1;
                self.longest = self.longest.max(self.length);
            }
        }
        (!self.open).then_some(self.until)
    }

    /// Total time closed up to `now`, number of stalls, and length of the longest one.
    pub(crate) fn stalled(&mut self, now: Time) -> (Span, u64, Span) {
        let to_come = self.closed_until(now).map_or(Span::ZERO, |until| until - now);
        (self.stalled.saturating_sub(to_come), self.stalls, self.longest)
    }
}

fn seconds(s: f64) -> Span {
    Span((s.clamp(0.0, 1e6) * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(on: Distribution, off: Distribution) -> Gate {
        Gate::new(TimesParams { on, off }, Stream::new(5, "test"))
    }

    #[test]
    fn shares_are_those_of_the_means() {
        let ms = |ms: f64| Distribution::Constant { value: ms * 1e-3 };
        // Xen's credit scheduler: on for one to three 10 ms ticks, off for a competitor's 30 ms slice
        let xen = Distribution::Choice { values: vec![0.01, 0.02, 0.03] };
        let end = Time(1_000_000_000_000);
        for (on, off, share) in [
            (ms(30.0), ms(30.0), 0.5),
            (Distribution::Exponential { mean: 0.1 }, ms(5.0), 5.0 / 105.0),
            (xen, ms(30.0), 30.0 / 50.0),
        ] {
            let mut gate = gate(on, off);
            let (stalled, stalls, longest) = gate.stalled(end);
            assert!((stalled.as_secs() / 1000.0 - share).abs() < 0.02, "{share}: {stalled:?}");
            assert!(stalls > 1000 && longest <= Span::from_ms(30));
        }
    }

    /// Oracle: queries at every millisecond and occasional queries return the same results.
    #[test]
    fn it_does_not_matter_who_asks_when() {
        let make =
            || gate(Distribution::Exponential { mean: 0.02 }, Distribution::Exponential { mean: 0.01 });
        let (mut often, mut rarely) = (make(), make());
        for ms in 0..100_000u64 {
            let now = Time(ms * 1_000_000);
            let closed = often.closed_until(now);
            assert!(closed.is_none_or(|until| until > now));
            if ms % 997 == 0 {
                assert_eq!(closed, rarely.closed_until(now));
            }
        }
        let end = Time(100_000_000_000);
        assert_eq!(often.stalled(end), rarely.stalled(end));
    }
}
