//! Aggregation: packets are held until the first of them has waited for a given time, and are then released together,
//! in order. Cable and radio links deliver ACKs in this way, and Google's QUICHE tests its BBR with it. The release
//! time of a bundle is known when its first packet arrives, so no event is needed: a packet that arrives before the
//! release is delivered with the bundle.

use ackclock_core::{Span, Time};

/// The current bundle.
#[derive(Clone)]
pub(crate) struct Aggregate {
    timeout: Span,
    release: Time,
}

impl Aggregate {
    /// Return an aggregator; `None` for a timeout of zero.
    pub(crate) fn new(timeout: Span) -> Option<Aggregate> {
        (timeout > Span::ZERO).then_some(Aggregate { timeout, release: Time::ZERO })
    }

    /// Return the delivery time of a packet that would be delivered at `undisturbed`. Delivery times never decrease.
    pub(crate) fn apply(&mut self, undisturbed: Time) -> Time {
        if undisturbed > self.release {
            self.release = undisturbed + self.timeout;
        }
        self.release
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_before_the_release_leaves_with_it() {
        let mut held = Aggregate::new(Span(20)).expect("held");
        let leaves: Vec<u64> = [5, 10, 25, 26, 100].iter().map(|&t| held.apply(Time(t)).0).collect();
        assert_eq!(leaves, [25, 25, 25, 46, 120]);
        assert!(Aggregate::new(Span::ZERO).is_none());
    }
}
