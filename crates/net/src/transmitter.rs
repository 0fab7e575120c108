//! Transmission times without a division for each packet: two sizes, the full segment and the pure ACK, are almost
//! all of the traffic on a link, so the last two are remembered.

use ackclock_core::{Rate, Span};

/// A link's rate with the transmission times of the two sizes seen last.
pub(crate) struct Transmitter {
    rate: Rate,
    sizes: [u32; 2],
    times: [Span; 2],
}

impl Transmitter {
    pub(crate) fn new(rate: Rate) -> Transmitter {
        assert!(rate.0 > 0, "invariant: a link's rate is positive");
        Transmitter { rate, sizes: [0; 2], times: [Span::ZERO; 2] }
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// The longer one of the times that are remembered.
    pub(crate) fn longest(&self) -> Span {
        self.times[0].max(self.times[1])
    }

    /// Time to put `bytes` on the wire.
    #[inline]
    pub(crate) fn time(&mut self, bytes: u32) -> Span {
        if bytes == self.sizes[0] {
            return self.times[0];
        }
        if bytes == self.sizes[1] {
            return self.times[1];
        }
        let tx = self.rate.tx_time(bytes);
        (self.sizes, self.times) = ([bytes, self.sizes[0]], [tx, self.times[0]]);
        tx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_times_equal_computed_ones() {
        let rate = Rate(10_000_000);
        let mut transmitter = Transmitter::new(rate);
        for bytes in [1514, 66, 1514, 1514, 78, 66, 0, 1514, 66] {
            assert_eq!(transmitter.time(bytes), rate.tx_time(bytes));
        }
        assert_eq!(Transmitter::new(Rate::INFINITE).time(1514), Span::ZERO);
    }
}
