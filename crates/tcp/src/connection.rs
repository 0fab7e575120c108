//! One endpoint of a connection: handshake and close around a [`Sender`](crate::sender::Sender) and a
//! [`Receiver`](crate::receiver::Receiver). (RFC 9293; Linux where the profile says so.)

use std::rc::Rc;

use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::trace::{Record, RecoverySummary};
use ackclock_core::{Flags, FlowId, Pacer, Segment, Span, Time};

use crate::config::{Config, DelayedAck, EcnUse, SendLimit};
use crate::info::Stats;
use crate::keepalive::Keeper;
use crate::ledger::Ledger;
use crate::receiver::Receiver;
use crate::sender::{Sender, VarsTrace};
use crate::ticks::Ticks;
use crate::validity::Validity;

/// Where the connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Both FINs were sent and acknowledged.
    Done,
    /// Retries exhausted, or reset by the peer.
    Failed,
}

/// One endpoint.
pub struct Connection {
    pub(crate) state: State,
    config: Rc<Config>,
    ticks: Ticks,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) validity: Option<Box<Validity>>,
    pub(crate) ledger: Option<Box<Ledger>>,
    pub(crate) keeper: Option<Box<Keeper>>,
    /// A SYN or SYN-ACK must leave.
    syn_due: bool,
    /// The pending one is a retransmission asked for by the timer or by the peer.
    syn_again: bool,
    syn_sent_at: Time,
    syn_tries: u32,
    syn_timeouts: u32,
    syn_deadline: Time,
    has_ts: bool,
    sack: bool,
    peer_mss: u32,
    /// The ACK of the SYN-ACK leaves before any data (`connect` returns first).
    ack_first: bool,
    /// The peer's FIN had arrived when this end closed.
    pub(crate) closed_last: bool,
    /// An RST must leave.
    reset_due: bool,
    /// ECN is asked for, or agreed on.
    ecn: bool,
}

impl Connection {
    /// The end that sends the SYN.
    pub fn initiator(flow: FlowId, config: &Config) -> Connection {
        Connection::sharing(flow, &Rc::new(config.clone()), false)
    }

    /// The end that listens.
    pub fn responder(flow: FlowId, config: &Config) -> Connection {
        Connection::sharing(flow, &Rc::new(config.clone()), true)
    }

    /// One end or the other, with settings that it shares with other connections.
    pub fn sharing(flow: FlowId, config: &Rc<Config>, responder: bool) -> Connection {
        let state = if responder { State::Listen } else { State::Closed };
        let ticks = Ticks::new(config.tick(), config.tick_phase);
        Connection {
            state,
            ticks,
            sender: Sender::new(flow, responder, config, ticks),
            receiver: match responder && config.responder_delays_acks {
                true => {
                    Receiver::new(&Config { delayed_ack: DelayedAck::Rfc, ..Config::clone(config) }, ticks)
                }
                false => Receiver::new(config, ticks),
            },
            validity: config.validate.map(|interval| Box::new(Validity::new(interval))),
            ledger: config.ledger.then(Box::default),
            keeper: None,
            syn_due: false,
            syn_again: false,
            syn_sent_at: Time::ZERO,
            syn_tries: 0,
            syn_timeouts: 0,
            syn_deadline: Time::NEVER,
            has_ts: config.timestamps,
            sack: config.sack,
            peer_mss: 536, // RFC 9293 §3.7.1, until the peer says otherwise
            ack_first: false,
            closed_last: false,
            reset_due: false,
            ecn: config.ecn == EcnUse::Ask && !responder,
            config: config.clone(),
        }
    }

    /// Start with this ssthresh, segments: an earlier connection to the same destination has left it behind.
    pub fn start_at(&mut self, ssthresh: u32) {
        self.sender.window.ssthresh = ssthresh.min(self.sender.window.cwnd_clamp);
    }

    /// How the host treats lateness of paced segments.
    pub fn set_host_pacer(&mut self, policy: Pacer) {
        self.sender.set_host_pacer(policy);
    }

    /// Send the SYN.
    pub fn connect(&mut self, now: Time) {
        debug_assert_eq!(self.state, State::Closed);
        self.state = State::SynSent;
        self.syn_due = true;
        self.arm_syn(now);
    }

