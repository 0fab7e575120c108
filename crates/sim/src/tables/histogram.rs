//! Fixed-size histogram of durations. Each power of two has 128 bins, so a value is known to within 0.8 % (0.4 % from
//! the middle of its bin), whatever its magnitude. The size does not grow with the number of values.

use ackclock_core::Span;

/// Base-2 logarithm of the number of bins per power of two.
const FINE_BITS: u32 = 7;
const FINE: u64 = 1 << FINE_BITS;

/// Histogram of durations.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Counts by bin, up to the bin of the largest value; at most 7424 bins.
    bins: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Add a value.
    #[inline]
    pub fn add(&mut self, value: Span) {
        let bin = bin_of(value.0);
        if self.bins.len() <= bin {
            self.reach(bin);
        }
        self.bins[bin] += 1;
        self.total += 1;
    }

    #[cold]
    fn reach(&mut self, bin: usize) {
        self.bins.resize(bin + 1, 0);
    }

    /// Add the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        self.bins.iter_mut().zip(&other.bins).for_each(|(sum, more)| *sum += more);
        self.total += other.total;
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Non-empty bins: lower bound, exclusive upper bound, count.
    pub fn bins(&self) -> impl Iterator<Item = (Span, Span, u64)> + '_ {
        let filled = self.bins.iter().enumerate().filter(|(_, &count)| count > 0);
        filled.map(|(bin, &count)| (Span(least_of(bin)), Span(least_of(bin + 1)), count))
    }

    /// Quantile `p` of the values: the middle of the bin containing the ceil(p n)-th value. `None` if empty.
    pub fn quantile(&self, p: f64) -> Option<Span> {
        let [found] = self.quantiles([p]);
        found
    }

    /// Return several quantiles, given in ascending order, in one pass.
    pub fn quantiles<const N: usize>(&self, p: [f64; N]) -> [Option<Span>; N] {
        let mut found = [None; N];
        let mut at = 0;
        let mut below = 0;
        let first = self.bins.iter().position(|&count| count > 0).unwrap_or(self.bins.len());
        for (bin, &count) in self.bins.iter().enumerate().skip(first) {
            below += count;
            while at < N && below >= self.rank(p[at]) {
                let (low, high) = (least_of(bin), least_of(bin + 1));
                found[at] = Some(Span(low + (high - low) / 2));
                at += 1;
            }
            if at == N {
                break;
            }
        }
        found
    }

    fn rank(&self, p: f64) -> u64 {
        (libm::ceil(p * self.total as f64) as u64).clamp(1, self.total.max(1))
    }
}

/// Bin of a value. Values below 2^FINE_BITS have their own bins. For others, the leading bit and the FINE_BITS bits
/// after it determine the bin.
fn bin_of(value: u64) -> usize {
    if value < FINE {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros();
    let shift = exponent - FINE_BITS;
    ((shift as u64 + 1) * FINE + ((value >> shift) - FINE)) as usize
}

fn least_of(bin: usize) -> u64 {
    let (octave, fine) = (bin as u64 / FINE, bin as u64 % FINE);
    match octave {
        0 => fine,
        _ => (FINE + fine).checked_shl(octave as u32 - 1).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_follow_each_other_without_a_gap() {
        for bin in 0..7000 {
            let (low, high) = (least_of(bin), least_of(bin + 1));
            assert!(low < high, "{bin}");
            assert_eq!((bin_of(low), bin_of(high - 1)), (bin, bin));
        }
    }

    proptest! {
        /// Oracle: the sorted values.
        #[test]
        fn quantiles_are_those_of_the_list(mut values in prop::collection::vec(1u64..1 << 44, 1..400), p in 0.0f64..1.0) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&v| histogram.add(Span(v)));
            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).max(1);
            let (exact, got) = (values[rank - 1] as f64, histogram.quantile(p).expect("values").0 as f64);
            prop_assert!((got / exact - 1.0).abs() <= 0.004, "{} {}", got, exact);
            prop_assert_eq!(histogram.quantiles([p / 2.0, p]), [histogram.quantile(p / 2.0), histogram.quantile(p)]);
            prop_assert_eq!(histogram.bins().map(|(_, _, n)| n).sum::<u64>(), values.len() as u64);
        }
    }
}
