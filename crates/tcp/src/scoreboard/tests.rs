//! The scoreboard against a model that counts everything from scratch, and as part of a sender on a path
//! that loses, reorders and duplicates.
//!
//! Length: the model, and one case for each rule of Linux that the model does not include.

use std::collections::BTreeMap;

use ackclock_cc::controller::Recipe;
use ackclock_cc::Rule;
use ackclock_core::rng::threshold;
use ackclock_core::{Flags, Segment, Span, Stream, Time};
use proptest::prelude::*;

use super::*;
use crate::config::{Config, Detection, EarlyRetransmit};
use crate::receiver::Receiver;
use crate::sender::{Leaving, Sender};
use crate::ticks::Ticks;

const SMSS: u32 = 1000;

// Comparison with a model

/// Slow model of a segment.
#[derive(Clone, Debug, Default)]
struct Slow {
    end: u64,
    len: u32,
    xmit: u64,
    rexmit: u32,
    sacked: bool,
    lost: bool,
    retrans: bool,
    ever: bool,
    fin: bool,
    listed: bool,
}

#[derive(Default)]
struct Model {
    first: u64,
    segments: Vec<Slow>,
    /// Segment numbers in transmission order.
    list: Vec<u64>,
}

impl Model {
    fn at(&mut self, n: u64) -> &mut Slow {
        &mut self.segments[(n - self.first) as usize]
    }
    fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }
    fn unlist(&mut self, n: u64) {
        self.at(n).listed = false;
        self.list.retain(|&m| m != n);
    }
    fn list_last(&mut self, n: u64) {
        self.unlist(n);
        self.at(n).listed = true;
        self.list.push(n);
    }
    fn count(&self, what: impl Fn(&Slow) -> bool) -> u32 {
        self.segments.iter().filter(|s| what(s)).count() as u32
    }
    fn sacked_numbers(&self) -> Vec<u64> {
        (self.first..self.next()).filter(|&n| self.segments[(n - self.first) as usize].sacked).collect()
    }
}

/// Operations, as the sender performs them. Segment positions are taken modulo the number of outstanding segments.
#[derive(Clone, Debug)]
enum Op {
    Push { len: u32, fin: bool },
    PopAcked { up_to: u64 },
    Sack { from: u64, segments: u64, rfc_6675: bool },
    MarkLost(u64),
    Retransmitted { which: u64, counts: bool },
    UnmarkAllLost,
    ForgetSacks,
    Fit,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..=SMSS, 0..40u8).prop_map(|(len, fin)| {
            // most segments are full, as at_or_after expects
            Op::Push { len: if len > SMSS / 4 { SMSS } else { len }, fin: fin == 0 }
        }),
        4 => (0..4u64).prop_map(|up_to| Op::PopAcked { up_to }),
        5 => (any::<u64>(), 1..6u64, any::<bool>())
            .prop_map(|(from, segments, rfc_6675)| Op::Sack { from, segments, rfc_6675 }),
        4 => any::<u64>().prop_map(Op::MarkLost),
        4 => (any::<u64>(), any::<bool>()).prop_map(|(which, counts)| Op::Retransmitted { which, counts }),
        1 => Just(Op::UnmarkAllLost),
        1 => Just(Op::ForgetSacks),
        1 => Just(Op::Fit),
    ]
}

