//! Tests of a client at the receiving end of a path with a 30 ms RTT and no rate limit. The client sends requests,
//! the sender responds, and between responses there is nothing to send.

use std::collections::BTreeMap;

use ackclock_core::datagram::{Data, DataKind, Datagram, DatagramEndpoint};
use ackclock_core::options::Options;
use ackclock_core::{Span, Stream, Time};
use ackclock_pcc::control::build;
use ackclock_pcc::{Receiver, Sender};

const ONE_WAY: Span = Span::from_ms(15);
const REQUEST: u32 = 200;

/// Both ends and the path between them.
struct Path {
    sender: Sender,
    receiver: Receiver,
    /// Datagrams in flight, by arrival time and number; true if bound for the receiver.
    flying: BTreeMap<(Time, u64), (bool, Datagram)>,
    number: u64,
    now: Time,
    /// 0-based numbers of the request transmissions dropped by the path.
    lost: Vec<u64>,
    /// Data datagrams with their transmission times.
    sent: Vec<(Time, Data)>,
    requests: Vec<Time>,
}

impl Path {
    fn new(controller: &str, lost: &[u64]) -> Path {
        let recipe = build(controller, &Options::new()).expect("known");
        let mut sender = Sender::new(recipe.config, recipe.controller(Stream::new(1, "test")));
        sender.set_trace(true);
        sender.connect(Time::ZERO);
        let receiver = Receiver::new(&recipe.config);
        let (flying, lost) = (BTreeMap::new(), lost.to_vec());
        let (sent, requests) = (Vec::new(), Vec::new());
        let mut path = Path { sender, receiver, flying, number: 0, now: Time::ZERO, lost, sent, requests };
        path.run(Time(100_000_000));
        assert!(path.sender.is_established() && path.receiver.is_established());
        path
    }

    fn flush(&mut self) {
        let mut out = Vec::new();
        while let Some(datagram) = self.sender.poll_transmit(self.now) {
            if let Datagram::Data(data) = datagram {
                self.sent.extend((data.kind != DataKind::Hello).then_some((self.now, data)));
            }
            out.push((true, datagram));
        }
        while let Some(datagram) = self.receiver.poll_transmit(self.now) {
            if let Datagram::Data(data) = datagram {
                self.requests.push(self.now);
                if self.lost.contains(&data.number) {
                    continue;
                }
            }
            out.push((false, datagram));
        }
        for arrival in out {
            self.flying.insert((self.now + ONE_WAY, self.number), arrival);
            self.number += 1;
        }
    }

    fn run(&mut self, until: Time) {
        self.flush();
        loop {
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = arrival.min(self.sender.next_deadline()).min(self.receiver.next_deadline());
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if arrival == next {
                let (_, (forward, datagram)) = self.flying.pop_first().expect("invariant: peeked");
                match forward {
                    true => self.receiver.on_packet(self.now, &datagram),
                    false => self.sender.on_packet(self.now, &datagram),
                }
            } else {
                self.sender.on_timer(self.now);
                self.receiver.on_timer(self.now);
            }
            self.flush();
        }
        self.now = until;
    }

    /// Send `times` requests, one per second. The server responds to each request with `bytes` as soon as it arrives.
    fn fetch(&mut self, times: u64, bytes: u64) {
        for k in 1..=times {
            self.receiver.ask(REQUEST);
            let start = self.now;
            let mut answered = false;
            for ms in (5..=1000).step_by(5) {
                self.run(start + Span::from_ms(ms));
                if !answered && self.sender.asked() >= k * REQUEST as u64 {
                    answered = true;
                    self.sender.write(self.now, bytes);
                }
            }
        }
    }
}

#[test]
fn every_request_is_answered_though_requests_are_lost() {
    let mut path = Path::new("pcc-allegro", &[]);
    path.fetch(3, 30_000);
    assert_eq!((path.receiver.received(), path.sender.asked(), path.requests.len()), (90_000, 600, 3));

    // two transmissions of the request are lost: it is repeated after 1 s, and again 2 s later
    let mut path = Path::new("pcc-allegro", &[0, 1]);
    path.receiver.ask(REQUEST);
    path.run(Time(10_000_000_000));
    assert_eq!(path.sender.asked(), REQUEST as u64);
    let after: Vec<u64> = path.requests.iter().map(|t| t.since(path.requests[0]).0 / 1_000_000).collect();
    // the third one arrives, but no data is written, so the client requests once more
    assert_eq!(after, [0, 1000, 3000, 7000]);
    path.sender.write(path.now, 1000);
    path.run(Time(200_000_000_000));
    assert_eq!((path.receiver.received(), path.requests.len(), path.receiver.has_failed()), (1000, 4, false));
}

#[test]
fn what_an_application_sends_now_and_then_is_paced_and_teaches_nothing_wrong() {
    for controller in ["pcc-allegro", "pcc-allegro-herc", "pcc-vivace"] {
        let mut path = Path::new(controller, &[]);
        path.fetch(30, 4 * 1456); // four packets never fill an interval
        assert_eq!(path.receiver.received(), 30 * 4 * 1456, "{controller}");
        let rows = path.sender.take_rows();
        assert!(rows.len() >= 25, "{controller}: {}", rows.len());
        let first = rows[0].measured.rate;
        for row in &rows {
            let measured = &row.measured;
            assert!(measured.limited && row.state == "starting" && measured.rate == first, "{measured:?}");
            // an interval ends with its data, so the measured rate is the set rate regardless of the following
            // silence
            assert!((measured.rate_mbps() * 1e6 / measured.rate - 1.0).abs() < 1e-6, "{measured:?}");
        }
        // no burst follows the silence
        let spacing = 1500.0 * 8.0 / first;
        for pair in path.sent.windows(2) {
            assert!(pair[1].0.since(pair[0].0).as_secs() > 0.999 * spacing, "{controller}: {pair:?}");
        }
    }
}

#[test]
fn a_sender_with_enough_to_send_still_finds_its_rate() {
    let mut path = Path::new("pcc-allegro", &[]);
    path.fetch(8, 400_000);
    // the rate doubles while responses last; the path has no rate limit
    assert!(path.sender.rate() > 16.0 * 0.8e6, "{}", path.sender.rate());
    assert_eq!(path.receiver.received(), 8 * 400_000);
}
