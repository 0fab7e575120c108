//! Accurate ECN between two endpoints: the counts inferred by the sender equal those of the receiver (RFC 9768).

use crate::common::wire::{lost_if, Wire, CLIENT, SERVER};
use ackclock_cc::controller::Recipe;
use ackclock_core::packet::Ecn;
use ackclock_core::rng::threshold;
use ackclock_core::{Span, Stream, Time};
use ackclock_tcp::{AccEcnRules, Config, EcnUse};

fn config(profile: &str, option: u8) -> Config {
    Config::profile(profile).expect("known").with(|set| {
        // BBR ignores marks, so its window stays large and ACKs cover many segments
        set.sending.controller = Recipe::by_name("bbr").expect("registered");
        set.ecn = EcnUse::AccEcn;
        set.accecn = AccEcnRules { option, beacon: 3, fallback: true };
    })
}

/// Run a transfer whose packets arrive CE-marked with probability `marked`, and whose ACKs are lost with
/// probability `lost`. Returns packets and CE bytes, each as counted by the server and as known to the client.
fn transfer(config: &Config, seed: u64, marked: f64, lost: f64) -> [(u32, u32); 2] {
    let mut rng = Stream::new(seed, "acks");
    let lost = threshold(lost);
    let mut wire = Wire::new(config, config, move |leaving| {
        lost_if(leaving.from == SERVER && leaving.index > 0 && rng.chance(lost))
    });
    wire.gap = Span::from_us(100);
    let mut rng = Stream::new(seed, "marks");
    let marked = threshold(marked);
    wire.marks = Box::new(move |to, left| match left {
        Ecn::Ect0 | Ecn::Ect1 if to == SERVER && rng.chance(marked) => Ecn::Ce,
        left => left,
    });
    wire.ends[CLIENT].connect(Time::ZERO);
    wire.ends[CLIENT].write(Time::ZERO, 1_000_000);
    wire.drain(CLIENT);
    wire.run_until(Time(60_000_000_000));
    assert_eq!(wire.ends[CLIENT].acked(), 1_000_000);
    let [client, server] = [CLIENT, SERVER].map(|end| wire.ends[end].accurate_marks().expect("agreed"));
    [(server.received_ce, client.delivered_ce), (server.received_bytes[2], client.delivered_bytes[2])]
}

#[test]
fn every_mark_is_told_where_no_ack_is_lost() {
    for profile in ["linux-6", "rfc"] {
        for option in [0, 2] {
            for (seed, marked) in [(1, 0.02), (2, 0.3), (3, 1.0)] {
                let [packets, bytes] = transfer(&config(profile, option), seed, marked, 0.0);
                assert!(packets.0 > 0);
                assert_eq!(packets.0, packets.1, "{profile} {option} {marked}");
                assert_eq!(bytes.1, if option > 0 { bytes.0 } else { 0 }, "{profile} {option} {marked}");
            }
        }
    }
}

#[test]
fn without_an_option_lost_acks_hide_no_mark_from_the_safe_rule() {
    for seed in 0..20 {
        let [(counted, known), _] = transfer(&config("rfc", 0), seed, 0.2, 0.5);
        assert!(known >= counted, "{seed}: {known} of {counted}");
        assert!(known < 2 * counted, "{seed}: {known} of {counted}");
    }
}

#[test]
fn with_the_option_the_estimate_is_close_though_acks_are_lost() {
    for seed in 0..20 {
        let [(counted, known), (bytes, told)] = transfer(&config("linux-6", 2), seed, 0.2, 0.5);
        // the ACK of a final spurious retransmission may be lost
        assert!(told <= bytes && bytes - told <= 1448, "{seed}: {told} of {bytes}");
        assert!(known.abs_diff(counted) * 20 <= counted, "{seed}: {known} of {counted}");
    }
}

/// The mean number of segments per ACK begins with the SYN, so a first ACK for ten segments does not look like that of a
/// receiver that thins its ACKs (Linux `pkts_acked_ewma`).
#[test]
fn a_first_ack_of_ten_segments_counts_the_marks_that_lost_acks_could_have_hidden() {
    let config = config("linux-6", 0);
    let mut wire = Wire::new(&config, &config, |leaving| {
        lost_if(leaving.from == SERVER && (1..=9).contains(&leaving.index))
    });
    wire.ends[CLIENT].connect(Time::ZERO);
    wire.ends[CLIENT].write(Time::ZERO, 10 * 1448);
    wire.drain(CLIENT);
    wire.run_until(Time(150_000_000));
    let [client, server] = [CLIENT, SERVER].map(|end| wire.ends[end].accurate_marks().expect("agreed"));
    assert_eq!((server.received_ce, client.delivered_ce), (0, 8));
}
