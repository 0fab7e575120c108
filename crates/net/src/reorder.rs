//! Reordering: a fraction of the packets is delayed, so that later packets overtake them.

use ackclock_core::rng::threshold;
use ackclock_core::schema::{Takes, DURATION};
use ackclock_core::{table, Span, Stream};

table! {
    /// The link holds back some packets, and later packets overtake them.
    pub struct Reorder "reorder" {
        /// Probability that a packet is held back.
        probability: f64 = Takes::Share;
        /// Extra delay of a packet that is held back.
        extra_delay: Span = DURATION;
    }
}

/// Random choice of the packets that are delayed.
#[derive(Clone)]
pub(crate) struct Chooser {
    threshold: u64,
    extra_delay: Span,
    stream: Stream,
}

impl Chooser {
    /// Return a chooser; `None` if no packet would ever be overtaken.
    pub(crate) fn new(config: Option<&Reorder>, stream: Stream) -> Option<Chooser> {
        let &Reorder { probability, extra_delay } = config?;
        (extra_delay > Span::ZERO).then(|| Chooser { threshold: threshold(probability), extra_delay, stream })
    }

    /// Extra delay of the next packet; `None` for packets that are not delayed.
    pub(crate) fn extra_delay(&mut self) -> Option<Span> {
        self.stream.chance(self.threshold).then_some(self.extra_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_back_the_share_asked_for() {
        let config = Reorder { probability: 0.1, extra_delay: Span(5) };
        let mut chooser = Chooser::new(Some(&config), Stream::new(1, "test")).expect("has an effect");
        let held = (0..10_000).filter(|_| chooser.extra_delay() == Some(Span(5))).count();
        assert!((900..1100).contains(&held), "{held}");
        let nothing = Reorder { extra_delay: Span::ZERO, ..config };
        assert!(Chooser::new(Some(&nothing), Stream::new(1, "test")).is_none());
    }
}
