//! Link rates in whole bits per second.

use ackclock_schema::{Described, Refusal, Value};

use crate::time::Span;

/// A transmission rate in bit/s. At `Rate::INFINITE`, transmission takes no time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(pub u64);

impl Rate {
    /// Infinite rate: transmission takes no time.
    pub const INFINITE: Rate = Rate(u64::MAX);

    /// Serialisation time of `bytes`, rounded to the nearest nanosecond.
    #[inline]
    pub fn tx_time(self, bytes: u32) -> Span {
        if self == Rate::INFINITE {
            return Span::ZERO;
        }
        let bits_ns = bytes as u64 * 8 * 1_000_000_000; // < 2^66 only beyond 1 GB packets; u32 bytes fit u64
        Span((bits_ns + self.0 / 2) / self.0)
    }

    /// Bytes transmitted within `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Span) -> u64 {
        (self.0 as u128 * span.0 as u128 / 8_000_000_000) as u64
    }
}

impl Described for Rate {
    fn read(value: &Value) -> Result<Rate, Refusal> {
        u64::read(value).map(Rate).map_err(|_| Refusal::new(value, "bit/s"))
    }
    fn write(&self) -> Value {
        Value::Whole(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_at_10_mbit() {
        assert_eq!(Rate(10_000_000).tx_time(1514), Span(1_211_200));
        assert_eq!(Rate::INFINITE.tx_time(1514), Span::ZERO);
    }

    #[test]
    fn bandwidth_delay_product() {
        assert_eq!(Rate(100_000_000).bytes_in(Span::from_ms(40)), 500_000);
    }
}
