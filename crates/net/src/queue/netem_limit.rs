//! netem's limit: as in Linux sch_netem, the limit counts every packet that the element holds, those in transmission
//! and in the delay line included. An emulator that hands a "queue size" to netem therefore caps the throughput at
//! limit x packet size / delay, however fast the link is (the artefact in question for Mininet's `max_queue_size`).
//!
//! What a host hands over as one packet (TSO) counts once, and is taken or refused as a whole. Differs: netem holds it until
//! all of it has left, here it counts until its first segment has.

use super::{Arrival, Refused, Verdict};

pub(crate) struct NetemLimit {
    limit_packets: usize,
    /// By flow and direction: whether the last head was taken.
    taken: Vec<bool>,
}

impl NetemLimit {
    pub(crate) fn new(limit_packets: u32) -> NetemLimit {
        NetemLimit { limit_packets: limit_packets as usize, taken: Vec::new() }
    }

    #[inline]
    pub(crate) fn admit(&mut self, arrival: &Arrival) -> Verdict {
        let (wire, packet) = (arrival.wire, arrival.packet);
        let way = 2 * packet.flow as usize + packet.forward as usize;
        if way >= self.taken.len() {
            self.taken.resize(way + 1, true);
        }
        if !packet.joined {
            // A packet at the far end in this very nanosecond has left, whether or not it has been taken.
            self.taken[way] = wire.heads() < self.limit_packets
                || wire.heads() - wire.heads_due(arrival.now) < self.limit_packets;
        }
        if self.taken[way] {
            Verdict::Accept
        } else {
            Verdict::Refuse(Refused::QueueFull)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Link, LinkConfig, QueueConfig};
    use ackclock_core::{Packet, Rate, Span, Time};

    #[test]
    fn caps_the_throughput_at_limit_over_delay() {
        // PCC study's network: 100 Mb/s, 7.5 ms one way. Cap = 1.6 Mb/s x limit for packets of 1500 bytes,
        // the link's rate from about 63 packets on.
        for (limit_packets, expected_mbps) in [(5, 8.0), (20, 32.0), (50, 80.0), (70, 100.0)] {
            let config = LinkConfig {
                queue: QueueConfig::NetemLimit { limit_packets },
                ..LinkConfig::new("l", Rate(100_000_000), Span::from_us(7_500))
            };
            let mut link = Link::new(&config, 1);
            let packet = Packet { bytes: 1500, ..Packet::default() };
            let end = Span::from_secs(2).0;
            for t in (0..end).step_by(10_000) {
                while link.poll(Time(t)).is_some() {}
                let _ = link.offer(Time(t), packet);
            }
            let mbps = link.counters(Time(end)).bytes_delivered as f64 * 8.0 / 2e6;
            assert!((mbps / expected_mbps - 1.0).abs() < 0.02, "{limit_packets}: {mbps}");
        }
    }

    #[test]
    fn a_packet_that_the_device_cuts_up_counts_once_and_is_refused_as_a_whole() {
        let queue = QueueConfig::NetemLimit { limit_packets: 5 };
        let config = LinkConfig { queue, ..LinkConfig::new("l", Rate(100_000_000), Span::from_ms(10)) };
        let mut link = Link::new(&config, 1);
        let mut taken = 0;
        for i in 0..32u32 {
            let packet = Packet { bytes: 1500, joined: i % 4 > 0, ..Packet::default() };
            let accepted = link.offer(Time(i as u64), packet).is_ok();
            assert_eq!(accepted, i < 20, "{i}");
            taken += accepted as u32;
        }
        assert_eq!(taken, 20);
        // the first head has arrived: there is room for one more, another flow's tail is none of its business
        while link.poll(Time(10_130_000)).is_some() {}
        assert!(link.offer(Time(10_130_000), Packet { flow: 1, bytes: 1500, ..Packet::default() }).is_ok());
        assert!(link
            .offer(Time(10_130_001), Packet { joined: true, bytes: 1500, ..Packet::default() })
            .is_err());
        assert!(link.offer(Time(10_130_002), Packet { flow: 1, bytes: 1500, ..Packet::default() }).is_err());
    }

    #[test]
    fn without_delay_it_is_drop_tail_with_one_place_less() {
        let config = |queue| LinkConfig { queue, ..LinkConfig::new("l", Rate(10_000_000), Span::ZERO) };
        let drop_tail = QueueConfig::DropTail { limit_packets: Some(50), limit_bytes: None };
        let mut a = Link::new(&config(drop_tail), 1);
        let mut b = Link::new(&config(QueueConfig::NetemLimit { limit_packets: 51 }), 1);
        for i in 0..20_000u64 {
            let now = Time(i * i % 7 * 60_560 + i * 605_600); // a multiple of half a transmission time, now and then
            let packet = Packet { bytes: 1514, ..Packet::default() };
            while a.poll(now).is_some() {}
            while b.poll(now).is_some() {}
            assert_eq!(a.offer(now, packet), b.offer(now, packet), "{i}");
        }
        let (a, b) = (a.counters(Time(u64::MAX - 1)), b.counters(Time(u64::MAX - 1)));
        assert_eq!(a, b);
        assert!(a.dropped_queue > 100);
    }
}
