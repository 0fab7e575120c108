//! The complete TCP on the ideal path of RFC 6937 §3.1, compared with the recovery rules alone
//! (`ackclock_cc::ideal`): the same segments on the same ACKs, and the same cwnd and pipe. The tables of the
//! rules are golden tests of `cc`; these tests compare the complete sender with the same tables.

use ackclock_cc::controller::Recipe;
use ackclock_cc::ideal::{self, IdealConfig};
use ackclock_cc::Rule;
use ackclock_core::packet::Ecn;
use ackclock_core::trace::Event;
use ackclock_core::{Segment, Span, Time};
use ackclock_tcp::{Config, Connection, DelayedAck, Detection};
use proptest::prelude::*;

const RTT: u64 = 100_000_000;

/// cwnd, pipe and the segments sent, for each ACK.
type Row = (u32, u32, String);

/// Run a bulk flow with `window` segments in flight, the first transmissions in `lost` dropped, and one ACK per arrival.
fn play(rule: &str, window: u32, lost: &[u32], acks: usize) -> Vec<Row> {
    let config = Config::profile("rfc").expect("a profile").with(|set| {
        set.sending.iw = window;
        set.loss.rule = Rule::by_name(rule).expect("a rule");
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
        set.loss.detection = Detection::Dupthresh;
        set.receiving.delayed_ack = DelayedAck::Off;
        set.receiving.sack_compression = false;
        set.timers.min_rto = Span::from_secs(1000);
        set.timers.max_rto = Span::from_secs(2000);
        set.receiving.initial_rwnd = 1 << 30;
        set.receiving.receive_buffer = 1 << 30;
    });
    let (mut a, mut b) = (Connection::initiator(0, &config), Connection::responder(0, &config));
    let mut now = Time(1);
    a.connect(now);
    let syn = a.poll_transmit(now).expect("SYN");
    b.on_packet(now, &syn, Ecn::NotEct);
    let syn_ack = b.poll_transmit(now).expect("SYN-ACK");
    now += Span(RTT);
    a.on_packet(now, &syn_ack, Ecn::NotEct);
    let ack = a.poll_transmit(now).expect("ACK");
    b.on_packet(now, &ack, Ecn::NotEct);
    a.set_trace(true);
    a.write_forever(now);

    let mut flying: Vec<(Time, Segment)> = Vec::new();
    let (mut last, mut index) = (Time::ZERO, 0u64);
    let mut send = |a: &mut Connection, now: Time, flying: &mut Vec<(Time, Segment)>| {
        let mut sent = String::new();
        let (mut new, mut again) = (0, 0);
        while let Some(seg) = a.poll_transmit(now) {
            // evenly spaced over one RTT at first, and in order from then on
            let spaced = if index < window as u64 { RTT / window as u64 * index } else { 0 };
            index += 1;
            let at = (now + Span(RTT + spaced)).max(last + Span(1));
            last = at;
            new += (seg.rexmit == 0) as u32;
            again += (seg.rexmit > 0) as u32;
            if seg.rexmit > 0 || !lost.contains(&(seg.seg_no - 1)) {
                flying.push((at, seg));
            }
        }
        let part = |n: u32, letter: &str| match n {
            0 => String::new(),
            1 => letter.into(),
            n => format!("{n}{letter}"),
        };
        sent += &part(again, "R");
        if again > 0 && new > 0 {
            sent += "+";
        }
        sent += &part(new, "N");
        if sent.is_empty() {
            "·".to_string()
        } else {
            sent
        }
    };
    send(&mut a, now, &mut flying);

    let mut rows = Vec::new();
    while rows.len() < acks && !flying.is_empty() {
        let (at, seg) = flying.remove(0);
        now = at;
        b.on_packet(now, &seg, Ecn::NotEct);
        let ack = b.poll_transmit(now).expect("an ACK per segment");
        a.take_records();
        a.on_packet(now, &ack, Ecn::NotEct);
        let records = a.take_records();
        let record = records.iter().rev().find(|r| r.event.kind == Event::Ack).expect("a record per ACK");
        let sent = send(&mut a, now, &mut flying);
        rows.push((record.window.cwnd, record.window.pipe, sent));
    }
    rows
}

fn ideal(rule: &str, window: u32, lost: &[u32]) -> Vec<Row> {
    let rule = Rule::by_name(rule).expect("a rule");
    let config = IdealConfig {
        lost: lost.to_vec(),
        min_cwnd: Some((window / 2).max(2) / 2), // Reno's min_cwnd hook
        ..IdealConfig::new(rule, window)
    };
    let table = ideal::run(&config);
    let rows = if table.summary.completed { table.rows.len() - 1 } else { table.rows.len() };
    table.rows[..rows].iter().map(|r| (r.cwnd, r.pipe, r.sent.clone())).collect()
}

const RULES: &[(&str, &str)] = ackclock_cc::recovery::REGISTRY;

#[test]
fn one_loss_of_twenty_rfc_9937_figure_1() {
    // pipe and segments sent as published for ACKs 1-18; ACKs 19-20 as computed by the algorithm
    let rows = play("prr-rfc9937", 20, &[0], 18);
    let pipe: Vec<u32> = rows.iter().map(|r| r.1).collect();
    assert_eq!(pipe, [19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11]);
    let sent: String = rows.iter().map(|r| r.2.as_str()).collect();
    assert_eq!(sent, "NNR·N·N·N·N·N·N·N·");
    let rows = play("rfc6675", 20, &[0], 21);
    let sent: String = rows.iter().map(|r| r.2.as_str()).collect();
    assert_eq!(sent, "NNR·········NNNNNNNNN");
    assert!(rows[2..].iter().all(|r| r.0 == 10));
}

#[test]
fn fifteen_losses_of_twenty_rfc_9937_figure_2() {
    let lost: Vec<u32> = (0..15).collect();
    let rows = play("rfc6675", 20, &lost, 5);
    assert_eq!(rows.iter().map(|r| r.2.as_str()).collect::<Vec<_>>(), ["N", "N", "6R", "R", "R"]);
    assert_eq!(rows.iter().map(|r| r.1).collect::<Vec<_>>(), [19, 19, 4, 9, 9]);
    let rows = play("prr-rfc9937", 20, &lost, 5);
    assert_eq!(rows.iter().map(|r| r.2.as_str()).collect::<Vec<_>>(), ["N", "N", "R", "R", "R"]);
    assert_eq!(rows.iter().map(|r| r.0).collect::<Vec<_>>(), [20, 20, 5, 5, 5]);
}

proptest! {
    #[test]
    fn the_sender_sends_what_the_rule_says(
        rule in 0..RULES.len(),
        window in 5u32..60,
        losses in prop::collection::btree_set(1u32..60, 0..20),
    ) {
        // the first segment is lost, so that no ACK advances before recovery
        let mut lost = vec![0];
        lost.extend(losses.into_iter().filter(|&l| l < window));
        let expected = ideal(RULES[rule].0, window, &lost);
        let got = play(RULES[rule].0, window, &lost, expected.len());
        prop_assert_eq!(&got[..], &expected[..got.len()], "{} W {} lost {:?}", RULES[rule].0, window, lost);
        prop_assert_eq!(got.len(), expected.len());
    }
}