    /// The application hands over `bytes`, before or after the handshake.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.sender.write(now, bytes);
    }
    /// The application always has more.
    pub fn write_forever(&mut self, now: Time) {
        self.sender.write(now, 1 << 62);
    }
    /// Nothing beyond what was sent so far.
    pub fn stop_writing(&mut self, _now: Time) {
        self.sender.stop_writing();
    }
    /// FIN after all written data.
    pub fn close(&mut self, _now: Time) {
        self.closed_last = self.receiver.fin_received();
        self.receiver.closing = true;
        self.sender.close();
    }
    /// As [`Connection::write`]; `more` will follow (MSG_MORE), or the last byte ends a `record` (MSG_EOR).
    pub fn write_marked(&mut self, now: Time, bytes: u64, more: bool, record: bool) {
        self.sender.write_marked(now, bytes, more, record);
    }
    /// Bytes of the last write that wait for room in the send buffer: a write that blocks returns when there are none.
    pub fn unwritten(&self) -> u64 {
        self.sender.unwritten()
    }
    /// Do not wait for that room: the write returns without them.
    pub fn stop_waiting(&mut self) {
        self.sender.stop_waiting();
    }
    /// SO_SNDBUF: the send buffer takes this much, in Linux's accounting.
    pub fn set_send_buffer(&mut self, limit: SendLimit) {
        self.sender.set_send_buffer(limit);
    }
    /// What the send buffer may take now, bytes; none: anything.
    pub fn send_buffer(&self) -> Option<u64> {
        self.sender.send_buffer()
    }
    /// TCP_NOTSENT_LOWAT: bytes that may wait unsent before a write blocks.
    pub fn set_notsent_lowat(&mut self, bytes: u64) {
        self.sender.set_notsent_lowat(bytes);
    }
    /// The application takes up to `bytes` of what arrived in order; how many it got.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        self.receiver.read(now, bytes)
    }
    /// Payload bytes that wait for a [`Connection::read`].
    pub fn readable(&self) -> u64 {
        self.receiver.received() - self.receiver.taken()
    }
    /// A router dropped the segment that begins at offset `seq`, because the path carries segments of at most `mss` bytes,
    /// options included (ICMP "fragmentation needed", RFC 1191).
    pub fn on_too_big(&mut self, now: Time, seq: u64, mss: u32) {
        let (una, nxt) = self.sending();
        if self.state == State::Established && (una..=nxt).contains(&seq) {
            self.sender.shrink_segments(now, mss.saturating_sub(12 * self.has_ts as u32));
        }
    }
    /// TCP_USER_TIMEOUT; zero: none.
    pub fn set_user_timeout(&mut self, timeout: Span) {
        self.sender.set_user_timeout(timeout);
    }
    /// The application closed the socket: what is left to send is given up sooner.
    pub fn orphan(&mut self) {
        self.sender.set_orphan();
    }
    /// The device refuses every packet, and says so (or takes them again).
    pub fn set_refused(&mut self, refused: bool) {
        self.sender.set_refused(refused);
    }
    /// TCP_NODELAY.
    pub fn set_nodelay(&mut self, on: bool) {
        self.sender.set_nodelay(on);
    }
    /// TCP_CORK. Without `push`, what waits goes on waiting for an ACK or a timer (MSG_MORE).
    pub fn set_cork(&mut self, on: bool, push: bool) {
        self.sender.set_cork(on, push);
    }
    /// SO_MAX_PACING_RATE, bytes/s; `u64::MAX` = no limit. A limit turns pacing on.
    pub fn set_max_pacing_rate(&mut self, most: u64) {
        self.sender.set_max_pacing_rate(most);
    }
    /// Packets that arrive hold several segments of this size (GRO); the greatest one otherwise.
    pub fn set_segment_limit(&mut self, bytes: u32) {
        self.receiver.segment_limit = bytes;
    }
    /// How windows fit the header: the shift of window scaling, or none.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        self.receiver.fit_header(shift);
    }
    /// Break the connection off: an RST leaves, nothing else.
    pub fn reset(&mut self) {
        self.reset_due = matches!(self.state, State::SynReceived | State::Established);
        self.state = State::Failed;
    }
    /// ECN field of the IP packet that carries this segment (RFC 3168 §6.1: new data only; Linux under DCTCP: all data).
    #[inline]
    pub fn mark_of(&self, seg: &Segment) -> Ecn {
        match self.sender.ecn.on && seg.len > 0 && (seg.rexmit == 0 || self.config.exact_ecn) {
            true => Ecn::Ect0,
            false => Ecn::NotEct,
        }
    }
    /// Forget everything, without a word to the peer.
    pub fn abort(&mut self) {
        self.state = State::Done;
    }

    /// A segment arrived.
    #[inline]
    pub fn on_packet(&mut self, now: Time, seg: &Segment, ecn: Ecn) {
        if let Some(ledger) = &mut self.ledger {
            ledger.received(now, seg, self.receiver.rcv_nxt);
            if let Some(keeper) = &mut self.keeper {
                keeper.heard(now);
            }
        }
        if self.state != State::Established || seg.flags.has(Flags::SYN) || seg.flags.has(Flags::RST) {
            return self.on_packet_slow(now, seg);
        }
        if self.validity.is_some() && !self.is_valid(now, seg) {
            return;
        }
        if self.sender.ecn.on {
            self.on_marks(seg, ecn);
        }
        self.on_established(now, seg);
    }

    #[cold]
    fn on_marks(&mut self, seg: &Segment, ecn: Ecn) {
        self.sender.ecn.echo = seg.flags.has(Flags::ECE);
        self.receiver.on_marks(ecn == Ecn::Ce && seg.len > 0, seg.flags.has(Flags::CWR), seg.seq_len() > 0);
    }

    #[inline]
    fn on_established(&mut self, now: Time, seg: &Segment) {
        if seg.flags.has(Flags::ACK) {
            self.sender.on_ack(now, seg);
        }
        if seg.len > 0 || seg.flags.has(Flags::FIN) {
            let ts_now = self.sender.ts(now);
            self.receiver.on_data(now, seg, self.sender.rtt.srtt(), self.sender.rtt.rto(), ts_now);
        } else {
            self.receiver.on_pure_ack(seg);
        }
        if self.sender.fin_sent()
            && self.sender.fin_acked()
            && self.receiver.fin_received()
            && !self.receiver.ack_due()
        {
            self.state = State::Done;
        }
    }

    #[cold]
    fn on_packet_slow(&mut self, now: Time, seg: &Segment) {
        if seg.flags.has(Flags::RST) {
            self.on_reset(now, seg);
            return;
        }
        let syn = seg.flags.has(Flags::SYN);
        let state = self.state;
        match state {
            State::Listen if syn && !seg.flags.has(Flags::ACK) => {
                self.ecn =
                    self.config.ecn != EcnUse::Off && seg.flags.has(Flags::ECE) && seg.flags.has(Flags::CWR);
                self.negotiate(seg);
                self.state = State::SynReceived;
                self.syn_due = true;
                self.arm_syn(now);
            }
            State::SynReceived if syn => {
                // The SYN-ACK was lost: answer again (Linux `tcp_check_req`).
                self.syn_due = true;
                self.syn_again = true;
                self.arm_syn(now);
            }
            State::SynReceived if seg.flags.has(Flags::ACK) && seg.ack >= 1 => {
                self.establish(now, seg);
                self.on_established(now, seg);
            }
            State::SynSent if syn && seg.flags.has(Flags::ACK) => {
                self.ecn &= seg.flags.has(Flags::ECE) && !seg.flags.has(Flags::CWR);
                self.negotiate(seg);
                self.establish(now, seg);
                self.receiver.ack_now();
                self.ack_first = true;
            }
            State::Established if syn && self.may_challenge(now) => self.receiver.ack_now(),
            State::Done if seg.seq_len() > 0 => self.receiver.ack_now(),
            _ => {}
        }
    }

    /// RFC 9293 §3.10.7.4, RFC 5961 §3.2: only the exact next number resets; what else is in the window is challenged.
    fn on_reset(&mut self, now: Time, seg: &Segment) {
        let state = self.state;
        match state {
            State::SynSent if seg.flags.has(Flags::ACK) && seg.ack == 1 => self.state = State::Failed,
            State::SynSent | State::Listen | State::Closed => {}
            _ if seg.seq == self.receiver.rcv_nxt => self.state = State::Failed,
            State::Established | State::SynReceived
                if seg.seq > self.receiver.rcv_nxt
                    && seg.seq < self.receiver.right_edge()
                    && self.may_challenge(now) =>
            {
                self.receiver.ack_now()
            }
            _ => {}
        }
    }

    fn negotiate(&mut self, seg: &Segment) {
        self.receiver.on_syn();
        self.has_ts &= seg.has_ts;
        self.peer_mss = seg.syn.mss as u32;
        self.sack &= seg.syn.sack_permitted;
        self.receiver.negotiated(seg.syn.sack_permitted, seg.has_ts);
        self.receiver.ts_recent = seg.ts_val;
        self.sender.set_snd_wnd(seg.wnd);
    }

    fn establish(&mut self, now: Time, seg: &Segment) {
        self.state = State::Established;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(now);
        }
        self.syn_deadline = Time::NEVER;
        self.syn_due = false;
        let mut rtt = (self.syn_tries <= 1).then(|| now - self.syn_sent_at);
        if rtt.is_none() && self.has_ts && seg.ts_ecr > 0 {
            let ms = self.sender.ts(now).saturating_sub(seg.ts_ecr) as u64;
            rtt = Some(Span::from_ms(ms.max(1)));
        }
        if self.syn_timeouts > 1 {
            self.sender.start_from_one();
        }
        self.sender.ecn.on = self.ecn;
        // Options that were not agreed on leave their room to the payload.
        let own = self.config.payload() + 12 * (self.config.timestamps && !self.has_ts) as u32;
        let own = own.min(self.config.path_mss.saturating_sub(12 * self.has_ts as u32));
        let smss = own.min(self.peer_mss.saturating_sub(12 * self.has_ts as u32)).max(1);
        self.sender.established(now, seg.wnd, self.sack, smss, rtt);
    }

    fn arm_syn(&mut self, now: Time) {
        // Only the SYN keeps its pace; the SYN-ACK backs off from the start.
        let linear = if self.state == State::SynSent { self.config.syn_linear_timeouts as u32 } else { 0 };
        let doublings = self.syn_timeouts.saturating_sub(linear).min(16);
        let rto = (self.config.initial_rto * (1 << doublings)).min(self.config.max_rto);
        self.syn_deadline = self.ticks.expiry(now, rto);
    }

    /// A deadline may have passed.
    pub fn on_timer(&mut self, now: Time) {
        if self.syn_deadline <= now {
            self.syn_timeouts += 1;
            if self.syn_timeouts > self.config.syn_retries as u32 {
                self.syn_deadline = Time::NEVER;
                self.state = State::Failed;
                return;
            }
            self.syn_due = true;
            self.syn_again = true;
            self.arm_syn(now);
        }
        if self.state == State::Established {
            self.sender.on_timer(now);
            self.receiver.on_timer(now, self.sender.rtt.rto());
            if self.keeper.is_some() {
                self.on_keepalive_timer(now);
            }
            if self.sender.failed {
                self.state = State::Failed;
            }
        }
    }

    /// When [`Connection::on_timer`] wants to be called; `Time::NEVER` if no timer is armed.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        match self.state {
            State::Established => {
                let at = self.sender.deadline().min(self.receiver.deadline());
                self.keeper.as_ref().map_or(at, |k| at.min(k.at))
            }
            State::SynSent | State::SynReceived => self.syn_deadline,
            _ => Time::NEVER,
        }
    }

    /// Next segment to leave; call until `None` after every input.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        match self.ledger.is_none() {
            true => self.poll_segment(now),
            false => self.poll_booked(now),
        }
    }

    #[cold]
    fn poll_booked(&mut self, now: Time) -> Option<Segment> {
        let seg = self.poll_segment(now);
        if let (Some(ledger), Some(seg)) = (&mut self.ledger, &seg) {
            ledger.sent(now, seg);
        }
        seg
    }

    #[inline]
    fn poll_segment(&mut self, now: Time) -> Option<Segment> {
        if self.state != State::Established {
            return self.poll_slow(now);
        }
        if std::mem::take(&mut self.ack_first) {
            return Some(self.pure_ack(now));
        }
        if let Some(mut seg) = self.sender.poll(now) {
            self.receiver.on_data_sent(now);
            self.receiver.stamp(&mut seg);
            return Some(self.timestamped(seg));
        }
        if self.receiver.ack_due() {
            return Some(self.pure_ack(now));
        }
        self.keeper.as_ref()?;
        self.keepalive_probe(now)
    }

    /// Whether the segment polled last and the next one are parts of one packet for the device (TSO); only told under
    /// `push_marks`.
    pub fn continues(&self) -> bool {
        self.sender.continues()
    }

    pub(crate) fn timestamped(&self, mut seg: Segment) -> Segment {
        if !self.has_ts {
            (seg.has_ts, seg.ts_val, seg.ts_ecr) = (false, 0, 0);
        }
        seg
    }

    #[inline]
    fn pure_ack(&mut self, now: Time) -> Segment {
        self.sender.stats.acks_sent += 1;
        let mut seg = Segment { seq: self.sender.snd_nxt, flags: Flags::ACK, ..Segment::default() };
        if self.has_ts {
            seg.has_ts = true;
            seg.ts_val = self.sender.ts(now);
        }
        self.receiver.stamp(&mut seg);
        if self.sender.fin_sent() && self.sender.fin_acked() && self.receiver.fin_received() {
            self.state = State::Done;
        }
        seg
    }

    #[cold]
    fn poll_slow(&mut self, now: Time) -> Option<Segment> {
        if std::mem::take(&mut self.reset_due) {
            let mut seg =
                Segment { seq: self.sender.snd_nxt, flags: Flags::RST | Flags::ACK, ..Segment::default() };
            if self.has_ts {
                seg.has_ts = true;
                seg.ts_val = self.sender.ts(now);
            }
            self.receiver.stamp(&mut seg);
            return Some(seg);
        }
        if self.state == State::Done && self.receiver.ack_due() {
            return Some(self.pure_ack(now)); // the peer's FIN again: our last ACK was lost
        }
        if !self.syn_due {
            let challenged = self.state == State::SynReceived && self.receiver.ack_due();
            return challenged.then(|| self.pure_ack(now));
        }
        self.syn_due = false;
        let again = std::mem::take(&mut self.syn_again);
        if again {
            self.sender.stats.syn_retransmissions += 1;
            // Whoever drops ECN set-up packets does not drop this one (Linux `tcp_ecn_fallback`).
            self.ecn &= self.state == State::SynReceived;
        }
        self.syn_tries += 1;
        if self.syn_tries == 1 {
            self.syn_sent_at = now;
        }
        let syn = SynOptions {
            mss: (self.config.payload() + 12 * self.config.timestamps as u32).min(u16::MAX as u32) as u16,
            wscale: window_scale(self.config.receive_buffer),
            sack_permitted: self.sack,
        };
        let mut seg = Segment { flags: Flags::SYN, syn, ..Segment::default() };
        if self.has_ts {
            seg.has_ts = true;
            seg.ts_val = self.sender.ts(now);
        }
        self.receiver.stamp(&mut seg);
        if self.state == State::SynReceived {
            seg.flags |= Flags::ACK;
            if self.ecn {
                seg.flags |= Flags::ECE;
            }
        } else {
            seg.ack = 0;
            if self.ecn {
                seg.flags |= Flags::ECE | Flags::CWR;
            }
        }
        Some(seg)
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }
    /// Whether the handshake is over at this end.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established | State::Done)
    }
    /// Payload bytes delivered in order to the application.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }
    /// The peer's FIN arrived in order.
    pub fn peer_closed(&self) -> bool {
        self.receiver.fin_received()
    }
    /// The application has closed this end.
    pub fn is_closing(&self) -> bool {
        self.sender.closing()
    }
    /// Payload bytes that the application wrote so far.
    pub fn written(&self) -> u64 {
        self.sender.written()
    }
    /// Payload bytes of ours cumulatively acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.sender.acked()
    }
    /// May be dropped: closed on both sides, or failed.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done | State::Failed)
    }
    /// Gave up, or was reset.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Running sums.
    pub fn stats(&self) -> &Stats {
        &self.sender.stats
    }

    /// Where the receiving half stands: next offset expected, bound of the window offered, size of the peer's segments.
    pub fn receiving(&self) -> (u64, u64, u32) {
        (self.receiver.rcv_nxt, self.receiver.offered(), self.receiver.rcv_mss())
    }

    /// Where the sending half stands: first offset not acknowledged, next one to send.
    pub fn sending(&self) -> (u64, u64) {
        (self.sender.snd_una, self.sender.snd_nxt)
    }

    /// Switch the per-ACK trace on or off.
    pub fn set_trace(&mut self, on: bool) {
        self.sender.records = on.then(Vec::new);
    }
    /// Write the controller's variables down, at most one row in `interval`.
    pub fn trace_controller(&mut self, interval: Span) {
        self.sender.trace_vars(interval);
    }
    /// Take the trace of the controller's variables.
    pub fn take_controller_trace(&mut self) -> Option<Box<VarsTrace>> {
        self.sender.vars.take()
    }
    /// The seed of the controller's random numbers.
    pub fn seed_controller(&mut self, seed: u64) {
        self.sender.seed(seed);
    }
    /// Drain the trace.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.sender.records.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// Drain the finished episodes of recovery.
    pub fn take_recoveries(&mut self) -> Vec<RecoverySummary> {
        std::mem::take(&mut self.sender.recoveries)
    }
    /// The run ends: an episode of recovery under way gets its line too.
    pub fn finish(&mut self, now: Time) {
        self.sender.finish(now);
    }
}

/// Least shift that lets 16 bits express this buffer (RFC 7323 §2.3: at most 14).
pub(crate) fn window_scale(buffer: u64) -> u8 {
    (0..14).find(|&s| 65_535u64 << s >= buffer).unwrap_or(14)
}
