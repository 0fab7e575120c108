//! Duplicated and damaged packets, as with netem's `duplicate` and `corrupt`.
//!
//! Source: Linux 7.0 netem_enqueue(). A packet selected for both duplication and loss is delivered once. The copy
//! crosses the link separately, with its own loss, damage and queueing, and is not duplicated again. Differs: the
//! copy follows its packet instead of preceding it, so if the queue has room for only one of them, the original gets
//! it. Netem flips a bit, and the receiver drops the packet when it verifies the checksum. Here the link drops it at
//! its far end, so that later links do not carry it.

use ackclock_core::rng::threshold;
use ackclock_core::{Packet, Stream, Time};

/// Random choice with a fixed probability, drawn per packet.
#[derive(Clone)]
pub(crate) struct Chance {
    threshold: u64,
    stream: Stream,
}

impl Chance {
    /// Return a chance with this probability; `None` if it is zero.
    pub(crate) fn new(probability: f64, stream: Stream) -> Option<Chance> {
        (probability > 0.0).then(|| Chance { threshold: threshold(probability), stream })
    }

    pub(crate) fn draw(&mut self) -> bool {
        self.stream.chance(self.threshold)
    }
}

/// Choice of the packets that are duplicated.
#[derive(Clone)]
pub(crate) struct Doubler {
    chance: Chance,
    /// Whether the next packet is a copy.
    copying: bool,
    /// A copy that has not been offered yet, and the time at which the original was offered.
    owed: Option<(Time, Packet)>,
}

impl Doubler {
    pub(crate) fn new(probability: f64, stream: Stream) -> Option<Doubler> {
        Some(Doubler { chance: Chance::new(probability, stream)?, copying: false, owed: None })
    }

    /// Decide at random whether this packet is duplicated.
    pub(crate) fn doubles(&mut self) -> bool {
        !std::mem::take(&mut self.copying) && self.chance.draw()
    }

    pub(crate) fn owe(&mut self, now: Time, packet: Packet) {
        self.owed = Some((now, packet));
    }

    pub(crate) fn owes(&self) -> bool {
        self.owed.is_some()
    }

    /// Take the copy, which is the next packet to be offered.
    pub(crate) fn take(&mut self) -> Option<(Time, Packet)> {
        let owed = self.owed.take();
        self.copying = owed.is_some();
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, LossConfig, QueueConfig, Refused, SoleLink};
    use ackclock_core::{Rate, Span};

    fn packet(conn: u32) -> Packet {
        Packet { conn, bytes: 1000, ..Packet::default() }
    }

    fn delivered(link: &mut SoleLink) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            out.extend(std::iter::from_fn(|| link.poll(at)).map(|packet| (at.0, packet.conn)));
        }
        out
    }

    fn of(config: LinkConfig) -> SoleLink {
        SoleLink::new(&config, 1)
    }

    #[test]
    fn a_copy_comes_behind_its_packet_and_is_not_doubled_again() {
        let rate = Rate(8_000_000); // 1 ms per packet
        let mut link = of(LinkConfig { duplicate: 1.0, ..LinkConfig::new("l", rate, Span(5)) });
        for conn in [1, 2] {
            assert!(link.offer(Time::ZERO, packet(conn)).is_ok());
        }
        let times = [1, 2, 3, 4].map(|ms| ms * 1_000_000 + 5);
        let expected: Vec<_> = times.into_iter().zip([1, 1, 2, 2]).collect();
        assert_eq!(delivered(&mut link), expected);
        let counters = link.counters(Time(1 << 30));
        assert_eq!((counters.arrivals, counters.delivered, counters.bytes_delivered), (4, 4, 4000));
    }

    #[test]
    fn shares_are_those_asked_for() {
        let config = LinkConfig::new("l", Rate::INFINITE, Span(5));
        let mut link = of(LinkConfig { duplicate: 0.2, corrupt: 0.1, ..config });
        let refused = (0..10_000).filter(|n| link.offer(Time(*n), packet(1)) == Err(Refused::Loss)).count();
        let counters = link.counters(Time(1 << 30));
        assert!((11_800..12_200).contains(&counters.arrivals), "{}", counters.arrivals);
        let arrived = delivered(&mut link).len() as u64;
        let counters = link.counters(Time(1 << 30));
        assert!((1_080..1_320).contains(&counters.dropped_loss), "{}", counters.dropped_loss);
        let told = std::iter::from_fn(|| link.take_head_drops()).count();
        assert_eq!((refused, told as u64), (0, counters.dropped_loss), "who offers is not told of damage");
        assert_eq!((counters.delivered, counters.held), (arrived, 0));
        assert_eq!(arrived, counters.arrivals - counters.dropped_loss);
    }

    #[test]
    fn what_is_lost_and_doubled_passes_once() {
        use crate::loss::{AppliesTo, BernoulliParams};
        let loss = LossConfig::Bernoulli(BernoulliParams { p: 1.0, applies_to: AppliesTo::All });
        let mut link =
            of(LinkConfig { duplicate: 1.0, loss, ..LinkConfig::new("l", Rate::INFINITE, Span(5)) });
        assert!(link.offer(Time(7), packet(1)).is_ok());
        assert_eq!(delivered(&mut link), [(12, 1)]);
        assert_eq!(link.counters(Time(1 << 30)).arrivals, 1);
    }

    #[test]
    fn what_is_damaged_takes_its_time_and_does_not_arrive() {
        for queue in [
            QueueConfig::UNLIMITED,
            QueueConfig::Codel(crate::CodelParams {
                limit: None,
                target: Span(1 << 40),
                interval: Span(1 << 41),
                ecn: false,
                ce_threshold: None,
            }),
        ] {
            let mut link =
                of(LinkConfig { corrupt: 1.0, queue, ..LinkConfig::new("l", Rate(8_000_000), Span(5)) });
            let refused = (0..3).filter(|n| link.offer(Time::ZERO, packet(*n)).is_err()).count();
            assert_eq!(delivered(&mut link), []);
            let told = std::iter::from_fn(|| link.take_head_drops())
                .inspect(|(_, why)| assert_eq!(*why, Refused::Loss));
            assert_eq!((refused, told.count()), (0, 3));
            let counters = link.counters(Time(1 << 30));
            assert_eq!((counters.arrivals, counters.dropped_loss, counters.delivered), (3, 3, 0));
            assert_eq!((counters.busy, counters.bytes_delivered, counters.held), (Span(3_000_000), 0, 0));
            assert_eq!(counters.max_wait, Span(2_000_000));
        }
    }
}
