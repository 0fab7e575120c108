//! Marking at a threshold: an ECN-capable packet that arrives while at least K packets wait is marked. For other
//! packets only the limit matters. This models a DCTCP switch (Alizadeh et al., "Data center TCP", SIGCOMM 2010,
//! §3.1; RFC 8257 §3.1: RED with both thresholds at K and the instantaneous queue).

use ackclock_core::schema::{Limit, Refusal, Takes};
use ackclock_core::{table, Span, Stream};

use super::{ecn_capable, Admission, Arrival, Discipline, Refused};
use crate::qdisc::{refused, Qdisc};

table! {
    /// Marks every packet that arrives while at least `mark` packets wait, as a DCTCP switch does.
    /// Packets that are not ECN-capable are not affected.
    pub struct ThresholdParams "threshold" {
        /// Minimum length of the queue at which arriving packets are marked: packets or multiples of the
        /// bandwidth-delay product.
        mark: u32 = Takes::PacketLimit;
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited.
        limit: Option<u32> = Takes::PacketLimit;
    }
    rules |queue, rules| {
        if queue.limit.is_some_and(|limit| queue.mark > limit) {
            let limit = rules.shown("limit");
            rules.refuse("mark", format_args!("at most the limit of {limit}"));
        }
    }
}

impl Discipline for ThresholdParams {
    type Queue = Threshold;

    fn queue(self, _: impl FnOnce() -> Stream) -> Threshold {
        Threshold::new(&self)
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Packets)
    }

    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        Err(refused("kind", "\"threshold\""))
    }
}

#[derive(Clone)]
pub(crate) struct Threshold {
    limit: u32,
    mark: u32,
}

impl Threshold {
    pub(crate) fn new(params: &ThresholdParams) -> Threshold {
        Threshold { limit: params.limit.unwrap_or(u32::MAX), mark: params.mark }
    }

    #[inline]
    pub(crate) fn admit(&self, arrival: &Arrival) -> Admission {
        let waiting = arrival.backlog.len();
        if waiting + arrival.packet.segments() > self.limit && !arrival.finds_link_idle() {
            return Admission::Refuse(Refused::QueueFull);
        }
        match waiting >= self.mark && ecn_capable(arrival.packet) {
            true => Admission::Mark,
            false => Admission::Accept,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::queue::ThresholdParams;
    use crate::{LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::packet::Ecn;
    use ackclock_core::{Packet, Rate, Span, Time};

    fn marked(ecn: Ecn) -> (Vec<bool>, usize) {
        let config = LinkConfig {
            queue: QueueConfig::Threshold(ThresholdParams { limit: Some(8), mark: 5 }),
            ..LinkConfig::new("l", Rate(10_000_000), Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 1500, ecn, ..Packet::default() };
        let passed = (0..20).filter(|_| link.offer(Time::ZERO, packet).is_ok()).count();
        let mut marks = Vec::new();
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            while let Some(packet) = link.poll(at) {
                marks.push(packet.ecn == Ecn::Ce);
            }
        }
        (marks, passed)
    }

    #[test]
    fn of_a_burst_those_that_find_five_waiting_are_marked() {
        // one packet is in transmission, five wait unmarked, the last three are marked, the rest dropped
        let (marks, passed) = marked(Ecn::Ect0);
        assert_eq!(passed, 9);
        assert_eq!(marks, [false, false, false, false, false, false, true, true, true]);
    }

    #[test]
    fn what_cannot_be_marked_meets_the_limit_only() {
        let (marks, passed) = marked(Ecn::NotEct);
        assert_eq!((marks, passed), (vec![false; 9], 9));
    }
}
