//! Bernoulli loss: every packet, data or ACK, large or small, is lost with the same probability, independently. There
//! is one draw per packet, so the n-th packet has the same fate whatever the packets are (common random numbers).

use ackclock_core::rng::threshold;
use ackclock_core::schema::Takes;
use ackclock_core::{table, Stream};

use super::AppliesTo;

table! {
    /// Each packet is lost with the same probability, independently of the others.
    pub struct BernoulliParams "bernoulli" {
        /// Probability that a packet is lost.
        p: f64 = Takes::Share;
        /// Packets to which the model applies; others pass and are not counted.
        applies_to: AppliesTo = AppliesTo::TAKES, AppliesTo::All;
    }
}

#[derive(Clone)]
pub(crate) struct Bernoulli {
    threshold: u64,
    stream: Stream,
}

impl Bernoulli {
    pub(crate) fn new(p: f64, stream: Stream) -> Bernoulli {
        Bernoulli { threshold: threshold(p), stream }
    }

    #[inline]
    pub(crate) fn drops(&mut self) -> bool {
        self.stream.chance(self.threshold)
    }

    pub(crate) fn restart(&mut self, stream: Stream) {
        self.stream = stream;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_the_share_asked_for() {
        for (p, low, high) in [(0.0, 0, 0), (0.01, 900, 1100), (0.5, 49_000, 51_000), (1.0, 100_000, 100_000)]
        {
            let mut model = Bernoulli::new(p, Stream::new(1, "test"));
            let lost = (0..100_000).filter(|_| model.drops()).count();
            assert!((low..=high).contains(&lost), "{p}: {lost}");
        }
    }

    #[test]
    fn losses_are_independent() {
        let mut model = Bernoulli::new(0.2, Stream::new(1, "test"));
        let fate: Vec<bool> = (0..100_000).map(|_| model.drops()).collect();
        let pairs = fate.windows(2).filter(|w| w[0] && w[1]).count();
        assert!((3800..4200).contains(&pairs), "{pairs}"); // 0.2^2 of 10^5
    }
}