fn apply(board: &mut Scoreboard, model: &mut Model, op: &Op, now: u64) {
    let out = model.segments.len() as u64;
    let pick = |x: u64| model.first + x % out.max(1);
    match *op {
        Op::Push { len, fin } => {
            let end = model.segments.last().map_or(board.first * SMSS as u64, |s| s.end) + len as u64;
            board.push(end, len, fin, Time(now), now as u32);
            model.segments.push(Slow { end, len, fin, xmit: now, ..Slow::default() });
            model.list_last(model.next() - 1);
        }
        _ if out == 0 => {}
        Op::PopAcked { up_to } => {
            let (from, up_to) = (model.first, pick(up_to));
            let ack = model.at(up_to).end;
            while let Some(popped) = board.pop_acked(ack) {
                assert_eq!(popped.first, model.first);
                let (head, last) = (model.segments[0].clone(), model.at(board.first - 1).clone());
                assert_eq!((popped.start, popped.first_end), (head.end - head.len as u64, head.end));
                assert_eq!(
                    (popped.first_xmit, popped.end, popped.xmit),
                    (Time(head.xmit), last.end, Time(last.xmit))
                );
                assert_eq!((popped.is(SACKED), popped.is(EVER_RETRANS)), (head.sacked, head.ever));
                for n in popped.first..board.first {
                    model.unlist(n);
                    let slow = model.segments.remove(0);
                    model.first += 1;
                    let plain = !(slow.sacked || slow.lost || slow.ever);
                    assert!(plain || board.first - popped.first == 1, "{slow:?} in a run");
                }
            }
            assert_eq!((board.first, from <= up_to), (up_to + 1, true));
        }
        Op::Sack { from, segments, rfc_6675 } => {
            let a = pick(from);
            let mut reported = Vec::new();
            board.add_sacked_range(a, a + segments, &Known::default(), |board, n| {
                assert!(board.mark_sacked(n, rfc_6675));
                reported.push(n);
            });
            let mut expected = Vec::new();
            for n in a..(a + segments).min(model.next()) {
                let s = model.at(n);
                if s.sacked {
                    continue;
                }
                expected.push(n);
                s.sacked = true;
                s.retrans &= !(s.lost || rfc_6675);
                s.lost = false;
                model.unlist(n);
            }
            assert_eq!(reported, expected, "each new one once, ascending");
        }
        Op::MarkLost(which) => {
            let n = pick(which);
            let s = model.at(n);
            let expected = match (s.sacked, s.lost, s.retrans) {
                (true, _, _) | (_, true, false) => Marked::No,
                (_, false, _) => Marked::Lost,
                (_, true, true) => Marked::LostAgain,
            };
            s.lost |= expected == Marked::Lost;
            s.retrans &= expected != Marked::LostAgain;
            if !s.sacked {
                model.unlist(n);
            }
            assert_eq!(board.mark_lost(n), expected);
        }
        Op::Retransmitted { which, counts } => {
            let n = pick(which);
            board.retransmitted(n, Time(now), now as u32, counts);
            let s = model.at(n);
            s.xmit = now;
            s.rexmit += 1;
            s.ever = true;
            s.retrans |= counts;
            model.list_last(n);
        }
        Op::UnmarkAllLost => {
            board.unmark_all_lost();
            let mut by_time: Vec<(u64, u64)> = Vec::new();
            for n in model.first..model.next() {
                let s = model.at(n);
                s.lost = false;
                if !s.sacked {
                    by_time.push((s.xmit, n));
                }
                model.unlist(n);
            }
            by_time.sort_unstable();
            by_time.into_iter().for_each(|(_, n)| model.list_last(n));
        }
        Op::ForgetSacks => {
            // The list stays unchanged: the code that detects reneging marks the segments lost.
            board.forget_sacks();
            model.segments.iter_mut().for_each(|s| s.sacked = false);
        }
        Op::Fit => board.fit(), // no visible effect
    }
}

fn compare(board: &Scoreboard, model: &Model, probe: u64) {
    board.recount(true);
    assert_eq!((board.first, board.next), (model.first, model.next()));
    assert_eq!(board.sacked_out, model.count(|s| s.sacked));
    assert_eq!(board.lost_out, model.count(|s| s.lost));
    assert_eq!(board.retrans_out, model.count(|s| s.retrans));
    let pipe: u32 = model.segments.iter().map(|s| !(s.sacked || s.lost) as u32 + s.retrans as u32).sum();
    assert_eq!(board.pipe(), pipe);
    for (n, s) in (model.first..).zip(&model.segments) {
        let b = board.get(n);
        let flags = [
            (s.sacked, SACKED),
            (s.lost, LOST),
            (s.retrans, RETRANS),
            (s.ever, EVER_RETRANS),
            (s.fin, FIN),
            (s.listed, LINKED),
        ];
        let flags: u8 = flags.iter().map(|(on, flag)| if *on { *flag } else { 0 }).sum();
        assert_eq!((b.end, b.space(), b.xmit.0, b.flags), (s.end, s.len, s.xmit, flags), "segment {n}");
        assert_eq!(b.rexmit as u32, s.rexmit.min(255));
    }
    let mut list = Vec::new();
    let mut cursor = board.oldest_sent();
    while let Some(n) = cursor {
        list.push(n);
        cursor = board.sent_after(n);
    }
    assert_eq!(list, model.list);

    let sacked = model.sacked_numbers();
    assert_eq!(board.sacked_end(), sacked.last().map_or(model.first, |n| n + 1));
    for k in 1..=sacked.len() + 1 {
        assert_eq!(board.kth_highest_sacked(k as u64), sacked.iter().rev().nth(k - 1).copied());
    }
    let Some(head) = board.head() else { return };
    let (low, high) = (head.start(), model.segments.last().expect("a head").end);
    let seq = low.saturating_sub(1) + probe % (high - low + 3);
    let first_from = model.segments.iter().position(|s| s.end - s.len as u64 >= seq);
    let expected = first_from.map_or(model.next(), |i| model.first + i as u64);
    assert_eq!(board.at_or_after(seq, SMSS), expected, "at or after {seq}");
}

