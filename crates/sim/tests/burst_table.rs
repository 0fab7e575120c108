//! Batches of five connections, each sending a 10-packet burst, into a 40-packet queue at 64 kb/s and 300 ms. How many
//! packets are dropped if nothing is retransmitted, each packet is acknowledged, and each ACK opens the window by
//! one? The golden numbers come from a small model of exactly this scenario; here, the real TCP and the real link
//! must reproduce them. The connections are established beforehand, so that only data enters the queue.

use std::collections::VecDeque;

use ackclock_cc::controller::Recipe;
use ackclock_core::{Header, Packet, Rate, Segment, Span, Time};
use ackclock_net::{LinkConfig, QueueConfig, SoleLink};
use ackclock_tcp::{Config, Connection, DelayedAck, Detection};

const ONE_WAY: Span = Span::from_ms(150);
const SECOND: u64 = 1_000_000_000;

struct Bench {
    link: SoleLink,
    /// Server and client of each connection.
    ends: Vec<[Connection; 2]>,
    acks: VecDeque<(Time, usize, Segment)>,
    drops: u32,
}

impl Bench {
    fn new(connections: usize, config: &Config) -> Bench {
        let queue = QueueConfig::packets(40);
        let config_of_link = LinkConfig { queue, ..LinkConfig::new("l", Rate(64_000), ONE_WAY) };
        let ends = (0..connections).map(|i| {
            let mut ends = [Connection::responder(i as u32, config), Connection::initiator(i as u32, config)];
            ends[1].connect(Time::ZERO);
            for turn in [1, 0, 1] {
                while let Some(seg) = ends[turn].poll_transmit(Time::ZERO) {
                    ends[1 - turn].on_packet(Time::ZERO, &seg, Default::default());
                }
            }
            assert!(ends.iter().all(Connection::is_established));
            ends
        });
        Bench {
            link: SoleLink::new(&config_of_link, 1),
            ends: ends.collect(),
            acks: VecDeque::new(),
            drops: 0,
        }
    }

    /// Send everything that server `i` may send.
    fn send(&mut self, now: Time, i: usize) {
        while let Some(seg) = self.ends[i][0].poll_transmit(now) {
            assert_eq!(seg.rexmit, 0, "nothing is sent again");
            let (conn, bytes) = (i as u32, seg.ip_bytes());
            let packet = Packet { header: Header::Tcp(seg), conn, bytes, forward: true, ..Packet::default() };
            self.drops += self.link.offer(now, packet).is_err() as u32;
        }
    }

    /// Run with ten-segment responses, five at each of these times.
    fn run(&mut self, bursts: &[Time]) {
        let mut next_burst = 0;
        loop {
            let burst = bursts.get(next_burst).copied().unwrap_or(Time::NEVER);
            let ack = self.acks.front().map_or(Time::NEVER, |ack| ack.0);
            let now = burst.min(ack).min(self.link.next_event());
            if now == Time::NEVER {
                return;
            }
            if now == burst {
                for i in 5 * next_burst..5 * next_burst + 5 {
                    self.ends[i][0].write(now, 14_480);
                    self.send(now, i);
                }
                next_burst += 1;
            } else if now == ack {
                let (_, i, seg) = self.acks.pop_front().expect("looked at");
                self.ends[i][0].on_packet(now, &seg, Default::default());
                self.send(now, i);
            } else if let Some(packet) = self.link.poll(now) {
                let (i, Header::Tcp(seg)) = (packet.conn as usize, packet.header) else {
                    unreachable!("only TCP")
                };
                self.ends[i][1].on_packet(now, &seg, Default::default());
                while let Some(ack) = self.ends[i][1].poll_transmit(now) {
                    self.acks.push_back((now + ONE_WAY, i, ack));
                }
            }
        }
    }
}

/// Number of drops, and maximum queue length.
fn burst(iw: u32, batches: usize, spacing_s: u64) -> (u32, u32) {
    let mut config = Config::profile("linux-6").expect("a profile").with(|set| {
        set.sending.iw = iw;
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
        set.receiving.delayed_ack = DelayedAck::Off;
        set.receiving.sack_compression = false;
        set.loss.detection = Detection::Dupthresh;
        set.loss.tlp = false;
        set.timers.hz = 0;
        set.timers.min_rto = Span::from_secs(1000);
        set.timers.max_rto = Span::from_secs(1000);
    });
    config.loss.dup_thresh = 300; // no gap counts as a loss, and SACKed data opens the window
    let mut bench = Bench::new(5 * batches, &config);
    let bursts: Vec<Time> = (0..batches as u64).map(|k| Time((1 + k * spacing_s) * SECOND)).collect();
    bench.run(&bursts);
    let counters = bench.link.counters(Time(1000 * SECOND));
    assert_eq!(counters.dropped_queue, bench.drops as u64);
    (bench.drops, counters.max_packets)
}

#[test]
fn one_batch() {
    assert_eq!(burst(10, 1, 0), (9, 40));
    assert_eq!([burst(3, 1, 0), burst(4, 1, 0), burst(6, 1, 0)], [(0, 28), (0, 29), (0, 30)]);
}

#[test]
fn two_and_three_batches_with_initial_window_3() {
    assert_eq!([0, 1, 2, 3, 4, 5].map(|s| burst(3, 2, s).0), [18, 13, 3, 3, 0, 0]);
    assert_eq!([0, 1, 2, 4, 6, 7].map(|s| burst(3, 3, s).0), [44, 28, 18, 18, 5, 0]);
}
