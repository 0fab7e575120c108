//! Tests of unreported datagrams: only those that are old enough are considered lost.

use ackclock_core::datagram::{Data, DataKind, Datagram, DatagramEndpoint};
use ackclock_core::{Span, Stream, Time};
use ackclock_pcc::control::{Algorithm, Allegro, AllegroParams, Start};
use ackclock_pcc::utility::Kind;
use ackclock_pcc::{Config, Controller, Receiver, Sender};

const RTT: Span = Span::from_ms(30);

/// A sender that sends about 10 packets per RTT, its receiver, and a path that drops datagrams by number.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    forward: Vec<(Time, Datagram)>,
    back: Vec<(Time, Datagram)>,
    now: Time,
    rtt: Span,
}

impl Pair {
    fn new(rate: f64) -> Pair {
        let params = AllegroParams { start: Start::Rate(rate), max_rate: rate, ..AllegroParams::PAPER };
        let allegro = Allegro::new(params, Stream::new(1, "test"));
        let controller = Controller::new(Algorithm::Allegro(Box::new(allegro)), Kind::SAFE);
        let config = Config::default();
        let mut sender = Sender::new(config, controller);
        sender.set_trace(true);
        sender.write_forever();
        sender.connect(Time::ZERO);
        let receiver = Receiver::new(&config);
        Pair { sender, receiver, forward: Vec::new(), back: Vec::new(), now: Time::ZERO, rtt: RTT }
    }

    /// Run until `end` in 10 us steps, delivering datagrams with numbers that satisfy `passes`. Return the numbers
    /// of the data sent.
    fn run(&mut self, end: Time, passes: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut sent = Vec::new();
        while self.now < end {
            self.now += Span(10_000);
            let now = self.now;
            let due = |queue: &mut Vec<(Time, Datagram)>| {
                let n = queue.iter().take_while(|(at, _)| *at <= now).count();
                queue.drain(..n).map(|(_, datagram)| datagram).collect::<Vec<_>>()
            };
            for datagram in due(&mut self.forward) {
                self.receiver.on_packet(now, &datagram);
            }
            for datagram in due(&mut self.back) {
                self.sender.on_packet(now, &datagram);
            }
            if self.sender.next_deadline() <= now {
                self.sender.on_timer(now);
            }
            while let Some(datagram) = self.sender.poll_transmit(now) {
                if let Datagram::Data(Data { number, kind, .. }) = datagram {
                    sent.extend((kind != DataKind::Hello).then_some(number));
                    if passes(number) {
                        self.forward.push((now + self.rtt / 2, datagram));
                    }
                }
            }
            while let Some(report) = self.receiver.poll_transmit(now) {
                self.back.push((now + self.rtt / 2, report));
            }
        }
        sent
    }
}

#[test]
fn datagrams_younger_than_the_patience_are_not_taken_as_lost() {
    // 0.4 Mbit/s: one datagram per 30 ms; a few successive ones are dropped, as by a full queue
    for dropped in 3..12 {
        let mut pair = Pair::new(0.4e6);
        pair.run(Time(2_000_000_000), |_| true);
        assert_eq!(pair.sender.stats().lost, 0);
        let first = pair.run(Time(2_100_000_000), |_| true).pop().expect("something was sent") + 1;
        pair.run(Time(4_000_000_000), |n| !(first..first + dropped).contains(&n));
        let stats = pair.sender.stats();
        assert_eq!(stats.lost, dropped, "those that were dropped, and no other");
        assert!(stats.timeouts > 0);
        let rows = pair.sender.take_rows();
        assert_eq!(rows.iter().map(|row| row.measured.lost as u64).sum::<u64>(), dropped);
    }
}

#[test]
fn a_path_that_goes_dark_takes_all_that_was_sent_and_it_comes_again() {
    let mut pair = Pair::new(4e6);
    pair.run(Time(1_000_000_000), |_| true);
    let last = pair.run(Time(1_100_000_000), |_| true).pop().expect("something was sent");
    let dark = pair.run(Time(1_600_000_000), |n| n <= last);
    pair.run(Time(3_000_000_000), |_| true);
    let stats = pair.sender.stats();
    assert_eq!(stats.lost, dark.len() as u64);
    assert_eq!(stats.retransmissions, stats.lost);
    let (arrivals, duplicates) = pair.receiver.arrivals();
    assert_eq!((arrivals, duplicates), (stats.sent - stats.lost - pair.forward.len() as u64, 0));
}

/// Without RTT samples from late reports the timeout would never grow, and all datagrams would be considered lost.
#[test]
fn a_path_whose_rtt_rises_tenfold_is_learnt_within_a_second() {
    let mut pair = Pair::new(4e6);
    pair.run(Time(1_000_000_000), |_| true);
    pair.rtt = RTT * 10;
    let mut most = Span::ZERO;
    for ms in 1000..2000 {
        pair.run(Time(ms * 1_000_000), |_| true);
        most = most.max(pair.sender.srtt());
    }
    // intervals last several RTTs: an SRTT that is far too long would delay rate changes by as much
    assert!(most <= pair.rtt + Span::from_ms(1), "{most:?}");
    let (lost, acked) = (pair.sender.stats().lost, pair.sender.acked());
    assert!(lost > 0, "they were given up too early");
    pair.run(Time(6_000_000_000), |_| true);
    let stats = pair.sender.stats();
    assert_eq!(stats.lost, lost, "none since");
    // 4 s at 4 Mbit/s of 1500-byte packets with 1456 bytes of data
    assert!(pair.sender.acked() - acked > 1_800_000, "{}", pair.sender.acked() - acked);
    assert!(pair.sender.srtt() > RTT * 9);
}
