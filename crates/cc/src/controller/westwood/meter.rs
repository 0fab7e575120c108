//! Bytes acknowledged over any recent interval. Cumulative sums by arrival time make a query one binary search and one
//! subtraction.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// ACKs within the longest interval that can be queried.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Arrival time, and cumulative bytes up to and including it.
    sums: VecDeque<(Time, f64)>,
    total: f64,
    /// Cumulative bytes up to the entries that were dropped.
    before: f64,
}

impl Meter {
    /// Add `bytes` that arrive at `now`, and drop entries older than `keep`.
    #[inline]
    pub fn add(&mut self, now: Time, bytes: f64, keep: Span) {
        self.total += bytes;
        match self.sums.back_mut() {
            Some(last) if last.0 == now => last.1 = self.total,
            _ => self.sums.push_back((now, self.total)),
        }
        let horizon = Time(now.0.saturating_sub(keep.0));
        while let Some(&(t, sum)) = self.sums.front() {
            if t > horizon {
                break;
            }
            self.before = sum;
            self.sums.pop_front();
        }
    }

    /// Return the bytes that arrived after `now - interval`. The interval must not exceed `keep`.
    #[inline]
    pub fn over(&self, now: Time, interval: Span) -> f64 {
        let start = Time(now.0.saturating_sub(interval.0));
        // the newest entries are needed most often
        for (age, &(t, _)) in self.sums.iter().rev().take(4).enumerate() {
            if t <= start {
                return self.total - self.sums[self.sums.len() - 1 - age].1;
            }
        }
        match self.sums.partition_point(|&(t, _)| t <= start) {
            0 => self.total - self.before,
            n => self.total - self.sums[n - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_those_of_a_plain_list(
            steps in prop::collection::vec((0u64..40, 1u32..3000, 0u64..500), 1..200),
        ) {
            let mut meter = Meter::default();
            let mut all: Vec<(u64, f64)> = Vec::new();
            let mut now = 0;
            for (gap, bytes, interval) in steps {
                now += gap;
                all.push((now, f64::from(bytes)));
                meter.add(Time(now), f64::from(bytes), Span(500));
                // nothing arrived before time 0
                let since = now as i64 - interval as i64;
                let want: f64 = all.iter().filter(|a| a.0 as i64 > since.max(0) || (since < 0)).map(|a| a.1).sum();
                if since >= 0 {
                    prop_assert_eq!(meter.over(Time(now), Span(interval)), want);
                }
            }
        }
    }
}
