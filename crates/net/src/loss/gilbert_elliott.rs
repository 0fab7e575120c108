//! Gilbert-Elliott loss: bursts, from a two-state Markov chain that takes one step per packet.
//!
//! Sources: E. N. Gilbert, "Capacity of a burst-noise channel", BSTJ 39 (1960); E. O. Elliott, "Estimates of error
//! rates for codes on burst-noise channels", BSTJ 42 (1963).
//!
//! A packet is lost with the probability of the current state, then the chain takes a step: good to bad with
//! probability p, bad to good with probability r. In the long run the fraction of packets sent in the bad state is p
//! / (p + r), the loss rate is (p loss_bad + r loss_good) / (p + r), and a stay in the bad state lasts 1 / r packets
//! on average. The first state is drawn from that stationary distribution, so that a short transfer also sees the
//! long-run loss rate, not the lower one of a channel that always starts in the good state.

use ackclock_core::rng::threshold;
use ackclock_core::schema::Takes;
use ackclock_core::{table, Stream};

use super::AppliesTo;

table! {
    /// Gilbert-Elliott model: two states, good and bad, each with its own loss probability.
    pub struct GilbertElliottParams "gilbert-elliott" {
        /// Probability, per packet, of a change from the good to the bad state.
        p: f64 = Takes::Share;
        /// Probability, per packet, of a change from the bad to the good state.
        r: f64 = Takes::Share;
        /// Loss probability in the bad state.
        loss_bad: f64 = Takes::Share, 1.0;
        /// Loss probability in the good state.
        loss_good: f64 = Takes::Share, 0.0;
        /// Packets to which the model applies; others pass and are not counted.
        applies_to: AppliesTo = AppliesTo::TAKES, AppliesTo::All;
    }
}

#[derive(Clone)]
pub(crate) struct GilbertElliott {
    to_bad: u64,
    to_good: u64,
    loss_bad: u64,
    loss_good: u64,
    start_bad: u64,
    bad: bool,
    stream: Stream,
}

impl GilbertElliott {
    pub(crate) fn new(p: f64, r: f64, loss_bad: f64, loss_good: f64, stream: Stream) -> GilbertElliott {
        // With p = r = 0 the chain never leaves the good state.
        let share_bad = if p > 0.0 { p / (p + r) } else { 0.0 };
        let mut model = GilbertElliott {
            to_bad: threshold(p),
            to_good: threshold(r),
            loss_bad: threshold(loss_bad),
            loss_good: threshold(loss_good),
            start_bad: threshold(share_bad),
            bad: false,
            stream: stream.clone(),
        };
        model.restart(stream);
        model
    }

    /// Decide at random whether a packet is lost. Every packet takes two draws, so the fate of the n-th packet
    /// depends only on n.
    #[inline]
    pub(crate) fn drops(&mut self) -> bool {
        let (loss, leave) =
            if self.bad { (self.loss_bad, self.to_good) } else { (self.loss_good, self.to_bad) };
        let lost = self.stream.chance(loss);
        self.bad ^= self.stream.chance(leave);
        lost
    }

    pub(crate) fn restart(&mut self, stream: Stream) {
        self.stream = stream;
        self.bad = self.stream.chance(self.start_bad);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_rate_and_burst_length_are_the_stationary_ones() {
        let (p, r, loss_bad, loss_good) = (0.01, 0.2, 0.8, 0.001);
        let mut model = GilbertElliott::new(p, r, loss_bad, loss_good, Stream::new(1, "test"));
        let n = 1_000_000;
        let lost = (0..n).filter(|_| model.drops()).count() as f64 / n as f64;
        let expected = (p * loss_bad + r * loss_good) / (p + r);
        assert!((lost / expected - 1.0).abs() < 0.03, "{lost} {expected}");

        let mut model = GilbertElliott::new(p, r, 1.0, 0.0, Stream::new(2, "test"));
        let fate: Vec<bool> = (0..n).map(|_| model.drops()).collect();
        let bursts = fate.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let mean = fate.iter().filter(|&&l| l).count() as f64 / bursts;
        assert!((mean * r - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn the_first_packet_meets_the_stationary_distribution() {
        let first = |seed| GilbertElliott::new(0.1, 0.3, 1.0, 0.0, Stream::new(seed, "test")).drops();
        let lost = (0..10_000).filter(|&seed| first(seed)).count();
        assert!((2350..2650).contains(&lost), "{lost}"); // 0.1 / (0.1 + 0.3)
    }

    #[test]
    fn a_chain_that_never_steps_is_good() {
        let mut model = GilbertElliott::new(0.0, 0.0, 1.0, 0.0, Stream::new(1, "test"));
        assert!((0..1000).all(|_| !model.drops()));
    }
}
