//! Start and end of a connection in corner cases that a plausible TCP gets wrong. Each test covers one
//! behaviour from one source.

use crate::common::server::Server;
use crate::common::wire::{lost_if, Wire};
use ackclock_cc::controller::Recipe;
use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::{Flags, Segment, Span, Time};
use ackclock_tcp::{Config, Connection, DelayedAck};

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Return a profile with Reno's arithmetic.
fn reno(profile: &str) -> Config {
    Config::profile(profile)
        .expect("a profile")
        .with(|set| set.sending.controller = Recipe::by_name("reno").expect("a controller"))
}

/// Return the times, up to `until`, of the SYN-ACKs from a listening end that receives a SYN at each of `syns`.
fn syn_acks(syns: &[Time], until: Time) -> Vec<Time> {
    let mut conn = Connection::responder(0, &reno("linux-6"));
    let syn = SynOptions { mss: 1460, wscale: 8, sack_permitted: true };
    let syn = Segment { flags: Flags::SYN, syn, wnd: 65_000, ..Segment::default() };
    let (mut syns, mut sent) = (syns.iter().copied().peekable(), Vec::new());
    loop {
        let arrival = syns.peek().copied().unwrap_or(Time::NEVER);
        let now = arrival.min(conn.next_deadline());
        if now > until {
            return sent;
        }
        if now == arrival {
            syns.next();
            conn.on_packet(now, &syn, Ecn::NotEct);
        } else {
            conn.on_timer(now);
        }
        while conn.poll_transmit(now).is_some() {
            sent.push(now);
        }
    }
}

#[test]
fn the_syn_ack_backs_off_from_the_start_linux_reqsk_timer_handler() {
    let sent = syn_acks(&[at(0)], at(9000));
    let seconds: Vec<u64> = sent.iter().map(|t| t.0 / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7]); // only the SYN has linear timeouts
}

#[test]
fn a_repeated_syn_restarts_the_timer_of_its_answer_linux_tcp_check_req() {
    let sent = syn_acks(&[at(0), at(900)], at(1850));
    assert_eq!(sent, [at(0), at(900)]);
}

#[test]
fn segments_fit_the_peers_mss_option_rfc_9293_section_3_7_1() {
    let (client, server) = (reno("linux-6"), Config { smss: 500, ..reno("linux-6") });
    let sent = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let log = sent.clone();
    let mut wire = Wire::new(&client, &server, move |l| {
        log.borrow_mut().extend((l.seg.len > 0).then_some(l.seg.len));
        lost_if(false)
    });
    wire.connect();
    wire.write(1);
    wire.run_until(at(1000));
    assert_eq!(*sent.borrow(), [500, 500, 448]);
}

#[test]
fn the_ack_of_the_syn_ack_leaves_before_data() {
    let config = reno("linux-6").with(|set| set.receiving.delayed_ack = DelayedAck::Off);
    let mut client = Connection::initiator(0, &config);
    let mut server = Connection::responder(0, &config);
    client.connect(at(0));
    client.write(at(0), 5000);
    server.on_packet(at(0), &client.poll_transmit(at(0)).expect("SYN"), Ecn::NotEct);
    client.on_packet(at(0), &server.poll_transmit(at(0)).expect("SYN-ACK"), Ecn::NotEct);
    let ack = client.poll_transmit(at(0)).expect("ACK");
    assert_eq!((ack.seq, ack.ack, ack.len), (1, 1, 0));
    assert!(client.poll_transmit(at(0)).expect("data").len > 0);
}

#[test]
fn the_fin_is_not_among_the_bytes_written() {
    let mut s = Server::new(&reno("linux-6"));
    s.write(3);
    s.conn.close(s.now);
    s.sent();
    s.conn.stop_writing(s.now);
    assert_eq!(s.conn.written(), 3000);
}
