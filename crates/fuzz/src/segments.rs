//! An endpoint against an arbitrary peer: valid and invalid segments, application calls, and the passage of time, in
//! any order. Nothing may panic. The counters of sender and receiver must equal a recount. An acknowledgment is never
//! withdrawn, and only data that has been written is sent.

use ackclock_cc::controller::{Recipe, REGISTRY};
use ackclock_cc::{recovery, Rule};
use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::trace::CaState;
use ackclock_core::{Flags, SackBlock, Segment, Span, Time};
use ackclock_tcp::{Buffers, Config, Connection, EcnUse, KeepAlive, Pacing, SendLimit, State, Tso, PROFILES};

use crate::Draw;

/// Maximum number of segments written at once.
const MOST_WRITTEN: u64 = 300;
/// Maximum window in segments if the application writes endless data.
const MOST_IN_WINDOW: u32 = 1_000;
/// Maximum number of segments polled after one input; all inputs together write less.
const MOST_POLLED: u32 = 100_000;
/// Maximum number of timer expiries at one instant; each must arm the timer for a later time.
const MOST_TIMERS: u32 = 1_000;
/// Maximum number of inputs per connection.
const MOST_INPUTS: u32 = 300;
/// Maximum send buffer set by the application, bytes.
const MOST_BUFFERED: u64 = 1 << 20;
/// Number of polled and recounted segments after which an input is cut off. A few large windows would otherwise take
/// as long as thousands of other inputs.
const MOST_WORK: u64 = 10_000;

/// Outcome of an input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Segments sent by the endpoint.
    pub left: u32,
    /// Whether the handshake has completed.
    pub established: bool,
}

/// Read the bytes as settings and inputs, and apply them to a connection.
pub fn play(data: &[u8]) -> Outcome {
    let mut draw = Draw::new(data);
    let config = config(&mut draw);
    let mut end = match draw.flag() {
        true => End::new(Connection::responder(0, &config), &config, draw.byte()),
        false => {
            let mut end = End::new(Connection::initiator(0, &config), &config, draw.byte());
            end.conn.connect(end.now);
            end
        }
    };
    end.settle();
    for _ in 0..MOST_INPUTS {
        if draw.is_empty() || end.work > MOST_WORK {
            break;
        }
        end.input(&mut draw);
        end.settle();
    }
    end.conn.finish(end.now);
    end.outcome
}

fn config(draw: &mut Draw) -> Config {
    let mut config = Config::profile(draw.one(PROFILES).0).expect("invariant: a known profile");
    let (flags, more) = (draw.byte(), draw.byte());
    let on = |bit: u8| flags >> bit & 1 == 1;
    if on(0) {
        config.timestamps ^= true;
    }
    if on(1) {
        config.sack ^= true;
    }
    if on(2) {
        config.sending.controller =
            Recipe::by_name(draw.one(REGISTRY).0).expect("invariant: a known controller");
    }
    if on(3) {
        config.loss.rule = Rule::by_name(draw.one(recovery::REGISTRY).0).expect("invariant: a known rule");
    }
    if on(4) {
        let limit = draw.flag().then(|| SendLimit {
            bytes: 4_608 + draw.number(1448) as u64 % MOST_BUFFERED,
            most: MOST_BUFFERED,
        });
        let tso = draw.flag().then_some(Tso::LINUX);
        config.sending.buffers = Some(Buffers { limit, tso, ..Buffers::UNLIMITED });
    }
    if on(5) {
        config.smss = 1 + draw.number(536) % 9_000;
    }
    if on(6) {
        config.timers.hz = *draw.one(&[0, 100, 250, 1000]);
        config.timers.tick_phase = config.tick().0 / 2;
    }
    if on(7) {
        config.sending.pacing = Pacing { on: true, ..config.sending.pacing };
    }
    let on = |bit: u8| more >> bit & 1 == 1;
    config.ecn = if on(0) { EcnUse::Ask } else { EcnUse::Accept };
    config.ledger = on(1);
    config.receiving.explicit_reads = on(2);
    if on(3) {
        config.receiving.receive_buffer = 1 + draw.number(1448) as u64;
        config.receiving.first_buffer = config.receiving.first_buffer.min(config.receiving.receive_buffer);
        config.receiving.initial_rwnd =
            config.receiving.initial_rwnd.min(config.receiving.receive_buffer as u32);
    }
    if on(4) {
        config.sending.writer = Some(SendLimit { bytes: 16_384, most: 4 << 20 });
    }
    if on(5) {
        config.switches.initial_ssthresh = 2 + draw.byte() as u32;
    }
    config.loss.tlp ^= on(6);
    config.loss.frto ^= on(7);
    config.validate = Some(Span::from_ms(500)); // for a peer that is not one of this engine's endpoints
    config
}

