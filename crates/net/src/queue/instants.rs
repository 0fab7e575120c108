//! Number of whole seconds of the run at which packets waited: the result of a monitor that samples a queue once per
//! second, without an event per sample.

use ackclock_core::Time;

/// Counter of the whole seconds at which a condition was true.
#[derive(Clone, Debug)]
pub(crate) struct Instants {
    counted: u64,
    /// First whole second that may still be counted, in seconds and in ns.
    next: u64,
    next_ns: u64,
}

impl Default for Instants {
    /// Return an empty counter whose first sample is after one second.
    fn default() -> Instants {
        Instants { counted: 0, next: 1, next_ns: SECOND }
    }
}

impl Instants {
    /// Record that the condition is true from `from` up to, but not including, `to`. Calls must be in order of `to`;
    /// their intervals may overlap.
    #[inline]
    pub(crate) fn cover(&mut self, from: Time, to: Time) {
        if self.lie_before(to) {
            self.count(from, to);
        }
    }

    /// Whether there may be uncounted seconds before `to`.
    #[inline]
    pub(crate) fn lie_before(&self, to: Time) -> bool {
        to.0 > self.next_ns
    }

    #[cold]
    fn count(&mut self, from: Time, to: Time) {
        let first = from.0.div_ceil(SECOND).max(self.next);
        let end = to.0.div_ceil(SECOND);
        self.counted += end.saturating_sub(first);
        self.next = end.max(first);
        self.next_ns = self.next.saturating_mul(SECOND);
    }

    /// Number of seconds counted up to and including `now`, if the condition is true from `now` to the end of the
    /// covered time.
    pub(crate) fn up_to(&self, now: Time) -> u64 {
        self.counted - self.next.saturating_sub(now.0 / SECOND + 1)
    }
}

const SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Oracle: sample every second.
        #[test]
        fn counts_what_a_look_each_second_would_see(gaps in prop::collection::vec((0u64..3_000, 0u64..4_000), 1..40)) {
            let (mut instants, mut spans, mut from, mut to) = (Instants::default(), Vec::new(), 0, 0);
            for (gap, length) in gaps {
                from += gap * 1_000_000;
                to = to.max(from) + length * 1_000_000;
                instants.cover(Time(from), Time(to));
                spans.push((from, to));
            }
            let seen = |last: u64| {
                (1..=last).filter(|k| spans.iter().any(|&(a, b)| (a..b).contains(&(k * SECOND)))).count() as u64
            };
            prop_assert_eq!(instants.up_to(Time(to)), seen(to / SECOND));
            // also at an earlier time, if the condition is true from then on without a break
            let tail = spans.iter().rev().scan(to, |until, &(a, b)| { let joins = b >= *until; *until = a; joins.then_some(a) }).last();
            if let Some(start) = tail.filter(|&t| t < to && t >= from) {
                prop_assert_eq!(instants.up_to(Time(start)), seen(start / SECOND));
            }
        }
    }
}