proptest! {
    #[test]
    fn every_operation_does_what_the_model_says(
        ops in prop::collection::vec((op(), 0..2u64, any::<u64>()), 1..150),
        first in prop_oneof![Just(0), 1..100_000u64],
    ) {
        let mut board = Scoreboard { first, next: first, ..Scoreboard::default() };
        let mut model = Model { first, ..Model::default() };
        let mut now = 1;
        for (op, passes, probe) in &ops {
            now += passes; // segments of a burst have identical times
            apply(&mut board, &mut model, op, now);
            compare(&board, &model, *probe);
        }
    }
}

// Scoreboard of a sender

/// Sender of bulk data and its receiver. The board is checked after every event of the sender.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    sack: bool,
    timestamps: bool,
    rfc_6675: bool,
    now: Time,
    /// Packets in flight, by arrival time and order of transmission: direction and segment.
    flying: BTreeMap<(Time, u64), (bool, Segment)>,
    departed: u64,
    rng: Stream,
    loss: u64,
    reorder: u64,
    duplicate: u64,
}

impl Pair {
    fn check(&self) {
        let board = &self.sender.board;
        board.recount(self.sack);
        for n in board.first..board.next {
            let s = board.get(n);
            // Segments that RACK excluded before an undo are invisible to Linux's RACK as well.
            assert!(s.is(SACKED | LOST | LINKED | LEFT_OUT), "RACK would never see {n}: {s:?}");
            assert!(!(self.rfc_6675 && s.is(SACKED) && s.is(RETRANS)), "{n} is SACKed and in the pipe");
        }
    }

    fn depart(&mut self, to_sender: bool, seg: Segment) {
        if self.rng.chance(self.loss) {
            return;
        }
        for _ in 0..1 + self.rng.chance(self.duplicate) as u32 {
            let late = if self.rng.chance(self.reorder) { self.rng.below(60) } else { 0 };
            self.departed += 1;
            let at = self.now + Span::from_ms(20 + late) + Span::from_us(100 * (self.departed % 16));
            self.flying.insert((at, self.departed), (to_sender, seg));
        }
    }

    fn drain(&mut self) {
        while let Some(Leaving { seq, len, seg_no, rexmit, flags }) = self.sender.poll(self.now) {
            self.check();
            let (has_ts, ts_val) = (self.timestamps, self.sender.ts(self.now));
            let seg = Segment { seq, len, seg_no, rexmit, flags, has_ts, ts_val, ..Segment::default() };
            self.depart(false, seg);
        }
        if self.receiver.ack_due() {
            let mut ack =
                Segment { seq: 1, flags: Flags::ACK, has_ts: self.timestamps, ..Segment::default() };
            self.receiver.stamp(&mut ack);
            self.depart(true, ack);
        }
    }

    /// Process one event. Returns false if there is none.
    fn step(&mut self) -> bool {
        let arrival = self.flying.keys().next().map_or(Time::NEVER, |k| k.0);
        let timer = self.sender.deadline().min(self.receiver.deadline());
        if arrival.min(timer) == Time::NEVER {
            return false;
        }
        self.now = self.now.max(arrival.min(timer));
        if arrival <= timer {
            let (_, (to_sender, seg)) = self.flying.pop_first().expect("just seen");
            if to_sender {
                self.sender.hear(self.now, &seg);
            } else {
                let ts = self.sender.ts(self.now);
                self.receiver.on_data(self.now, &seg, Span::ZERO, self.sender.rtt.rto(), ts);
            }
        } else {
            self.sender.on_timer(self.now);
            self.receiver.on_timer(self.now, self.sender.rtt.rto());
        }
        self.check();
        self.drain();
        self.check();
        true
    }
}

