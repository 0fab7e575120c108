//! The fast path of [`Receiver::on_data`] against the general one: two receivers get the same inputs, and one
//! of them never takes the fast path.

use proptest::prelude::*;

use ackclock_core::packet::Ecn;

use super::*;

const PROFILES: [&str; 4] = ["linux-6", "linux-3.2", "linux-3.0", "rfc"];

/// Input of a receiver.
#[derive(Clone, Debug)]
enum Step {
    /// A segment arrives at this distance from the expected offset. Pending ACKs are sent unless `late` is set.
    Arrives {
        from: i64,
        len: u32,
        flags: Flags,
        ce: bool,
        cwr: bool,
        late: bool,
    },
    /// Time passes, and expired timers fire.
    Waits(u64),
    /// Pending ACKs are sent.
    Answers,
    Sends,
    Reads(u64),
    SetsBuffer(u64),
    QuickAcksEnd,
}

/// Generate arrivals; `in_order` is the weight of in-order segments, relative to a total weight of five for all others.
fn arrives(in_order: u32) -> impl Strategy<Value = Step> {
    let len = prop_oneof![12 => Just(SMSS as u32), 2 => 0..SMSS as u32, 1 => SMSS as u32..30_000];
    let from = prop_oneof![in_order => Just(0i64), 4 => (1..5i64).prop_map(|n| n * SMSS as i64), 1 => -3_000..30_000i64];
    (from, len, (0..8u8, 0..60u8, 0..40u8, 0..40u8, 0..3u8)).prop_map(
        |(from, len, (psh, fin, ce, cwr, late))| {
            let mut flags = Flags::ACK;
            if psh == 0 {
                flags |= Flags::PSH;
            }
            if fin == 0 {
                flags |= Flags::FIN;
            }
            Step::Arrives {
                from,
                len: len.max((fin > 0) as u32),
                flags,
                ce: ce == 0,
                cwr: cwr == 0,
                late: late == 0,
            }
        },
    )
}

fn step(in_order: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => arrives(in_order),
        12 => prop_oneof![4 => 0..300_000u64, 2 => 0..60_000_000u64, 1 => 0..2_000_000_000u64].prop_map(Step::Waits),
        3 => Just(Step::Answers),
        2 => Just(Step::Sends),
        3 => (1..60_000u64).prop_map(Step::Reads),
        1 => (4_000..4_000_000u64).prop_map(Step::SetsBuffer),
        5 => Just(Step::QuickAcksEnd),
    ]
}

/// Return a profile with random receiver settings.
fn config() -> impl Strategy<Value = Config> {
    let odds = (0..4usize, 0..6u8, 0..6u8, 0..6u8, 0..6u8, any::<[bool; 3]>());
    odds.prop_map(|(profile, calls, cheats, splits, sack, [compression, dsack, shrinks])| {
        let mut config = Config::profile(PROFILES[profile]).expect("a profile");
        config.receiving.explicit_reads = calls == 0;
        config.receiving.optimistic_acks = (cheats == 0).then_some(1 << 14);
        config.switches.ack_splits = if splits == 0 { 3 } else { 1 };
        config.sack = sack > 0;
        config.receiving.sack_compression &= compression;
        config.receiving.dsack &= dsack;
        config.receiving.shrink_window |= shrinks;
        config
    })
}

struct Run<'a> {
    config: &'a Config,
    now: Time,
    srtt: Span,
}

impl Run<'_> {
    /// Apply a step to a receiver, which takes the fast path only if it `may`. Returns the headers it writes.
    fn happens(&self, step: &Step, receiver: &mut Receiver, may: bool) -> Vec<Segment> {
        let (now, rto) = (self.now, self.srtt + Span::from_ms(200));
        let mut headers = Vec::new();
        match *step {
            Step::Arrives { from, len, flags, ce, cwr, .. } => {
                let seq = receiver.rcv_nxt.saturating_add_signed(from).max(1);
                let ts = self.config.timestamp(now);
                let ts_ecr = ts.saturating_sub(10);
                let seg = Segment { seq, len, flags, has_ts: true, ts_val: ts, ts_ecr, ..Segment::default() };
                if !receiver.is_in_window(&seg) {
                    receiver.on_outside(&seg);
                } else {
                    let marked = match cwr {
                        true => Segment { flags: flags | Flags::CWR, ..seg },
                        false => seg,
                    };
                    receiver.on_marks(&marked, if ce { Ecn::Ce } else { Ecn::Ect0 });
                    receiver.is_plain &= may;
                    receiver.on_data(now, &seg, self.srtt, rto, ts);
                }
            }
            Step::Waits(_) if receiver.deadline() <= now => receiver.on_timer(now, rto),
            Step::Sends => {
                receiver.on_data_sent(now);
                headers.push(Segment::default());
                receiver.stamp(&mut headers[0]); // sent data carries an ACK too
            }
            Step::Reads(bytes) if receiver.reader.explicit => {
                receiver.read(now, bytes);
            }
            Step::QuickAcksEnd => receiver.acks.quick = 0,
            Step::SetsBuffer(memory) => receiver.set_buffer(memory),
            Step::Waits(_) | Step::Reads(_) | Step::Answers => {}
        }
        receiver.recount();
        let late = matches!(step, Step::Arrives { late: true, .. });
        while receiver.ack_due() && !late {
            let mut header = Segment::default();
            receiver.stamp(&mut header);
            headers.push(header);
        }
        receiver.recount();
        headers
    }
}

proptest! {
    #[test]
    fn the_plain_path_does_what_the_general_one_does(
        config in config(),
        srtt in prop_oneof![Just(Span::ZERO), (1..300u64).prop_map(Span::from_ms)],
        first in prop_oneof![Just(0), 0..100usize],
        steps in prop_oneof![prop::collection::vec(step(25), 1..250), prop::collection::vec(step(3), 1..250)],
    ) {
        let new = || {
            let mut receiver = Receiver::new(&config, Ticks::new(config.tick(), 0, config.timers.wheel));
            receiver.negotiated(true, true);
            receiver.on_syn();
            receiver.begin(Time(1), 1448);
            receiver
        };
        let (mut plain, mut general) = (new(), new());
        let mut run = Run { config: &config, now: Time(1), srtt };
        let full = Step::Arrives { from: 0, len: SMSS as u32, flags: Flags::ACK, ce: false, cwr: false, late: false };
        let steps = std::iter::repeat_n(full, first).chain(steps);
        for (i, step) in steps.enumerate() {
            if let Step::Waits(ns) = step {
                run.now += Span(ns);
            }
            let (left, want) = (run.happens(&step, &mut plain, true), run.happens(&step, &mut general, false));
            prop_assert_eq!(left, want, "after step {}", i);
            prop_assert_eq!(format!("{plain:?}"), format!("{general:?}"), "after step {}: {:?}", i, step);
        }
    }
}