/// The endpoint, and its expected state.
struct End {
    conn: Connection,
    now: Time,
    /// First unacknowledged offset and next expected offset, as last observed.
    una: u64,
    expected: u64,
    /// Bytes written so far; `None` for an endless amount.
    written: Option<u64>,
    closed: bool,
    /// Timestamp of the peer's last segment.
    stamp: u32,
    shift: u8,
    explicit_reads: bool,
    /// Whether the application may write an endless amount. The peer's windows are then limited, so that an input takes
    /// little time.
    endless: bool,
    work: u64,
    outcome: Outcome,
}

impl End {
    fn new(conn: Connection, config: &Config, kind: u8) -> End {
        let now = Time(1_024_000_000_000);
        let (shift, endless) = ((kind & 15).min(14), kind & 16 != 0);
        End {
            conn,
            now,
            una: 1,
            expected: 0,
            written: Some(0),
            closed: false,
            stamp: 1,
            shift,
            explicit_reads: config.receiving.explicit_reads,
            endless,
            work: 0,
            outcome: Outcome::default(),
        }
    }

    fn input(&mut self, draw: &mut Draw) {
        match draw.byte() % 16 {
            0..=7 => self.segment(draw),
            8 => self.pass(Span(draw.number(1_000_000) as u64)),
            9 => self.pass(Span::from_ms(draw.word() as u64 * 4)),
            10 => self.next_timer(),
            11 => self.write(draw),
            12 => self.acknowledge(draw),
            13 => self.deliver_next(draw),
            _ => self.application(draw),
        }
    }

