//! Scripted loss: exactly the listed transmissions are lost, for experiments that prescribe the lost segments.
//!
//! A script lists only data segments in the forward direction; pure ACKs, SYNs and the whole reverse direction pass.
//! A segment (or the data of a datagram) is identified by its ordinal, counted from 1 in order of first transmission,
//! so a script has the same meaning with every controller and every timing.

use ackclock_core::schema::Takes;
use ackclock_core::{table, FlowId, Packet};

use super::ORDINAL;

table! {
    /// Exactly the listed transmissions of data segments are lost.
    pub struct ScriptedParams "scripted" {
        /// The transmissions that are lost.
        drops: Vec<Drop> = Takes::List(&Takes::Table(Drop::TABLE), 0);
    }
}

table! {
    /// A range of data segments, one transmission of which is lost.
    pub struct Drop "drop" {
        /// Number of the flow, from 0.
        flow: FlowId = Takes::Whole(0, 1 << 31), 0;
        /// First segment of the range, counted from 1 in the order of first transmission.
        first: u32 = ORDINAL;
        /// Last segment of the range. Default: only the first segment.
        last: Option<u32> = ORDINAL;
        /// Which transmission is lost: 0 the original, 1 the first retransmission, and so on.
        transmission: u8 = Takes::Whole(0, 255), 0;
    }
    rules |drop, rules| {
        if drop.last.is_some_and(|last| last < drop.first) {
            rules.refuse("last", format_args!("{} (first) or more", drop.first));
        }
    }
}

/// Data segments `first..=last` of a flow, of which transmission number `transmission` is lost.
#[derive(Clone, Copy)]
struct Range {
    flow: FlowId,
    first: u32,
    last: u32,
    transmission: u8,
}

impl From<&Drop> for Range {
    fn from(drop: &Drop) -> Range {
        let &Drop { flow, first, last, transmission } = drop;
        Range { flow, first, last: last.unwrap_or(first), transmission }
    }
}

#[derive(Clone)]
pub(crate) struct Scripted {
    /// Disjoint ranges, in order of (flow, transmission, first).
    drops: Vec<Range>,
}

impl Scripted {
    pub(crate) fn new(drops: &[Drop]) -> Scripted {
        let mut sorted: Vec<Range> = drops.iter().map(Range::from).filter(|d| d.first <= d.last).collect();
        sorted.sort_by_key(key);
        let mut merged: Vec<Range> = Vec::with_capacity(sorted.len());
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
        // A multi-segment packet is dropped if any of its segments is listed.
        let last = (packet.flow, rexmit, ordinal + packet.more as u32);
        let after = self.drops.partition_point(|d| key(d) <= last);
        self.drops[..after]
            .last()
            .is_some_and(|d| (d.flow, d.transmission) == (packet.flow, rexmit) && ordinal <= d.last)
    }
}

fn key(d: &Range) -> (FlowId, u8, u32) {
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
        let model = Scripted::new(&[Drop { flow: 0, first: 5, last: Some(5), transmission: 0 }]);
        let data = packet(0, 5, 0);
        assert!(model.drops(&data));
        assert!(!model.drops(&packet(0, 5, 1)) && !model.drops(&packet(1, 5, 0)));
        assert!(!model.drops(&Packet { forward: false, ..data }));
        let empty = Segment { seg_no: 5, ..Segment::default() };
        assert!(!model.drops(&Packet { header: empty.into(), ..data }));
    }

    proptest! {
        /// Oracle: check every line of the script.
        #[test]
        fn equals_a_search_through_the_list(
            lines in prop::collection::vec((0u32..2, 1u32..20, 0u32..6, 0u8..3), 0..12)
        ) {
            let drops: Vec<Drop> = lines
                .iter()
                .map(|&(flow, first, n, transmission)| Drop { flow, first, last: Some(first + n), transmission })
                .collect();
            let model = Scripted::new(&drops);
            for (flow, rexmit, seg_no) in (0..3).flat_map(|f| (0..4).flat_map(move |r| (0..30).map(move |s| (f, r, s)))) {
                let expected = drops
                    .iter()
                    .any(|d| d.flow == flow && d.transmission == rexmit && (d.first..=d.last.unwrap_or(d.first)).contains(&seg_no));
                prop_assert_eq!(model.drops(&packet(flow, seg_no, rexmit)), expected);
            }
        }
    }
}
