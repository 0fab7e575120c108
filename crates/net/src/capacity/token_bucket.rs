//! Token-bucket shaper: Linux TBF. Tokens arrive at the link's rate, up to `burst`. A packet is sent at once if there
//! are enough tokens, otherwise as soon as they have arrived.
//!
//! Source: Linux 7.3 sch_tbf (`tbf_dequeue`) and sch_generic (`psched_ratecfg_precompute`), paraphrased: tokens are whole
//! nanoseconds, and a packet's are computed with a product and a shift. Differs: TBF drops a packet larger than its
//! bucket, or splits it if it has several segments. Here such a packet is sent once the bucket is full, and the next one
//! waits until the deficit is made up.

use ackclock_core::schema::Takes;
use ackclock_core::{table, Rate, Span, Time};

table! {
    /// A token bucket like that of Linux TBF (`tbf rate RATE burst BURST limit LIMIT`): after a pause, up to `burst`
    /// bytes are sent at once.
    /// The link's `rate` fills the bucket, which is full at the start. The limit of the link's queue takes the place of
    /// TBF's limit.
    pub struct TokenBucketParams "token-bucket" {
        /// Size of the bucket.
        burst: u64 = Takes::Size(1, 1 << 40);
    }
}

/// Linux's conversion of a length to tokens (`psched_l2t_ns`): the transmission time, rounded down.
#[derive(Clone, Copy)]
struct PerByte {
    /// Nanoseconds per byte, multiplied by 2^`shift`.
    mult: u64,
    shift: u32,
}

impl PerByte {
    /// Take the largest shift for which the factor fits into 32 bits.
    fn new(rate: Rate) -> PerByte {
        let rate = (rate.0 / 8).max(1);
        let (mut factor, mut shift) = (1_000_000_000u64, 0);
        loop {
            let mult = (factor / rate) as u32;
            if mult >> 31 == 1 || factor >> 63 == 1 {
                return PerByte { mult: mult as u64, shift };
            }
            factor <<= 1;
            shift += 1;
        }
    }

    fn tokens(self, bytes: u64) -> i64 {
        ((bytes as u128 * self.mult as u128) >> self.shift).min(i64::MAX as u128) as i64
    }
}

#[derive(Clone)]
pub(crate) struct TokenBucket {
    rate: Rate,
    delay: Span,
    per_byte: PerByte,
    /// Tokens of a full bucket, ns.
    most: i64,
    /// Tokens in the bucket, ns; negative after a packet larger than the bucket.
    tokens: i64,
    /// Time of the last update of `tokens`.
    at: Time,
}

impl TokenBucket {
    pub(crate) fn new(params: &TokenBucketParams, rate: Rate, delay: Span) -> TokenBucket {
        let per_byte = PerByte::new(rate);
        let most = per_byte.tokens(params.burst);
        TokenBucket { rate, delay, per_byte, most, tokens: most, at: Time::ZERO }
    }

    /// Transmission time of a packet when the bucket is empty.
    pub(crate) fn typical(&self, bytes: u32) -> Span {
        self.rate.tx_time(bytes)
    }

    /// Send a packet no earlier than `earliest`. Returns its departure time.
    pub(crate) fn transmit(&mut self, earliest: Time, bytes: u32) -> Time {
        let size = self.per_byte.tokens(bytes as u64);
        let now = earliest.max(self.at);
        let since = i64::try_from(now.0 - self.at.0).unwrap_or(i64::MAX);
        let there = self.tokens.saturating_add(since).min(self.most);
        let wait = (size.min(self.most) - there).max(0);
        self.at = Time(now.0.saturating_add(wait as u64));
        self.tokens = there + wait - size;
        self.at
    }

