//! Tests of two ends over a pipe with a delay, without the simulated network.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::options::{Options, Value};
use ackclock_core::Span;

use super::*;
use crate::registry::build;

const DELAY: Span = Span::from_ms(20);

struct Pipe {
    ends: [End; 2],
    carried: Carried,
    wire: [VecDeque<(Time, Opaque)>; 2],
    /// Every datagram: time, sending end, and fingerprint.
    seen: Vec<(Time, usize, [u64; 2])>,
}

impl Pipe {
    fn new(name: &str, options: &[(&str, u64)], clock: Clock) -> Pipe {
        let options: Options = options.iter().map(|(key, n)| (key.to_string(), Value::Whole(*n))).collect();
        let recipe = build(name, &options).expect("allowed");
        let carried = Carried::default();
        let end = |opens: bool| {
            End::new(
                &recipe,
                opens,
                true,
                Stream::new(7, if opens { "a" } else { "b" }),
                carried.clone(),
                clock,
            )
        };
        Pipe {
            ends: [end(true), end(false)],
            carried: carried.clone(),
            wire: Default::default(),
            seen: Vec::new(),
        }
    }

    /// Run until `until`, or until there are no more events. Datagrams for which `lost` (end, number) is true are
    /// dropped.
    fn run(&mut self, until: Time, lost: impl Fn(usize, u64) -> bool) {
        let mut now = Time::ZERO;
        self.ends[0].connect(now);
        loop {
            for side in [0, 1] {
                while let Some(datagram) = self.ends[side].poll_transmit(now) {
                    self.seen.push((now, side, datagram.fingerprint()));
                    let Datagram::Opaque(opaque) = datagram else { panic!("of the stack") };
                    match lost(side, opaque.number) {
                        true => self.carried.lose(&opaque),
                        false => self.wire[1 - side].push_back((now + DELAY, opaque)),
                    }
                }
            }
            let arrivals = self.wire.iter().filter_map(|wire| wire.front().map(|&(at, _)| at));
            let timers = self.ends.iter().map(DatagramEndpoint::next_deadline);
            now = arrivals.chain(timers).min().expect("two timers");
            if now > until {
                return;
            }
            for side in [0, 1] {
                while let Some(&(_, opaque)) = self.wire[side].front().filter(|&&(at, _)| at == now) {
                    self.wire[side].pop_front();
                    self.ends[side].arrive(now, &opaque, opaque.ecn);
                }
                if self.ends[side].next_deadline() <= now {
                    self.ends[side].on_timer(now);
                }
            }
        }
    }

    fn transfer(name: &str, options: &[(&str, u64)], clock: Clock, bytes: u64) -> Pipe {
        let mut pipe = Pipe::new(name, options, clock);
        pipe.ends[0].write(Time::ZERO, bytes);
        pipe.ends[0].close(Time::ZERO);
        pipe.ends[1].close(Time::ZERO);
        pipe
    }
}

#[test]
fn a_transfer_arrives_whole_and_both_ends_are_done() {
    for (name, _) in crate::REGISTRY {
        let mut pipe = Pipe::transfer(name, &[], Clock::default(), 1_000_000);
        pipe.run(Time(10_000_000_000), |_, number| number % 50 == 17);
        let [sender, receiver] = &pipe.ends;
        assert_eq!((sender.acked(), receiver.received()), (1_000_000, 1_000_000), "{name}");
        assert!(sender.is_done() && receiver.is_done() && receiver.peer_closed(), "{name}");
        assert!(sender.failure().is_none() && receiver.failure().is_none(), "{name}");
        assert!(sender.stats().lost > 5, "{name}: {:?}", sender.stats());
        assert_eq!(pipe.carried.held(), 0, "{name}");
    }
}

/// The loss timer declares a loss between two ACKs if few packets behind the lost one arrive, as at the end.
#[test]
fn trace_rows_report_every_loss() {
    for (name, _) in crate::REGISTRY {
        let mut between = 0;
        for dropped in 650..800 {
            let mut pipe = Pipe::transfer(name, &[], Clock::default(), 1_000_000);
            pipe.ends[0].set_trace(true);
            pipe.run(Time(10_000_000_000), |side, number| {
                side == 0 && (number == dropped || number % 50 == 17)
            });
            let rows = pipe.ends[0].take_trace();
            assert_eq!(rows.iter().map(|row| row.lost).sum::<u64>(), pipe.ends[0].stats().lost, "{name}");
            between += rows.iter().filter(|row| row.is_sent && row.lost > 0).count();
        }
        assert!(between > 0, "{name}");
    }
}

#[test]
fn the_time_from_which_instants_count_cannot_be_seen() {
    for name in ["quinn:cubic", "quinn:ours-cubic"] {
        let seen = |shift| {
            let mut pipe = Pipe::transfer(name, &[], Clock::default().shifted(shift), 3_000_000);
            pipe.run(Time(10_000_000_000), |side, number| side == 0 && number % 70 == 23);
            pipe.seen
        };
        let plain = seen(Span::ZERO);
        assert!(plain.len() > 2000);
        for shift in [Span(1), Span::from_secs(12_345)] {
            assert!(seen(shift) == plain, "{name}");
        }
    }
}

