//! Jitter: a random delay in addition to propagation, uniform over the whole nanoseconds of [0, jitter], independent
//! for each packet. Packets keep their order: a packet that would overtake its predecessor is delivered together with
//! it, as on a path where the delay arises in a FIFO element. Use `reorder` for deliberate reordering.

use ackclock_core::{Span, Stream, Time};

/// Generator of the extra delay, and the last delivery time.
#[derive(Clone)]
pub(crate) struct Jitter {
    values: u64,
    stream: Stream,
    last: Time,
}

impl Jitter {
    /// Return a generator; `None` without jitter, which then costs one branch.
    pub(crate) fn new(jitter: Span, stream: Stream) -> Option<Jitter> {
        let values = jitter.0.saturating_add(1);
        (jitter > Span::ZERO).then_some(Jitter { values, stream, last: Time::ZERO })
    }

    /// Return the delivery time of a packet that would be delivered at `undisturbed`.
    pub(crate) fn apply(&mut self, undisturbed: Time) -> Time {
        self.last = self.last.max(undisturbed + Span(self.stream.below(self.values)));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_packets_are_late_uniformly_and_close_ones_keep_order() {
        let mut jitter = Jitter::new(Span(10), Stream::new(1, "test")).expect("positive");
        let mut counts = [0u32; 11];
        for i in 0..11_000u64 {
            counts[(jitter.apply(Time(i * 100)).0 - i * 100) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (850..1150).contains(&c)), "{counts:?}");
        let mut before = Time(2_000_000);
        for i in 0..1000u64 {
            let delivery = jitter.apply(Time(2_000_000 + i));
            assert!(delivery >= before && delivery.0 - 2_000_000 - i <= 10);
            before = delivery;
        }
        assert!(Jitter::new(Span::ZERO, Stream::new(1, "test")).is_none());
    }
}
