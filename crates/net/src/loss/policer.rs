//! Token-bucket policer: packets that exceed a rate are dropped at once, without a queue. Flach et al., "An
//! Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016; like `police` in Linux's traffic control.
//!
//! The bucket fills at `rate` up to `bucket` bytes. A packet of L bytes that finds at least L bytes in the bucket
//! takes them and passes undelayed; otherwise it is dropped and takes none. Tokens are integers in bit x ns/s, so no
//! rounding occurs however often the bucket is updated. A full bucket lets a burst of bucket / (1 - rate / C) bytes
//! pass at line rate C. Access networks police subscribers: with `per = "flow"` each flow has its own bucket.

use ackclock_core::packet::FlowId;
use ackclock_core::schema::{Takes, RATE, SIZE};
use ackclock_core::{choice, table, Rate, Time};

table! {
    /// A token-bucket policer: it drops packets that exceed a rate, and delays none.
    pub struct PolicerParams "policer" {
        /// Rate at which tokens arrive. IP packets and framing consume them.
        rate: Rate = RATE;
        /// Capacity of the bucket.
        bucket: u64 = SIZE;
        /// Bytes in the bucket at the start. Default: the bucket is full.
        initial: Option<u64> = Takes::Size(0, 1 << 40);
        /// One bucket for the whole link, or one for each flow.
        per: Per = Per::TAKES, Per::Link;
    }
}

/// Flows that share a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// All flows.
    Link,
    /// The connections of one flow.
    Flow,
}

choice! { Per: Link "link", Flow "flow" }

/// Tokens per byte, in bit x ns/s.
const BYTE: u128 = 8 * 1_000_000_000;

#[derive(Clone)]
pub(crate) struct Policer {
    rate: u128,
    full: u128,
    initial: u128,
    per: Per,
    /// Buckets by flow number; with `per = "link"` only the first is used.
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy)]
struct Bucket {
    tokens: u128,
    last: Time,
}

impl Policer {
    pub(crate) fn new(params: &PolicerParams) -> Policer {
        let full = u128::from(params.bucket) * BYTE;
        let initial = params.initial.map_or(full, |bytes| u128::from(bytes) * BYTE).min(full);
        Policer { rate: u128::from(params.rate.0), full, initial, per: params.per, buckets: Vec::new() }
    }

    /// Whether a packet of this size that arrives now is dropped.
    pub(crate) fn drops(&mut self, now: Time, flow: FlowId, bytes: u32) -> bool {
        let number = match self.per {
            Per::Link => 0,
            Per::Flow => flow as usize,
        };
        if number >= self.buckets.len() {
            self.buckets.resize(number + 1, Bucket { tokens: self.initial, last: Time::ZERO });
        }
        let bucket = &mut self.buckets[number];
        let filled = self.rate * u128::from(now.since(bucket.last).0);
        bucket.last = now;
        bucket.tokens = (bucket.tokens + filled).min(self.full);
        let asked = u128::from(bytes) * BYTE;
        if bucket.tokens < asked {
            return true;
        }
        bucket.tokens -= asked;
        false
    }

    pub(crate) fn restart(&mut self) {
        self.buckets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policer(rate: u64, bucket: u64, initial: Option<u64>) -> Policer {
        Policer::new(&PolicerParams { rate: Rate(rate), bucket, initial, per: Per::Link })
    }

    #[test]
    fn twice_the_rate_loses_half_in_the_long_run() {
        let mut model = policer(1_000_000, 10_000, Some(0));
        // 1500 bytes every 6 ms are 2 Mbit/s
        let lost = (0..100_000u64).filter(|i| model.drops(Time(i * 6_000_000), 0, 1500)).count();
        assert!((49_990..=50_010).contains(&lost), "{lost}");
    }

    #[test]
    fn a_burst_within_the_bucket_loses_nothing_and_one_packet_more_does() {
        let mut model = policer(1_000_000, 15_000, None);
        assert_eq!((0..11).filter(|_| model.drops(Time::ZERO, 0, 1500)).count(), 1);
        // 15 kB are available again after exactly 120 ms
        assert!((0..9).all(|_| !model.drops(Time(119_999_999), 0, 1500)));
        assert!(model.drops(Time(119_999_999), 0, 1500));
        assert!(!model.drops(Time(120_000_000), 0, 1500));
    }

    #[test]
    fn a_full_bucket_passes_a_burst_that_is_longer_by_what_comes_in() {
        // 100 kB at 10 Mbit/s into a rate of 1 Mbit/s: the n-th packet passes while 1500 n <= 100,000 + 150 (n - 1)
        let mut model = policer(1_000_000, 100_000, None);
        let passed = (0..1000u64).take_while(|i| !model.drops(Time(i * 1_200_000), 0, 1500)).count();
        assert_eq!(passed, 73);
    }

    #[test]
    fn each_flow_has_a_bucket_of_its_own() {
        for (per, passed) in [(Per::Link, 10), (Per::Flow, 20)] {
            let params = PolicerParams { rate: Rate(1_000_000), bucket: 15_000, initial: None, per };
            let mut model = Policer::new(&params);
            let fates: Vec<bool> = (0..40).map(|i| model.drops(Time::ZERO, i % 2 * 3, 1500)).collect();
            assert_eq!(fates.iter().filter(|&&dropped| !dropped).count(), passed);
            model.restart();
            assert!(!model.drops(Time::ZERO, 3, 15_000));
        }
    }

    proptest! {
        /// Oracle: in no time window do more bytes pass than the bucket plus the tokens of that window.
        #[test]
        fn never_more_than_bucket_and_rate(
            gaps in prop::collection::vec(0u64..50_000_000, 1..200), rate in 1u64..20_000_000, bucket in 0u64..20_000,
        ) {
            let mut model = policer(rate, bucket, None);
            let mut now = 0;
            let mut passed = Vec::new();
            for gap in gaps {
                now += gap;
                if !model.drops(Time(now), 0, 1500) {
                    passed.push(now);
                }
            }
            for (i, &from) in passed.iter().enumerate() {
                for (n, &to) in passed[i..].iter().enumerate() {
                    let bits = (n as u128 + 1) * 12_000 * 1_000_000_000;
                    prop_assert!(bits <= u128::from(bucket) * BYTE + u128::from(rate) * u128::from(to - from));
                }
            }
        }
    }
}
