//! Tests of a sender after a pause, and of the events that its controller receives.

use std::sync::{Arc, Mutex};

use ackclock_cc::controller::{AckSample, CongestionControl, Maker, Needs, Recipe};
use ackclock_cc::Window;
use ackclock_core::packet::Ecn;
use ackclock_core::{Segment, Span, Time};
use ackclock_tcp::Config;

use crate::common::server::{Server, RTT};

/// Return a Linux profile with Reno's arithmetic, which is easy to follow.
fn linux() -> Config {
    Config::profile("linux-6")
        .expect("a profile")
        .with(|set| set.sending.controller = Recipe::by_name("reno").expect("a controller"))
}

/// snd_nxt at each start of transmission with nothing in flight.
#[derive(Default)]
struct Starts(Arc<Mutex<Vec<u64>>>);

impl CongestionControl for Starts {
    fn on_ack(&mut self, _: &mut Window, _: &AckSample) {}

    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        window.cwnd / 2
    }

    fn on_tx_start(&mut self, _: &mut Window, _: Time, _: Span, snd_nxt: u64) {
        self.0.lock().expect("no panic").push(snd_nxt);
    }
}

#[test]
fn what_leaves_with_nothing_in_flight_starts_anew_also_when_it_is_sent_again_linux_tcp_event_data_sent() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let told = starts.clone();
    let own = Maker::new(move || Box::new(Starts(told.clone())));
    let mut s = Server::new(&linux().with(|set| {
        set.sending.controller = Recipe::own(own);
        set.loss.tlp = false;
    }));
    s.write(10);
    s.now += RTT;
    assert_eq!(s.ack(2, &[]), "");
    s.now += Span::from_ms(1);
    s.write(4); // two of the ten are acknowledged
    assert_eq!(s.timer(), "R2", "the retransmission timeout: all are taken for lost");
    assert_eq!(
        *starts.lock().expect("no panic"),
        [12_001],
        "where new data goes on, not where it did at the last ACK"
    );
}

/// Times of the last delivery, as passed to the controller.
#[derive(Default)]
struct Told(Arc<Mutex<Vec<Time>>>);

impl CongestionControl for Told {
    fn on_ack(&mut self, _: &mut Window, _: &AckSample) {}

    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        window.cwnd / 2
    }

    fn on_totals(&mut self, _: u64, _: u64, delivered_time: Time) {
        self.0.lock().expect("no panic").push(delivered_time);
    }

    fn needs(&self) -> Needs {
        Needs { rate: true, ..Needs::default() }
    }
}

#[test]
fn a_segment_that_leaves_alone_begins_the_time_of_delivery_linux_tcp_rate_skb_sent() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let told = times.clone();
    let own = Maker::new(move || Box::new(Told(told.clone())));
    let mut s = Server::new(&linux().with(|set| set.sending.controller = Recipe::own(own)));
    let first = s.now;
    s.write(2);
    s.now += RTT;
    s.ack(2, &[]);
    s.write(2);
    let times: Vec<_> = times.lock().expect("no panic").iter().map(|t: &Time| t.0 / 1000).collect();
    assert_eq!(times, [first, s.now].map(|t| t.0 / 1000), "not the second segment of either");
}

/// Controller with one pacing rate before a pause, and a lower one after it.
#[derive(Default)]
struct Slower;

impl CongestionControl for Slower {
    fn on_start(&mut self, window: &mut Window, _: Time, _: Span, _: u32) {
        window.pacing_rate = 2_000_000;
    }

    fn on_ack(&mut self, _: &mut Window, _: &AckSample) {}

    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        window.cwnd / 2
    }

    fn on_tx_start(&mut self, window: &mut Window, _: Time, _: Span, _: u64) {
        window.pacing_rate = 1_000_000;
    }

    fn needs(&self) -> Needs {
        Needs { rate: true, pacing: true, ..Needs::default() }
    }
}

#[test]
fn what_leaves_behind_a_pause_is_paced_as_the_controller_says_then_linux_bbr_cwnd_event_tx_start() {
    let own = Maker::new(|| Box::new(Slower));
    let mut s = Server::new(&linux().with(|set| set.sending.controller = Recipe::own(own)));
    s.write(2);
    s.now += RTT;
    s.ack(2, &[]);
    assert_eq!(s.info().pacing_rate, 2_000_000);
    s.now += RTT;
    s.write(2);
    assert_eq!(s.info().pacing_rate, 1_000_000, "not only from the next ACK on");
}

#[test]
fn a_segment_behind_an_ack_without_data_has_no_time_to_make_up_for_linux_tcp_transmit_skb() {
    let gap = |asked: u64| {
        let own = Maker::new(|| Box::new(Slower));
        let mut s = Server::new(&linux().with(|set| {
            set.sending.controller = Recipe::own(own);
            set.loss.tlp = false;
        }));
        s.write(10);
        s.now += RTT;
        s.ack(10, &[]);
        s.now += RTT;
        for _ in 0..asked {
            let request = Segment { len: 100, ..Server::segment(10, &[]) };
            s.conn.on_packet(s.now, &request, Ecn::NotEct);
            assert!(s.sent().is_empty(), "its ACK alone");
        }
        assert_eq!(s.write(2), ["N10"]);
        s.conn.next_deadline() - s.now
    };
    assert_eq!(gap(0), Span::from_us(500), "half of its time was over");
    assert_eq!(gap(1), Span::from_ms(1));
}
