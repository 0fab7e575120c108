//! netem's limit: as in Linux sch_netem, the limit counts every packet in the element, including those in the delay
//! line. An emulator that hands a "queue size" to netem therefore caps the throughput at limit x packet size / delay,
//! however fast the link is (as Mininet does with `max_queue_size`).
//!
//! The rate is that of HTB, above netem: HTB takes a packet from netem as soon as it has paid for the previous one. A
//! packet therefore reaches the next element, and no longer counts, when its transmission starts (decision 0036).
//! Everywhere else in this crate, this happens when its transmission ends.
//!
//! A multi-segment packet (TSO) counts once.

use ackclock_core::schema::{Limit, Refusal, Takes};
use ackclock_core::{table, Span, Stream};

use super::{Admission, Arrival, Discipline, Refused};
use crate::qdisc::{Netem, Qdisc};

table! {
    /// Linux netem with its `limit`, below a shaper (HTB), as in a Mininet link; on a link with a delay and no rate,
    /// netem alone.
    /// The limit also counts packets in netem's delay line. A packet of several segments (`tso`) counts once here; in
    /// other queues it counts as that many packets. A packet leaves the queue when its transmission starts.
    pub struct NetemLimitParams "netem-limit" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product.
        limit: u32 = Takes::PacketLimit;
    }
}

impl Discipline for NetemLimitParams {
    type Queue = NetemLimit;

    fn queue(self, _: impl FnOnce() -> Stream) -> NetemLimit {
        NetemLimit::new(&self)
    }

    fn limit(&self) -> Option<Limit> {
        Some(Limit::Packets(self.limit))
    }

    /// Return netem below a shaper, with the link's delay in netem.
    fn qdisc(&self, delay: Span) -> Result<Qdisc, Refusal> {
        Ok(Netem { limit: self.limit, delay_ns: delay.0, ..Netem::PLAIN }.qdisc())
    }
}

#[derive(Clone)]
pub(crate) struct NetemLimit {
    limit: usize,
}

impl NetemLimit {
    pub(crate) fn new(params: &NetemLimitParams) -> NetemLimit {
        NetemLimit { limit: params.limit as usize }
    }

    #[inline]
    pub(crate) fn admit(&self, arrival: &Arrival) -> Admission {
        let on_wire = arrival.on_wire as usize;
        // A packet that reaches the far end in this nanosecond has left, whether or not it has been taken.
        if on_wire < self.limit || on_wire - arrival.wire.due(arrival.pool, arrival.now) < self.limit {
            Admission::Accept
        } else {
            Admission::Refuse(Refused::QueueFull)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::queue::NetemLimitParams;
    use crate::{LinkConfig, QueueConfig, SoleLink};

    use ackclock_core::{Packet, Rate, Span, Time};

    #[test]
    fn caps_the_throughput_at_limit_over_delay() {
        // Network of the PCC study: 100 Mb/s, one-way delay 7.5 ms. For 1500-byte packets the cap is 1.6 Mb/s x
        // limit, up to the link's rate at about 63 packets.
        for (limit, expected_mbps) in [(5, 8.0), (20, 32.0), (50, 80.0), (70, 100.0)] {
            let config = LinkConfig {
                queue: QueueConfig::NetemLimit(NetemLimitParams { limit }),
                ..LinkConfig::new("l", Rate(100_000_000), Span::from_us(7_500))
            };
            let mut link = SoleLink::new(&config, 1);
            let packet = Packet { bytes: 1500, ..Packet::default() };
            let end = Span::from_secs(2).0;
            for t in (0..end).step_by(10_000) {
                while link.poll(Time(t)).is_some() {}
                let _ = link.offer(Time(t), packet);
            }
            let mbps = link.counters(Time(end)).bytes_delivered as f64 * 8.0 / 2e6;
            assert!((mbps / expected_mbps - 1.0).abs() < 0.02, "{limit}: {mbps}");
        }
    }

    #[test]
    fn without_a_rate_the_limit_is_all_that_holds_back() {
        let queue = QueueConfig::NetemLimit(NetemLimitParams { limit: 5 });
        let config = LinkConfig { queue, ..LinkConfig::new("l", Rate::INFINITE, Span::from_ms(10)) };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 1500, ..Packet::default() };
        let taken = (0..8).filter(|&t| link.offer(Time(t), packet).is_ok()).count();
        assert_eq!(taken, 5);
        assert!(link.poll(Time(9_999_999)).is_none() && link.poll(Time(10_000_000)).is_some());
        assert!(link.offer(Time(10_000_000), packet).is_ok());
    }

    #[test]
    fn a_packet_of_several_segments_counts_once() {
        let queue = QueueConfig::NetemLimit(NetemLimitParams { limit: 5 });
        let config = LinkConfig { queue, ..LinkConfig::new("l", Rate(100_000_000), Span::from_ms(10)) };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 5_858, more: 3, ..Packet::default() };
        let taken = (0..8).filter(|&t| link.offer(Time(t), packet).is_ok()).count();
        assert_eq!(taken, 5);
        assert!(link.poll(Time(9_999_999)).is_none());
        assert!(link.poll(Time(10_000_000)).is_some());
        assert!(link.offer(Time(10_000_000), packet).is_ok());
        let counters = link.counters(Time(10_000_000));
        assert_eq!(
            (counters.arrivals, counters.delivered, counters.dropped_queue, counters.held),
            (36, 4, 12, 20)
        );
    }

