//! Scripted loss: exactly the listed transmissions are lost, for experiments that prescribe which segments are.
//!
//! Only data segments on their way forward are named by a script; pure ACKs, SYNs and the whole way back pass. A
//! segment (or piece of data of a datagram) is named by its ordinal, counted from 1 in order of first transmission, so a script means the same under
//! every controller and every timing.

use ackclock_core::{FlowId, Packet};

/// Data segments `first..=last` of a flow, each at its `transmission`-th transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// The flow.
    pub flow: FlowId,
    /// First segment lost.
    pub first: u32,
    /// Last segment lost.
    pub last: u32,
    /// Which transmission: 0 the original, 1 the first retransmission, ...
    pub transmission: u8,
}

pub(crate) struct Scripted {
    /// Disjoint, in order of (flow, transmission, first).
    drops: Vec<Drop>,
}

impl Scripted {
    pub(crate) fn new(drops: &[Drop]) -> Scripted {
        let mut sorted: Vec<Drop> = drops.iter().copied().filter(|d| d.first <= d.last).collect();
        sorted.sort_by_key(key);
        let mut merged: Vec<Drop> = Vec::with_capacity(sorted.len());
        for d in sorted {
            match merged.last_mut() {
                Some(m) if (m.flow, m.transmission) == (d.flow, d.transmission) && d.first <= m.last => {
                    m.last = m.last.max(d.last);
                }
                _ => merged.push(d),
            }
        }
        Scripted { drops: merged }
    }

    pub(crate) fn drops(&self, packet: &Packet) -> bool {
        if !packet.forward || packet.header.payload() == 0 {
            return false;
        }
        let (ordinal, rexmit) = packet.header.ordinal();
        // A packet of several segments is dropped if one of them is to be.
        let last = (packet.flow, rexmit, ordinal + packet.more as u32);
        let after = self.drops.partition_point(|d| key(d) <= last);
        self.drops[..after]
            .last()
            .is_some_and(|d| (d.flow, d.transmission) == (packet.flow, rexmit) && ordinal <= d.last)
    }
}

fn key(d: &Drop) -> (FlowId, u8, u32) {
    (d.flow, d.transmission, d.first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Segment;
    use proptest::prelude::*;

    fn packet(flow: FlowId, seg_no: u32, rexmit: u8) -> Packet {
        let seg = Segment { seg_no, rexmit, len: 1448, ..Segment::default() };
        Packet { header: seg.into(), flow, forward: true, ..Packet::default() }
    }

    #[test]
    fn loses_data_on_its_way_forward_only() {
        let model = Scripted::new(&[Drop { flow: 0, first: 5, last: 5, transmission: 0 }]);
        let data = packet(0, 5, 0);
        assert!(model.drops(&data));
        assert!(!model.drops(&packet(0, 5, 1)) && !model.drops(&packet(1, 5, 0)));
        assert!(!model.drops(&Packet { forward: false, ..data }));
        let empty = Segment { seg_no: 5, ..Segment::default() };
        assert!(!model.drops(&Packet { header: empty.into(), ..data }));
    }

    proptest! {
        /// Oracle: look at every line of the script.
        #[test]
        fn equals_a_search_through_the_list(
            lines in prop::collection::vec((0u32..2, 1u32..20, 0u32..6, 0u8..3), 0..12)
        ) {
            let drops: Vec<Drop> = lines
                .iter()
                .map(|&(flow, first, n, transmission)| Drop { flow, first, last: first + n, transmission })
                .collect();
            let model = Scripted::new(&drops);
            for (flow, rexmit, seg_no) in (0..3).flat_map(|f| (0..4).flat_map(move |r| (0..30).map(move |s| (f, r, s)))) {
                let expected = drops
                    .iter()
                    .any(|d| d.flow == flow && d.transmission == rexmit && (d.first..=d.last).contains(&seg_no));
                prop_assert_eq!(model.drops(&packet(flow, seg_no, rexmit)), expected);
            }
        }
    }
}