    /// Send the endpoint a segment with arbitrary header values, close to the expected ones or far from them.
    fn segment(&mut self, draw: &mut Draw) {
        let (una, nxt) = self.conn.sending();
        let rcv = self.conn.receiving().0;
        let near = |of: u64, by: u32| of.saturating_add_signed(by as i32 as i64);
        let kind = draw.byte();
        let flags = match kind % 4 {
            0..=2 => Flags::ACK,
            _ => Flags(u16::from(draw.byte()) & !Flags::URG.0),
        };
        let seq = if kind & 4 != 0 { near(rcv, draw.number(1000)) } else { rcv };
        let ack = match kind >> 3 & 3 {
            0 => una,
            1 => nxt,
            2 => una + (nxt - una) * draw.byte() as u64 / 255,
            _ => near(una, draw.number(1000)),
        };
        let mut seg = Segment {
            seq: if flags.has(Flags::SYN) { 0 } else { seq },
            ack,
            flags,
            len: if kind & 32 != 0 { draw.number(1000) & 0xffff } else { 0 },
            wnd: if kind & 64 != 0 { self.window(draw.word()) } else { self.window(u16::MAX) },
            has_ts: draw.flag(),
            syn: SynOptions {
                mss: draw.one(&[1460u16, 536, 48, 9000, 65_535]).to_owned(),
                wscale: self.shift,
                sack_permitted: kind & 1 == 0,
            },
            ..Segment::default()
        };
        if seg.flags.has(Flags::SYN) {
            (seg.len, seg.syn.sack_permitted) = (0, kind & 4 != 0);
        }
        if seg.has_ts {
            self.stamp = self.stamp.wrapping_add(draw.byte() as i8 as u32);
            seg.ts_val = self.stamp;
            seg.ts_ecr = ((self.now.0 / 1_000_000) as u32).wrapping_sub(draw.byte() as u32);
        }
        if kind & 128 != 0 {
            for _ in 0..=draw.byte() % 4 {
                let edge = |draw: &mut Draw| match draw.byte() % 4 {
                    0 => draw.long() as i32,
                    _ => (near(0, 1 + draw.byte() as u32) * self.size() as u64) as i32,
                };
                let start = edge(draw);
                seg.sack.push(SackBlock { start, end: edge(draw) });
            }
        }
        let ecn = *draw.one(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
        self.conn.on_packet(self.now, &seg, ecn);
    }

    /// Acknowledge some of the outstanding data, or respond to a SYN, as a valid peer would.
    fn acknowledge(&mut self, draw: &mut Draw) {
        let (una, nxt) = self.conn.sending();
        let kind = draw.byte();
        let syn = SynOptions { mss: 1460, wscale: self.shift, sack_permitted: true };
        let mut seg = Segment { wnd: self.window(u16::MAX), syn, has_ts: true, ..Segment::default() };
        self.stamp = self.stamp.wrapping_add(1);
        (seg.ts_val, seg.ts_ecr) = (self.stamp, (self.now.0 / 1_000_000) as u32);
        match self.conn.state() {
            State::Listen => seg.flags = Flags::SYN | Flags::ECE | Flags::CWR,
            State::SynSent => (seg.flags, seg.ack) = (Flags::SYN | Flags::ACK | Flags::ECE, 1),
            _ => {
                let whole = (nxt - una) / self.size() as u64;
                let some = whole * (kind % 5) as u64 / 4 * self.size() as u64;
                (seg.flags, seg.seq, seg.ack) = (Flags::ACK, self.conn.receiving().0, una + some);
                if kind & 64 != 0 && whole > 2 {
                    let block = |n: u64| (n * self.size() as u64) as i32;
                    let first = 1 + draw.byte() as u64 % (whole - 1);
                    let last = first + draw.byte() as u64 % (whole - first) + 1;
                    seg.ack = una;
                    seg.sack.push(SackBlock { start: block(first), end: block(last) });
                }
                if kind & 128 != 0 {
                    seg.flags |= Flags::ECE;
                }
            }
        }
        self.conn.on_packet(self.now, &seg, Ecn::NotEct);
    }

    /// Send the next bytes, or bytes after a hole, as a valid peer would.
    fn deliver_next(&mut self, draw: &mut Draw) {
        let kind = draw.byte();
        let rcv = self.conn.receiving().0;
        let hole = if kind & 1 == 1 { draw.byte() as u64 * 1448 } else { 0 };
        self.stamp = self.stamp.wrapping_add(1);
        let seg = Segment {
            seq: rcv + hole,
            ack: self.conn.sending().0,
            len: if kind & 2 == 2 { draw.byte() as u32 } else { 1448 },
            flags: if kind & 12 == 12 { Flags::ACK | Flags::FIN } else { Flags::ACK },
            wnd: self.window(u16::MAX),
            has_ts: true,
            ts_val: self.stamp,
            ts_ecr: (self.now.0 / 1_000_000) as u32,
            ..Segment::default()
        };
        self.conn.on_packet(self.now, &seg, if kind & 16 != 0 { Ecn::Ce } else { Ecn::Ect0 });
    }

    fn write(&mut self, draw: &mut Draw) {
        let bytes = draw.number(1448) as u64 % (MOST_WRITTEN * self.size() as u64);
        match draw.byte() % 8 {
            _ if self.closed => {}
            0 if self.endless && self.written.is_some() => {
                self.conn.write_forever(self.now);
                self.written = None;
            }
            1 => self.conn.stop_writing(self.now),
            kind => {
                let (more, record) = (kind == 2, kind == 3);
                match more || record {
                    true => self.conn.write_marked(self.now, bytes, more, record),
                    false => self.conn.write(self.now, bytes),
                }
                self.written = self.written.map(|written| written + bytes);
            }
        }
    }

    fn application(&mut self, draw: &mut Draw) {
        let (now, bytes) = (self.now, draw.number(1448));
        match draw.byte() % 18 {
            0 => {
                self.conn.close(now);
                self.closed = true;
            }
            1..=3 if self.explicit_reads => {
                let readable = self.conn.readable();
                let got = self.conn.read(now, bytes as u64);
                assert!(got == readable.min(bytes as u64), "read {got} of {readable}");
            }
            4 => self.conn.set_nodelay(bytes & 1 == 1),
            5 => self.conn.set_cork(bytes & 1 == 1, bytes & 2 == 2),
            6 => self.conn.on_too_big(now, self.conn.sending().0 + bytes as u64 % 3_000, 48 + bytes % 1500),
            7 => self.conn.set_user_timeout(Span::from_ms(bytes as u64)),
            8 => self.conn.set_keepalive(
                now,
                (bytes & 1 == 1).then(|| KeepAlive {
                    idle: Span::from_secs(1 + bytes as u64 % 32_767),
                    interval: Span::from_secs(1 + bytes as u64 % 100),
                    probes: 1 + draw.byte() % 127,
                }),
            ),
            9 => self.conn.set_send_buffer(SendLimit::fixed(4_608 + bytes as u64 % MOST_BUFFERED)),
            10 => self.conn.set_notsent_lowat(1 + bytes as u64),
            11 => self.conn.set_max_pacing_rate(if bytes == 0 { u64::MAX } else { bytes as u64 }),
            12 => self.conn.set_segment_limit(bytes.max(1)),
            13 => self.conn.stop_waiting(),
            14 => self.conn.push_written(),
            15 => self.conn.set_refused(bytes & 1 == 1),
            16 => self.conn.orphan(),
            17 if bytes == 0 => self.conn.reset(),
            _ => {}
        }
    }

    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        for expired in 0.. {
            let at = self.conn.next_deadline();
            if at > until || expired == MOST_TIMERS {
                break;
            }
            self.now = self.now.max(at);
            self.expire();
        }
        self.now = self.now.max(until);
    }