/// The client is established after one round trip. A server may send three times what it has received, so a long
/// certificate takes another round trip.
#[test]
fn a_handshake_takes_the_round_trips_of_its_sizes() {
    let established = |certificate| {
        let mut pipe = Pipe::transfer("quinn:cubic", &[("certificate", certificate)], Clock::default(), 1000);
        let mut at = 0;
        while !pipe.ends[0].is_established() && at < 1000 {
            at += 10;
            pipe = Pipe::transfer("quinn:cubic", &[("certificate", certificate)], Clock::default(), 1000);
            pipe.run(Time(at * 1_000_000), |_, _| false);
        }
        at
    };
    let of: BTreeMap<u64, u64> = [1000, 3000, 5000, 8000].into_iter().map(|c| (c, established(c))).collect();
    assert_eq!(of, BTreeMap::from([(1000, 40), (3000, 40), (5000, 80), (8000, 80)]));
}

#[test]
fn a_path_that_dies_ends_the_connection_with_its_reason() {
    let mut pipe = Pipe::transfer("quinn:newreno", &[("idle_timeout_s", 5)], Clock::default(), 10_000_000);
    pipe.run(Time(100_000_000_000), |_, number| number > 100);
    assert_eq!(pipe.ends[0].failure(), Some(Failure::TimedOut));
    assert_eq!(pipe.ends[1].failure(), Some(Failure::TimedOut));
}

#[test]
fn marks_reduce_the_window_without_a_loss() {
    let mut pipe = Pipe::transfer("quinn:newreno", &[], Clock::default(), 2_000_000);
    pipe.run(Time(200_000_000), |_, _| false);
    assert_eq!(pipe.ends[0].stats().reductions, 0);
    for wire in &mut pipe.wire {
        wire.iter_mut().for_each(|(_, opaque)| opaque.ecn = Ecn::Ce);
    }
    let Some((at, opaque)) = pipe.wire[1].pop_front() else { panic!("data is on its way") };
    pipe.ends[1].arrive(at, &opaque, Ecn::Ce);
    let mut acks = Vec::new();
    for later in [at, Time(at.0 + 30_000_000)] {
        pipe.ends[1].on_timer(later);
        while let Some(Datagram::Opaque(ack)) = pipe.ends[1].poll_transmit(later) {
            acks.push(ack);
        }
    }
    for ack in acks {
        pipe.ends[0].arrive(Time(at.0 + 50_000_000), &ack, Ecn::NotEct);
    }
    assert_eq!((pipe.ends[0].stats().reductions, pipe.ends[0].stats().lost), (1, 0));
}

/// Compare this simulator's Reno with the stack's: the same reductions, and windows that differ only because whole
/// segments are counted.
#[test]
fn a_rule_of_ours_does_in_the_stack_what_the_stack_does_with_its_own() {
    let run = |name| {
        let mut pipe = Pipe::transfer(name, &[("mtu", 1452)], Clock::default(), 6_000_000);
        pipe.ends[0].set_trace(true);
        pipe.run(Time(3_000_000_000), |side, number| side == 0 && number % 1500 == 700);
        let rows = pipe.ends[0].take_trace();
        let windows: Vec<(Time, u64)> =
            rows.iter().filter(|row| !row.is_sent).map(|row| (row.t, row.sample.window)).collect();
        (windows, pipe.ends[0].stats())
    };
    let ((ours, own), (theirs, stack)) = (run("quinn:ours-reno"), run("quinn:newreno"));
    assert_eq!((own.lost, own.reductions), (stack.lost, stack.reductions));
    assert!(own.reductions >= 3, "{own:?}");
    // windows at the end of each tenth of the run
    for part in 1..=10 {
        let at = |windows: &[(Time, u64)]| {
            windows.iter().rev().find(|(t, _)| t.0 <= part * 300_000_000).expect("an ACK").1
        };
        assert!(
            at(&ours).abs_diff(at(&theirs)) * 10 <= at(&theirs),
            "{part}: {} and {}",
            at(&ours),
            at(&theirs)
        );
    }
}

#[test]
fn a_slow_start_belongs_to_a_controller_of_ours() {
    let options: Options = [("slow_start".to_string(), Value::Text("hystart".to_string()))].into();
    assert!(build("quinn:ours-reno", &options).is_ok());
    let refused = build("quinn:cubic", &options).err().expect("refused");
    assert_eq!(
        refused.to_string(),
        "slow_start: found \"hystart\" with quinn:cubic; allowed: \"classic\", or a controller quinn:ours-NAME"
    );
}

/// Arbitrary bytes are ignored or end the connection.
#[test]
fn junk_is_survived() {
    let mut stream = Stream::new(3, "junk");
    for _ in 0..3000 {
        let mut pipe = Pipe::transfer("quinn:cubic", &[], Clock::default(), 10_000);
        let until = Time(stream.below(120) * 1_000_000);
        pipe.run(until, |_, _| false);
        let number = stream.next_u64();
        let mut bytes: Vec<u8> = (0..stream.below(1500)).map(|_| stream.next_u64() as u8).collect();
        if let (Some(&(_, opaque)), true) = (pipe.wire[1].front(), stream.chance(u64::MAX / 2)) {
            // a datagram from the peer with one byte changed
            bytes = pipe.carried.take(&opaque, <[u8]>::to_vec);
            pipe.wire[1].pop_front();
            let at = stream.below(bytes.len() as u64) as usize;
            bytes[at] ^= stream.next_u64() as u8;
        }
        let opaque =
            Opaque { number, place: pipe.carried.put(&bytes), len: bytes.len() as u32, ..Opaque::default() };
        for side in [0, 1] {
            let opaque = Opaque { place: pipe.carried.put(&bytes), ..opaque };
            pipe.ends[side].arrive(until, &opaque, Ecn::Ect0);
            while pipe.ends[side].poll_transmit(until).is_some() {}
        }
    }
}