const PROFILES: [&str; 4] = ["linux-6", "linux-3.2", "linux-3.0", "rfc"];
const RULES: &[(&str, &str)] = ackclock_cc::recovery::REGISTRY;

/// Return a random profile with compatible random settings.
fn config() -> impl Strategy<Value = Config> {
    let names = (0..4usize, 0..8usize, 0..3usize, 0..3usize);
    (names, any::<[bool; 9]>()).prop_map(|((profile, rule, detection, early), on)| {
        Config::profile(PROFILES[profile]).expect("a profile").with(|set| {
            set.loss.rule = Rule::by_name(RULES[rule].0).expect("a rule");
            set.loss.detection = [Detection::Dupthresh, Detection::Fack, Detection::Rack][detection];
            set.loss.early_retransmit =
                [EarlyRetransmit::Off, EarlyRetransmit::Rfc5827, EarlyRetransmit::Delayed][early];
            set.sending.controller =
                Recipe::by_name(if on[0] { "reno" } else { "cubic" }).expect("a controller");
            set.sack = on[1];
            set.timestamps = on[2];
            set.loss.limited_transmit = on[3];
            set.loss.tlp = on[4];
            set.loss.frto = on[5];
            set.loss.undo = on[6];
            set.loss.next_seg_rules = on[7];
            set.sending.cwnd_validation = on[8];
            set.smss = SMSS;
            set.timers.data_retries = 200;
            set.timers.max_rto = Span::from_secs(2);
        })
    })
}

proptest! {
    #[test]
    fn the_board_of_a_sender_is_right_after_everything_that_happens(
        config in config(),
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), 0.0..0.25f64],
        reorder in prop_oneof![Just(0.0), 0.0..0.3f64],
        duplicate in prop_oneof![Just(0.0), 0.0..0.1f64],
        segments in 1..120u64,
    ) {
        let ticks = Ticks::new(config.tick(), 0, config.timers.wheel);
        let mut pair = Pair {
            sender: Sender::new(0, false, &std::rc::Rc::new(config.clone())),
            receiver: Receiver::new(&config, ticks),
            sack: config.sack,
            timestamps: config.timestamps,
            rfc_6675: config.loss.next_seg_rules,
            now: Time(1),
            flying: BTreeMap::new(),
            departed: 0,
            rng: Stream::new(seed, "path"),
            loss: threshold(loss),
            reorder: threshold(reorder),
            duplicate: threshold(duplicate),
        };
        pair.receiver.on_syn();
        pair.sender.established(pair.now, config.receiving.initial_rwnd, config.sack, (SMSS, 0), Some(Span::from_ms(40)));
        pair.sender.write(pair.now, segments * SMSS as u64 / 2);
        pair.drain();
        let mut steps = 0;
        let mut wrote = false;
        while pair.step() {
            steps += 1;
            prop_assert!(steps < 200_000, "it never ends");
            if !wrote && pair.sender.acked() > 0 {
                wrote = true;
                pair.sender.write(pair.now, segments * SMSS as u64 - segments * SMSS as u64 / 2);
                pair.drain();
            }
        }
        prop_assert_eq!(pair.sender.acked(), segments * SMSS as u64);
    }
}

