//! Periodic loss: the model behind the "square root of p" formulas. Of all packets to which the model applies, of any
//! flow, the first `offset` pass; after them every `every`-th is lost.

use ackclock_core::schema::Takes;
use ackclock_core::table;

use super::{AppliesTo, ORDINAL};

table! {
    /// Every n-th packet is lost.
    pub struct PeriodicParams "periodic" {
        /// The number n: one packet in n is lost.
        every: u64 = ORDINAL;
        /// Number of packets that pass before counting begins.
        offset: u64 = Takes::Whole(0, 1 << 31), 0;
        /// Packets to which the model applies; others pass and are not counted.
        applies_to: AppliesTo = AppliesTo::TAKES, AppliesTo::All;
    }
}

#[derive(Clone)]
pub(crate) struct Periodic {
    every: u64,
    offset: u64,
    /// Number of packets up to and including the next one lost.
    left: u64,
}

impl Periodic {
    pub(crate) fn new(every: u64, offset: u64) -> Periodic {
        let mut model = Periodic { every, offset, left: 0 };
        model.restart();
        model
    }

    #[inline]
    pub(crate) fn drops(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = self.every;
        true
    }

    pub(crate) fn restart(&mut self) {
        self.left = if self.every == 0 { u64::MAX } else { self.offset.saturating_add(self.every) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(model: &mut Periodic, n: u32) -> Vec<u32> {
        (1..=n).filter(|_| model.drops()).collect()
    }

    #[test]
    fn counts_from_the_offset() {
        let mut model = Periodic::new(4, 3);
        assert_eq!(lost(&mut model, 16), [7, 11, 15]);
        model.restart();
        assert_eq!(lost(&mut model, 8), [7]);
        assert_eq!(lost(&mut Periodic::new(1, 0), 3), [1, 2, 3]);
        assert!(lost(&mut Periodic::new(0, 0), 100).is_empty());
    }
}