    /// Arrival time at the far end of a packet that departs at `end`.
    pub(crate) fn delivery(&self, end: Time) -> Time {
        end + self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapacityConfig, LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::Packet;
    use proptest::prelude::*;

    fn link(burst: u64, rate: Rate, queue: QueueConfig) -> SoleLink {
        let capacity = Some(CapacityConfig::TokenBucket(TokenBucketParams { burst }));
        SoleLink::new(&LinkConfig { capacity, queue, ..LinkConfig::new("l", rate, Span::ZERO) }, 1)
    }

    fn departures(link: &mut SoleLink, offers: &[(u64, u32)]) -> Vec<u64> {
        let mut found = Vec::new();
        for &(at, bytes) in offers {
            while link.next_event() < Time(at) {
                let now = link.next_event();
                found.extend(link.poll(now).map(|_| now.0));
            }
            let _ = link.offer(Time(at), Packet { bytes, ..Packet::default() });
        }
        while link.next_event() != Time::NEVER {
            let now = link.next_event();
            found.extend(link.poll(now).map(|_| now.0));
        }
        found
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        // 8 Mbit/s = 1 byte per us; the bucket has room for three packets
        let offers = [(0, 1000); 6];
        let found = departures(&mut link(3000, Rate(8_000_000), QueueConfig::UNLIMITED), &offers);
        assert_eq!(found, [0, 0, 0, 1_000_000, 2_000_000, 3_000_000]);
        // a 2 ms pause accumulates tokens for two packets
        let offers =
            [(0, 1000), (0, 1000), (0, 1000), (2_000_000, 1000), (2_000_000, 1000), (2_000_000, 1000)];
        let found = departures(&mut link(3000, Rate(8_000_000), QueueConfig::UNLIMITED), &offers);
        assert_eq!(found, [0, 0, 0, 2_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_leaves_a_debt() {
        let found =
            departures(&mut link(500, Rate(8_000_000), QueueConfig::UNLIMITED), &[(0, 1000), (0, 1000)]);
        assert_eq!(found, [0, 1_000_000]);
    }

    #[test]
    fn the_limit_counts_what_waits_for_tokens() {
        let found = departures(&mut link(1000, Rate(8_000_000), QueueConfig::packets(2)), &[(0, 1000); 9]);
        assert_eq!(found, [0, 1_000_000, 2_000_000]);
    }

    proptest! {
        /// In any time window no more bytes are sent than the bucket and the rate allow, and a packet waits only as
        /// long as that limit requires.
        #[test]
        fn departures_conform_to_the_bucket_and_no_later_ones_do(
            kbit in 1u64..100_000,
            burst in 1600u64..50_000,
            gaps in prop::collection::vec((0u64..5_000_000, 40u32..1600), 1..60),
        ) {
            let mut at = 0;
            let offers: Vec<(u64, u32)> = gaps.iter().map(|&(gap, bytes)| { at += gap; (at, bytes) }).collect();
            let found = departures(&mut link(burst, Rate(kbit * 1000), QueueConfig::UNLIMITED), &offers);
            let unit = PerByte::new(Rate(kbit * 1000));
            for to in 0..offers.len() {
                // minimum slack over all windows that end with this packet, ns
                let mut sum = 0;
                let room = (0..=to).rev().map(|from| {
                    sum += unit.tokens(offers[from].1 as u64);
                    unit.tokens(burst) + (found[to] - found[from]) as i64 - sum
                }).min().expect("one at least");
                prop_assert!(room >= 0, "packet {}: {}", to, room);
                let waited = found[to] > offers[to].0 && (to == 0 || found[to] > found[to - 1]);
                prop_assert!(!waited || room == 0, "packet {} could have left before: {}", to, room);
            }
        }

        /// A packet's tokens are its transmission time, rounded down; the factor has 31 significant bits at least,
        /// unless the rate is so high that it runs out of places.
        #[test]
        fn tokens_are_the_transmission_time(rate in 1u64..12_500_000_000, bytes in 1u64..1 << 20) {
            let exact = bytes as u128 * 1_000_000_000 / rate as u128;
            let found = PerByte::new(Rate(8 * rate)).tokens(bytes) as u128;
            prop_assert!(found <= exact && exact - found <= 1 + (exact >> 26), "{} for {}", found, exact);
        }
    }
}