proptest! {
    /// Each piece has the marks of the whole segment, and the counters match a full count.
    #[test]
    fn cut_segments_keep_their_marks(
        sizes in proptest::collection::vec((1u32..4_000, 0u8..4), 1..30),
        most in 300u32..1_500,
        closes in proptest::bool::ANY,
    ) {
        let mut board = Scoreboard::default();
        let mut end = 1;
        for (i, (len, _)) in sizes.iter().enumerate() {
            let fin = closes && i + 1 == sizes.len();
            end += (*len + fin as u32) as u64;
            let now = Time(2 * i as u64);
            board.push(end, *len + fin as u32, fin, now, 0);
            // some segments are retransmitted while new data is still to be sent
            if i >= 3 && sizes[i - 3].1 == 3 && sizes[i].1 > 1 {
                board.mark_lost(i as u64 - 3);
                board.retransmitted(i as u64 - 3, now, board.next as u32, true);
            }
        }
        for (n, (_, kind)) in sizes.iter().enumerate() {
            let n = n as u64;
            match kind {
                1 => board.add_sacked_range(n, n + 1, &Known::default(), |board, n| { board.mark_sacked(n, false); }),
                2 => { board.mark_lost(n); }
                3 if !board.get(n).is(RETRANS) => { board.mark_lost(n); board.retransmitted(n, Time(100 + n), board.next as u32, true); }
                _ => {}
            }
        }
        let marks = |board: &Scoreboard| -> Vec<(u64, u8, Time)> {
            let all = (board.first..board.next).map(|n| *board.get(n));
            all.flat_map(|s| (s.start()..s.end).map(move |at| (at, s.flags & (SACKED | LOST | RETRANS), s.xmit))).collect()
        };
        // For each retransmitted byte, the offset of the next new data at that time. The pieces must give the same offsets.
        let next_at_rexmit = |board: &Scoreboard| -> Vec<(u64, u64)> {
            let again = (board.first..board.next).map(|n| *board.get(n)).filter(|s| s.rexmit > 0);
            let start = |n: u32| if n as u64 == board.next { end } else { board.get(n as u64).start() };
            again.flat_map(|s| (s.start()..s.end).map(move |at| (at, start(s.noted)))).collect()
        };
        let before = (marks(&board), next_at_rexmit(&board));
        board.cut_to(most, true);
        prop_assert_eq!((marks(&board), next_at_rexmit(&board)), before);
        let count = |mask| (board.first..board.next).filter(|&n| board.get(n).is(mask)).count() as u32;
        prop_assert_eq!((board.sacked_out, board.lost_out, board.retrans_out), (count(SACKED), count(LOST), count(RETRANS)));
        for n in board.first..board.next {
            let s = board.get(n);
            let payload = s.space() - s.is(FIN) as u32;
            prop_assert!(payload <= most && (payload > 0 || s.is(FIN)));
            prop_assert_eq!(s.is(FIN), closes && n + 1 == board.next);
        }
        let mut cursor = board.oldest_sent();
        let mut last = Time::ZERO;
        while let Some(n) = cursor {
            prop_assert!(board.get(n).xmit >= last);
            last = board.get(n).xmit;
            cursor = board.sent_after(n);
        }
        let highest = (board.first..board.next).rev().find(|&n| board.get(n).is(SACKED));
        prop_assert_eq!(board.sacked_end(), highest.map_or(board.first, |n| n + 1));
    }
}

/// Return a board of this many segments of 1,000 bytes, sent in order.
fn board_of(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    (1..=segments).for_each(|n| board.push(n * 1_000, 1_000, false, Time(n), 0));
    board
}

fn listed(board: &Scoreboard) -> Vec<u64> {
    std::iter::successors(board.oldest_sent(), |&n| board.sent_after(n)).collect()
}

/// The same segment numbers have different slots in rings of different sizes: segments 13 to 20 start at slot
/// 13 in a ring of 16, and at slot 5 in a ring of 8.
#[test]
fn a_ring_shrinks_to_what_is_outstanding_and_grows_again() {
    let mut board = board_of(13);
    while board.pop_acked(13_000).is_some() {}
    (14..=21).for_each(|n| board.push(n * 1_000, 1_000, false, Time(n), 0));
    assert_eq!((board.ring.len(), board.first, board.next), (16, 13, 21));
    board.mark_lost(15);
    let look = |board: &Scoreboard| -> Vec<(u64, u8)> {
        (board.first..board.next).map(|n| (board.get(n).end, board.get(n).flags)).collect()
    };
    let before = look(&board);
    board.fit();
    assert_eq!((board.ring.len(), look(&board)), (8, before.clone()));
    assert_eq!(listed(&board), [13, 14, 16, 17, 18, 19, 20]);
    board.fit();
    assert_eq!(board.ring.len(), 8, "it is full");
    board.push(22_000, 1_000, false, Time(22), 0);
    assert_eq!((board.ring.len(), &look(&board)[..8]), (16, &before[..]));
    while board.pop_acked(22_000).is_some() {}
    board.fit();
    assert_eq!(board.ring.len(), LEAST_RING, "no smaller one");
    board.push(23_000, 1_000, false, Time(23), 0);
    assert_eq!((board.ring.len(), board.get(22).end), (LEAST_RING, 23_000));
}

