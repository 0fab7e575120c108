//! Listed loss: exactly the listed packets are lost, counted from 1 in order of arrival at the link. If the model
//! applies only to SYNs, the list selects handshake packets.

use ackclock_core::schema::Takes;
use ackclock_core::table;

use super::{AppliesTo, ORDINAL};

table! {
    /// Exactly the listed packets are lost, numbered in their order of arrival at the link.
    pub struct ListedParams "listed" {
        /// Numbers of the lost packets, counted from 1. With `applies_to = "syn"`, 1 is the first SYN or SYN-ACK.
        packets: Vec<u64> = Takes::List(&ORDINAL, 0);
        /// Packets to which the model applies; others pass and are not counted.
        applies_to: AppliesTo = AppliesTo::TAKES, AppliesTo::All;
    }
}

#[derive(Clone)]
pub(crate) struct Listed {
    /// Numbers of the lost packets, in ascending order.
    packets: Vec<u64>,
    seen: u64,
    past: usize,
}

impl Listed {
    pub(crate) fn new(packets: &[u64]) -> Listed {
        let mut packets = packets.to_vec();
        packets.sort_unstable();
        packets.dedup();
        Listed { packets, seen: 0, past: 0 }
    }

    pub(crate) fn drops(&mut self) -> bool {
        self.seen += 1;
        let drops = self.packets.get(self.past).is_some_and(|&n| n <= self.seen);
        self.past += drops as usize;
        drops
    }

    pub(crate) fn restart(&mut self) {
        (self.seen, self.past) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_those_of_the_list_are_lost() {
        let mut model = Listed::new(&[7, 1, 3, 3]);
        let lost = |model: &mut Listed| (1..=10).filter(|_| model.drops()).collect::<Vec<_>>();
        assert_eq!(lost(&mut model), [1, 3, 7]);
        assert!(lost(&mut model).is_empty());
        model.restart();
        assert_eq!(lost(&mut model), [1, 3, 7]);
        assert!(lost(&mut Listed::new(&[])).is_empty());
    }
}
