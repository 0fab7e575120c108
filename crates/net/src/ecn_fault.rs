//! Changes that middleboxes make to the ECN field. RFC 3168 forbids them, but they occur on real paths. RFC 9743 §6.2
//! asks how they affect a controller that relies on marks. A packet bleached before the queue is dropped instead of
//! marked; bleaching after the queue removes marks.

use ackclock_core::packet::Ecn;
use ackclock_core::rng::threshold;
use ackclock_core::schema::Takes;
use ackclock_core::{choice, table, Stream};

table! {
    /// A middlebox that changes the ECN field of packets.
    pub struct EcnFault "ecn-fault" {
        /// Change: "bleach" sets every packet to Not-ECT, "strip-ce" turns CE into ECT(0), "mark-all" turns every ECT into CE.
        what: EcnChange = EcnChange::TAKES;
        /// Position of the middlebox: before the queue or after it.
        at: Place = Place::TAKES, Place::After;
        /// Probability that a packet is changed.
        probability: f64 = Takes::Share, 1.0;
    }
}

/// Change of the ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnChange {
    /// ECT(0), ECT(1) and CE become Not-ECT.
    Bleach,
    /// CE becomes ECT(0).
    StripCe,
    /// ECT(0) and ECT(1) become CE.
    MarkAll,
}

choice! { EcnChange: Bleach "bleach", StripCe "strip-ce", MarkAll "mark-all" }

/// Position of the middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the queue.
    Before,
    /// After the queue.
    After,
}

choice! { Place: Before "before", After "after" }

/// Middlebox state.
#[derive(Clone)]
pub(crate) struct Faulty {
    what: EcnChange,
    at: Place,
    threshold: u64,
    stream: Stream,
}

impl Faulty {
    pub(crate) fn new(config: Option<&EcnFault>, stream: Stream) -> Option<Faulty> {
        let &EcnFault { what, at, probability } = config?;
        Some(Faulty { what, at, threshold: threshold(probability), stream })
    }

    /// Return the ECN field of a packet after the middlebox.
    pub(crate) fn pass(&mut self, at: Place, ecn: Ecn) -> Ecn {
        if at != self.at || !self.stream.chance(self.threshold) {
            return ecn;
        }
        match (self.what, ecn) {
            (EcnChange::Bleach, _) => Ecn::NotEct,
            (EcnChange::StripCe, Ecn::Ce) => Ecn::Ect0,
            (EcnChange::MarkAll, Ecn::Ect0 | Ecn::Ect1) => Ecn::Ce,
            _ => ecn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::ThresholdParams;
    use crate::{LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::{Packet, Rate, Span, Time};

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

    fn box_of(what: EcnChange, probability: f64) -> Faulty {
        let config = EcnFault { what, at: Place::After, probability };
        Faulty::new(Some(&config), Stream::new(1, "test")).expect("given")
    }

    #[test]
    fn each_field_becomes_what_its_line_says() {
        let passed = |what| ALL.map(|ecn| box_of(what, 1.0).pass(Place::After, ecn));
        assert_eq!(passed(EcnChange::Bleach), [Ecn::NotEct; 4]);
        assert_eq!(passed(EcnChange::StripCe), [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ect0]);
        assert_eq!(passed(EcnChange::MarkAll), [Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ce]);
        assert_eq!(ALL.map(|ecn| box_of(EcnChange::Bleach, 1.0).pass(Place::Before, ecn)), ALL);
        let mut some = box_of(EcnChange::Bleach, 0.25);
        let bleached = (0..10_000).filter(|_| some.pass(Place::After, Ecn::Ect0) == Ecn::NotEct).count();
        assert!((2300..2700).contains(&bleached), "{bleached}");
    }

    /// Offer twenty ECT(0) packets at once to a queue of at most eight packets that marks arrivals once five wait.
    /// Returns how many packets are delivered and how many of them are marked.
    fn through_a_queue(what: EcnChange, at: Place, codel: bool) -> (usize, usize) {
        let queue = match codel {
            false => QueueConfig::Threshold(ThresholdParams { limit: Some(8), mark: 5 }),
            true => QueueConfig::Codel(crate::CodelParams {
                limit: None,
                target: Span(1),
                interval: Span(1),
                ecn: true,
                ce_threshold: None,
            }),
        };
        let config = LinkConfig {
            queue,
            ecn_fault: Some(EcnFault { what, at, probability: 1.0 }),
            ..LinkConfig::new("l", Rate(10_000_000), Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 1500, ecn: Ecn::Ect0, ..Packet::default() };
        let _accepted = (0..20).filter(|_| link.offer(Time::ZERO, packet).is_ok()).count();
        let (mut delivered, mut marked) = (0, 0);
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            while let Some(packet) = link.poll(at) {
                delivered += 1;
                marked += (packet.ecn == Ecn::Ce) as usize;
            }
        }
        (delivered, marked)
    }

    #[test]
    fn marks_are_made_of_what_comes_in_and_vanish_behind_the_queue() {
        assert_eq!(through_a_queue(EcnChange::MarkAll, Place::Before, false), (9, 9));
        assert_eq!(through_a_queue(EcnChange::Bleach, Place::Before, false), (9, 0));
        assert_eq!(through_a_queue(EcnChange::StripCe, Place::After, false), (9, 0));
        assert_eq!(through_a_queue(EcnChange::MarkAll, Place::After, false), (9, 9));
        // CoDel marks packets if it can; bleached ones are dropped
        let (all, marked) = through_a_queue(EcnChange::StripCe, Place::Before, true);
        assert_eq!(all, 20);
        assert!(marked > 0);
        assert_eq!(through_a_queue(EcnChange::StripCe, Place::After, true), (20, 0));
        let (fewer, none) = through_a_queue(EcnChange::Bleach, Place::Before, true);
        assert!(fewer < 20 && none == 0, "{fewer}");
    }
}