#[test]
fn a_large_ring_is_kept_for_the_flow_grows_again() {
    let mut board = board_of(SMALL_RING as u64 + 1);
    while board.pop_acked(60_000).is_some() {}
    board.fit();
    assert_eq!((board.ring.len(), board.packets_out()), (2 * SMALL_RING, 5));
    let mut board = board_of(SMALL_RING as u64);
    while board.pop_acked(60_000).is_some() {}
    board.fit();
    assert_eq!((board.ring.len(), board.packets_out()), (LEAST_RING, 4));
}

/// Linux `tcp_rack_detect_loss` removes segments that it marks from its list, and an undo clears only the
/// marks. Segments marked by other code stay in Linux's list, so the undo restores them here.
#[test]
fn what_is_left_out_comes_back_to_the_list_only_when_sent_again() {
    let mut board = board_of(4);
    board.mark_lost(0);
    board.mark_lost(1);
    board.leave_out(1);
    board.unmark_all_lost();
    assert_eq!((listed(&board), board.lost_out), (vec![0, 2, 3], 0));
    board.retransmitted(1, Time(9), 0, true);
    assert_eq!(listed(&board), [0, 2, 3, 1]);
    board.mark_lost(1);
    board.unmark_all_lost();
    assert_eq!(listed(&board), [0, 2, 3, 1]);
}

#[test]
fn a_segment_sent_again_while_its_retransmission_counts_leaks_as_in_linux() {
    let mut board = board_of(2);
    board.retransmitted(0, Time(5), 0, true);
    board.leak();
    board.retransmitted(0, Time(6), 0, true);
    assert_eq!(board.pipe(), 4);
    assert!(board.pop_acked(1_000).is_some());
    assert_eq!((board.retrans_out, board.pipe()), (1, 2));
    board.recount(true);
}

#[test]
fn what_a_receiver_takes_back_has_the_past_of_the_buffer_it_was_in() {
    let mut board = board_of(6);
    board.mark_lost(2);
    board.retransmitted(2, Time(9), 0, true);
    board.retransmitted(4, Time(9), 0, true); // retransmission still in flight, so not merged
    board.add_sacked_range(1, 6, &Known::default(), |board, n| _ = board.mark_sacked(n, false));
    let mut joined = Vec::new();
    board.join_sacked(|start, end| joined.push((start, end)));
    board.forget_sacks();
    assert_eq!(joined, [(1_000, 4_000), (4_000, 5_000), (5_000, 6_000)]);
    let ever = |n: u64| board.get(n).is(EVER_RETRANS);
    assert_eq!([0, 1, 2, 3, 4, 5].map(ever), [false, true, true, true, true, false]);
    assert_eq!([1, 2, 3, 4, 5].map(|n| board.get(n).xmit.0), [2, 2, 2, 9, 6]);
}

/// Mark segments [a, b) SACKed. Returns the number of buffers.
fn sack(board: &mut Scoreboard, a: u64, b: u64, before: &[(u32, u32)]) -> u32 {
    let known = Known { before: before.into(), ..Known::default() };
    board.add_sacked_range(a, b, &known, |board, n| _ = board.mark_sacked(n, false));
    board.recount(true);
    board.buffers()
}

