//! Sets of ranges of sequence space, in order and of bounded size.

/// Disjoint half-open ranges, in order.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    all: Vec<(i64, i64)>,
}

/// Maximum number of ranges; beyond it the lowest is discarded.
pub const MOST: usize = 4096;

impl Ranges {
    /// Add a range. `new` is called with each part that was not contained before.
    pub fn add(&mut self, start: i64, end: i64, mut new: impl FnMut(i64, i64)) {
        if start >= end {
            return;
        }
        let first = self.all.partition_point(|&(_, e)| e < start);
        let mut last = first;
        let (mut from, mut low, mut high) = (start, start, end);
        while let Some(&(s, e)) = self.all.get(last).filter(|&&(s, _)| s <= end) {
            if from < s {
                new(from, s);
            }
            from = from.max(e);
            low = low.min(s);
            high = high.max(e);
            last += 1;
        }
        if from < end {
            new(from, end);
        }
        self.all.splice(first..last, [(low, high)]);
        if self.all.len() > MOST {
            self.all.remove(0);
        }
    }

    /// Whether the set contains the whole range.
    pub fn holds(&self, start: i64, end: i64) -> bool {
        let at = self.all.partition_point(|&(_, e)| e <= start);
        self.all.get(at).is_some_and(|&(s, e)| s <= start && end <= e)
    }

    /// Remove a range. Returns the number of bytes removed.
    pub fn take(&mut self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        let first = self.all.partition_point(|&(_, e)| e <= start);
        let mut last = first;
        let mut taken = 0;
        let mut left = [None, None];
        while let Some(&(s, e)) = self.all.get(last).filter(|&&(s, _)| s < end) {
            taken += e.min(end) - s.max(start);
            if s < start {
                left[0] = Some((s, start));
            }
            if end < e {
                left[1] = Some((end, e));
            }
            last += 1;
        }
        self.all.splice(first..last, left.into_iter().flatten());
        taken
    }

    /// Remove everything below `end`. Returns the number of bytes removed.
    pub fn forget_below(&mut self, end: i64) -> i64 {
        match self.all.first() {
            Some(&(start, _)) if start < end => self.take(start, end),
            _ => 0,
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Oracle: one flag per byte.
        #[test]
        fn a_set_of_bytes(steps in proptest::collection::vec((0u8..3, 0i64..64, 1i64..20), 1..60)) {
            let mut ranges = Ranges::default();
            let mut bytes = [false; 128];
            for (what, start, length) in steps {
                let end = start + length;
                let place = start as usize..end as usize;
                match what {
                    0 => {
                        let mut new = vec![];
                        ranges.add(start, end, |s, e| new.extend(s..e));
                        let missing: Vec<i64> = (start..end).filter(|&b| !bytes[b as usize]).collect();
                        prop_assert_eq!(new, missing);
                        bytes[place].fill(true);
                    }
                    1 => {
                        let there = bytes[place.clone()].iter().filter(|&&b| b).count() as i64;
                        prop_assert_eq!(ranges.take(start, end), there);
                        bytes[place].fill(false);
                    }
                    _ => prop_assert_eq!(ranges.holds(start, end), bytes[place].iter().all(|&b| b)),
                }
                prop_assert!(ranges.all.windows(2).all(|w| w[0].1 <= w[1].0));
            }
        }
    }
}