    fn next_timer(&mut self) {
        let at = self.conn.next_deadline();
        if at < Time::NEVER {
            self.now = self.now.max(at);
            self.expire();
        }
    }

    /// Process due timers, and check that none fires repeatedly at one instant.
    fn expire(&mut self) {
        for again in 0.. {
            self.conn.on_timer(self.now);
            self.settle();
            if self.conn.next_deadline() > self.now {
                return;
            }
            assert!(again < MOST_TIMERS, "a timer is due again and again at {:?}", self.now);
        }
    }

    fn window(&self, header: u16) -> u32 {
        let window = (header as u32) << self.shift;
        match self.endless {
            true => window.min(MOST_IN_WINDOW * self.size()),
            false => window,
        }
    }

    fn size(&self) -> u32 {
        self.conn.info().smss.max(1)
    }

    /// Poll all segments to be sent, and check all invariants.
    fn settle(&mut self) {
        for polled in 0.. {
            let Some(mut seg) = self.conn.poll_transmit(self.now) else { break };
            assert!(polled < MOST_POLLED, "segments without end: {seg:?}, {:?}", self.conn.info());
            let _ = self.conn.complete_packet(self.now, &mut seg);
            self.outcome.left += 1;
            self.work += 1;
            let (_, nxt) = self.conn.sending();
            assert!(seg.seq + seg.seq_len() <= nxt.max(1), "beyond what was sent: {seg:?}");
            assert!(seg.rexmit == 0 || seg.len > 0 || seg.flags.has(Flags::FIN), "{seg:?}");
            if seg.flags.has(Flags::ACK) && !seg.flags.has(Flags::SYN) {
                assert!(seg.ack <= self.conn.receiving().0, "{seg:?}");
            }
            if let Some(written) = self.written.filter(|_| seg.len > 0) {
                assert!(seg.seq + seg.len as u64 <= 1 + written, "beyond what was written: {seg:?}");
            }
        }
        self.outcome.established |= self.conn.is_established();
        let (una, nxt) = self.conn.sending();
        let expected = self.conn.receiving().0;
        assert!(self.una <= una && una <= nxt, "{una} of {nxt} after {}", self.una);
        assert!(self.expected <= expected, "expected {expected} after {}", self.expected);
        (self.una, self.expected) = (una, expected);
        // RFC 6937's CRB may permit no transmission until more is delivered; a timer must then be armed
        let info = self.conn.info();
        let reduces = matches!(info.ca_state, CaState::Recovery | CaState::Cwr);
        let waits = reduces && info.unacked > 0 && self.conn.next_deadline() < Time::NEVER;
        assert!(info.cwnd >= 1 || waits || self.conn.is_done(), "{info:?}");
        self.work += info.unacked as u64;
        self.conn.recount();
    }
}