/// Linux `tcp_shift_skb_data`, `tcp_sacktag_write_queue`.
#[test]
fn sacked_segments_share_a_buffer_as_in_linux() {
    let mut board = board_of(12);
    assert_eq!(sack(&mut board, 4, 8, &[]), 9);
    // the last part of a hole, filled from the left: the block after it had already been reported and is not examined
    assert_eq!(sack(&mut board, 3, 8, &[(4, 8)]), 9);
    // a whole hole is filled: the data after it is merged too
    board.mark_lost(9);
    board.retransmitted(9, Time(20), 0, true);
    assert_eq!(sack(&mut board, 10, 12, &[(3, 8)]), 8);
    assert_eq!(sack(&mut board, 8, 12, &[(10, 12), (3, 8)]), 5);
    // reported again, after an ACK that did not report it
    assert_eq!(sack(&mut board, 3, 12, &[]), 4);
    // retransmitted without a loss mark: not merged
    let mut board = board_of(6);
    board.retransmitted(3, Time(9), 0, true);
    assert_eq!(sack(&mut board, 1, 6, &[]), 4);
    assert!(board.pop_acked(3_000).is_some());
    while board.pop_acked(5_000).is_some() {}
    board.recount(true);
    assert_eq!(board.buffers(), 1);
    // at most 524,280 bytes in a buffer
    let mut board = board_of(600);
    assert_eq!(sack(&mut board, 1, 600, &[]), 3);
}

/// A receiver stores four blocks, so data that it reported earlier may directly follow a block, and is skipped.
#[test]
fn a_block_joins_what_it_covers_and_no_more() {
    let mut board = board_of(12);
    assert_eq!(sack(&mut board, 6, 9, &[]), 10);
    assert_eq!(
        sack(&mut board, 5, 6, &[(11, 12)]),
        10,
        "the last of a hole, beside what the receiver forgot"
    );
    assert_eq!(sack(&mut board, 4, 6, &[(5, 6)]), 10);
    assert_eq!(sack(&mut board, 4, 7, &[]), 9, "one more joins, the rest stays apart");
    assert_eq!(sack(&mut board, 4, 7, &[(4, 7)]), 9);
    assert_eq!(sack(&mut board, 7, 9, &[]), 8, "a block joins what is SACKed before it");
    assert_eq!(sack(&mut board, 4, 6, &[]), 9, "a shorter one cuts");
    assert_eq!(sack(&mut board, 4, 9, &[(4, 6)]), 8);
    // block within another block of the same ACK
    let known = Known { past: 9, ..Known::default() };
    board.add_sacked_range(5, 7, &known, |_, _| ());
    assert_eq!(board.buffers(), 8);
    // filling a hole merges the whole buffer after it
    let mut board = board_of(12);
    assert_eq!(sack(&mut board, 6, 9, &[]), 10);
    assert_eq!(sack(&mut board, 2, 4, &[(6, 9)]), 9);
    assert_eq!(sack(&mut board, 4, 6, &[(6, 9), (2, 4)]), 6);
}

/// Linux `tcp_match_skb_to_sack`, `tcp_sacktag_walk` with `dup_sack`.
#[test]
fn what_came_twice_cuts_the_buffer_that_it_is_in_as_in_linux() {
    let buffers = |board: &Scoreboard| {
        board.recount(true);
        board.buffers()
    };
    let mut board = board_of(12);
    assert_eq!(sack(&mut board, 1, 10, &[]), 4);
    board.look_at_twice(4, 5);
    assert_eq!(buffers(&board), 5, "cut behind it");
    board.look_at_twice(5, 6);
    assert_eq!(buffers(&board), 5, "the next one joins what is before it, and the cut moves");
    board.look_at_twice(4, 5);
    assert_eq!(buffers(&board), 6);
    board.look_at_twice(5, 7);
    assert_eq!(buffers(&board), 4, "a buffer that joins takes the whole one behind it along");
    board.look_at_twice(4, 5);
    board.look_at_twice(5, 10);
    assert_eq!(buffers(&board), 4, "all of the rest joins");
    board.look_at_twice(1, 2);
    assert_eq!(buffers(&board), 5, "the first has nothing before it");
    board.cut_at_twice(6);
    board.cut_at_twice(6);
    board.cut_at_twice(1);
    assert_eq!(buffers(&board), 6, "passed on the way through a block");
    // new data that arrived twice at once is not merged, even at the end of a hole
    let mut board = board_of(12);
    assert_eq!(sack(&mut board, 6, 9, &[]), 10);
    let known = Known { before: [(6, 9)].as_slice().into(), twice: 5..6, past: 0 };
    board.add_sacked_range(2, 9, &known, |board, n| _ = board.mark_sacked(n, false));
    assert_eq!(buffers(&board), 8);
}