    #[test]
    fn a_packet_leaves_when_its_transmission_starts() {
        let queue = QueueConfig::NetemLimit(NetemLimitParams { limit: 5 });
        let config = LinkConfig { queue, ..LinkConfig::new("l", Rate(100_000_000), Span::from_ms(10)) };
        let mut link = SoleLink::new(&config, 1);
        // 5858 bytes take 468.64 us and 1514 bytes 121.12 us; the third packet finds the link idle again.
        for (at, bytes) in [(0, 5_858), (0, 1_514), (1_000_000, 1_514)] {
            link.offer(Time(at), Packet { bytes, ..Packet::default() }).expect("has room");
        }
        let deliveries: Vec<u64> = std::iter::from_fn(|| {
            let at = link.next_event();
            link.poll(at).map(|_| at.0)
        })
        .collect();
        assert_eq!(deliveries, [10_000_000, 10_468_640, 11_000_000]);
        assert_eq!(link.counters(Time(12_000_000)).busy.0, 468_640 + 2 * 121_120);
    }

    #[test]
    fn without_delay_it_is_drop_tail_whose_packets_come_earlier() {
        let config = |queue| LinkConfig { queue, ..LinkConfig::new("l", Rate(10_000_000), Span::ZERO) };
        let mut a = SoleLink::new(&config(QueueConfig::packets(50)), 1);
        let mut b = SoleLink::new(&config(QueueConfig::NetemLimit(NetemLimitParams { limit: 50 })), 1);
        let transmission = 1_211_200; // ns, for 1514 bytes
        let (mut ends, mut starts) = (Vec::new(), Vec::new());
        let poll = |link: &mut SoleLink, now: u64, out: &mut Vec<u64>| {
            while link.next_event() <= Time(now) {
                let at = link.next_event();
                out.extend(link.poll(at).map(|_| at.0));
            }
        };
        for i in 0..20_000u64 {
            let now = i * i % 7 * 60_560 + i * 605_600; // sometimes a multiple of half a transmission time
            let packet = Packet { bytes: 1514, ..Packet::default() };
            poll(&mut a, now, &mut ends);
            poll(&mut b, now, &mut starts);
            assert_eq!(a.offer(Time(now), packet), b.offer(Time(now), packet), "{i}");
        }
        poll(&mut a, u64::MAX - 1, &mut ends);
        poll(&mut b, u64::MAX - 1, &mut starts);
        assert_eq!(ends, starts.iter().map(|start| start + transmission).collect::<Vec<_>>());
        assert!(a.counters(Time(u64::MAX - 1)).dropped_queue > 100);
    }
}
