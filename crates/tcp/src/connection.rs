//! One endpoint of a connection: handshake and close around a [`Sender`](crate::sender::Sender) and a
//! [`Receiver`](crate::receiver::Receiver). (RFC 9293; Linux where the profile says so.)

mod application;
mod ecn;
mod handshake;
mod info;
mod keepalive;
mod packets;
mod queries;
mod receiving;
mod sending;
mod train;
mod validity;

use std::rc::Rc;

use ackclock_core::packet::Ecn;
use ackclock_core::{Flags, FlowId, HostPacing, Segment, Time};

use crate::config::{Config, EcnUse, RtoStyle};
use crate::ledger::Ledger;
use crate::receiver::Receiver;
use crate::sender::{Leaving, Sender};
use crate::ticks::{Armed, Ticks};
use ecn::{Marks, Mode};
use keepalive::Keeper;

pub use info::Info;
pub use keepalive::KeepAlive;
pub use queries::AccurateMarks;
use receiving::Receiving;
use sending::Sending;
use validity::Validity;

/// State of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing sent or received yet.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has answered a SYN.
    SynReceived,
    /// Data may pass, until both FINs are acknowledged.
    Established,
    /// Both FINs were sent and acknowledged.
    Done,
    /// Retries exhausted, or reset by the peer.
    Failed,
}

/// Segment that leaves next.
#[derive(Clone, Copy)]
pub enum Due {
    /// A segment of an established connection.
    Segment(Leaving),
    /// An ACK of the established connection: nothing is due after it but another ACK ([`Connection::ack_due`]).
    Ack(Leaving),
    /// A segment of handshake or close, if one is due.
    Unsettled,
}

/// One endpoint.
#[derive(Clone)]
pub struct Connection {
    pub(crate) state: State,
    /// Cached [`Connection::is_plain`], which each packet queries first.
    pub(crate) plain: bool,
    pub(crate) config: Rc<Config>,
    pub(crate) sender: Sending,
    pub(crate) receiver: Receiving,
    pub(crate) validity: Option<Box<Validity>>,
    /// When a segment without payload that was not acceptable was last answered, if ever.
    pub(crate) last_answer: Time,
    pub(crate) ledger: Option<Box<Ledger>>,
    pub(crate) keeper: Option<Box<Keeper>>,
    /// A SYN or SYN-ACK must leave.
    syn_due: bool,
    /// The pending one is a retransmission requested by the timer or by the peer.
    syn_again: bool,
    syn_sent_at: Time,
    syn_tries: u16,
    syn_timeouts: u16,
    syn_retransmissions: u16,
    syn_deadline: Time,
    pub(crate) has_ts: bool,
    sack: bool,
    peer_mss: u32,
    /// The ACK of the SYN-ACK leaves before any data (`connect` returns first).
    ack_first: bool,
    /// The peer's FIN had arrived when this end closed.
    pub(crate) closed_last: bool,
    /// An RST must leave.
    reset_due: bool,
    ecn: Mode,
    marks: Marks,
    /// SACK blocks take room of the payload.
    cramped: bool,
    /// Largest difference by which a timestamp may be older than the latest one, ticks of its clock (Linux
    /// TCP_PAWS_WINDOW).
    pub(crate) paws_window: i32,
    /// Segments leave one by one although they were combined (TSO).
    cuts: bool,
    /// See [`Connection::rest`].
    rests: bool,
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

    /// Make the initiating or the responding end, with settings that it shares with other connections.
    pub fn sharing(flow: FlowId, config: &Rc<Config>, responder: bool) -> Connection {
        let sender = Sending::Awake(Box::new(Sender::new(flow, responder, config)));
        let receiver = Receiving::Awake(Box::new(Receiver::of_end(config, responder)));
        Connection::of(config, responder, sender, receiver)
    }

    /// Make an end that reuses the memory of this closed one.
    pub fn renewed(self, flow: FlowId, config: &Rc<Config>, responder: bool) -> Connection {
        let (Sending::Awake(mut sender), Receiving::Awake(mut receiver)) = (self.sender, self.receiver)
        else {
            return Connection::sharing(flow, config, responder);
        };
        sender.renew(flow, responder, config);
        *receiver = Receiver::of_end(config, responder);
        Connection::of(config, responder, Sending::Awake(sender), Receiving::Awake(receiver))
    }

    /// Connection in which nothing has happened yet.
    #[inline(always)]
    fn of(config: &Rc<Config>, responder: bool, sender: Sending, receiver: Receiving) -> Connection {
        let state = if responder { State::Listen } else { State::Closed };
        Connection {
            state,
            plain: false,
            sender,
            receiver,
            validity: config.validate.map(|_| Box::default()),
            last_answer: Time::NEVER,
            ledger: config.ledger.then(Box::default),
            keeper: None,
            syn_due: false,
            syn_again: false,
            syn_sent_at: Time::ZERO,
            syn_tries: 0,
            syn_timeouts: 0,
            syn_retransmissions: 0,
            syn_deadline: Time::NEVER,
            has_ts: config.timestamps,
            sack: config.sack,
            peer_mss: 536, // RFC 9293 §3.7.1, until the peer announces another value
            ack_first: false,
            closed_last: false,
            reset_due: false,
            ecn: match config.ecn {
                _ if responder => Mode::Off,
                EcnUse::AccEcn => Mode::Pending,
                EcnUse::Ask | EcnUse::AccEcnAsk => Mode::Classic,
                EcnUse::Off | EcnUse::Accept | EcnUse::AccEcnAccept => Mode::Off,
            },
            marks: Marks::default(),
            cramped: false,
            paws_window: (config.rto_style == RtoStyle::Linux) as i32,
            cuts: false,
            rests: false,
            config: config.clone(),
        }
    }

    /// Start with this ssthresh, segments, which an earlier connection to the same destination left.
    pub fn start_at(&mut self, ssthresh: u32) {
        let window = &mut self.sender.awake().window;
        window.ssthresh = ssthresh.min(window.cwnd_clamp);
    }

    /// Set the host's treatment of late paced segments.
    pub fn set_host_pacer(&mut self, policy: HostPacing) {
        self.sender.awake().set_host_pacer(policy);
    }

    /// Packets wait in a queue of the host, which may pace them.
    pub fn queue_behind(&mut self, paces: bool) {
        self.sender.awake().queue_behind(paces);
    }

    /// Departure of the next packet, if the host's queue paces.
    pub fn departure(&self, now: Time) -> Time {
        self.sender.now().map_or(now, |sender| sender.departure(now))
    }

    /// Whether the host's queue has no room for the next packet.
    pub fn set_queue_full(&mut self, full: bool) {
        if let Some(sender) = self.sender.now_mut() {
            sender.set_queue_full(full);
        }
    }

    /// Return the packets that found the host's queue full, since the last call.
    pub fn take_refused(&mut self) -> u32 {
        self.sender.now_mut().map_or(0, Sender::take_refused)
    }

    /// A packet with `payload` bytes went into the host's queue.
    pub fn queued(&mut self, payload: u32) {
        if let Some(sender) = self.sender.now_mut() {
            sender.queued(payload);
        }
    }

    /// The packet left the host's queue. Returns whether the sender waited for that.
    pub fn left_queue(&mut self, payload: u32) -> bool {
        self.sender.now_mut().is_some_and(|sender| sender.left_queue(payload))
    }

    /// Whether the connection is established and has only common features: no marks or accounts, no probes of
    /// a silent peer, no check of arrivals, no ACK that leaves ahead of all data.
    fn is_plain(&self) -> bool {
        self.state == State::Established
            && self.ledger.is_none()
            && self.keeper.is_none()
            && self.validity.is_none()
            && self.ecn == Mode::Off
            && !self.ack_first
    }

    /// Change the state of the connection, which is then no longer plain.
    #[inline]
    fn go_to(&mut self, state: State) {
        (self.state, self.plain) = (state, false);
    }

    /// A segment arrived.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Time, seg: &Segment, ecn: Ecn) {
        debug_assert!(!self.plain || self.is_plain());
        if !self.plain | seg.flags.has(Flags::SYN | Flags::RST) {
            self.on_any_packet(now, seg, ecn);
            self.plain = self.is_plain();
        } else if !self.receiver.has_passed(seg, self.paws_window) || !self.is_stale(now, seg) {
            self.on_established(now, seg);
        }
    }

    #[inline(never)]
    fn on_any_packet(&mut self, now: Time, seg: &Segment, ecn: Ecn) {
        if let Some(ledger) = &mut self.ledger {
            ledger.received(now, seg, self.receiver.next());
            if let Some(keeper) = &mut self.keeper {
                keeper.heard(now);
            }
        }
        if self.state != State::Established || seg.flags.has(Flags::SYN | Flags::RST) {
            return self.on_packet_slow(now, seg, ecn);
        }
        if self.receiver.has_passed(seg, self.paws_window) && self.is_stale(now, seg) {
            return;
        }
        if self.validity.is_some() && !self.is_valid(now, seg) {
            return;
        }
        if self.ecn != Mode::Off && self.sender.now().is_some_and(|sender| sender.ecn.on) {
            self.on_marks(seg, ecn);
        }
        self.on_established(now, seg);
    }

    #[inline(always)]
    fn on_established(&mut self, now: Time, seg: &Segment) {
        if seg.flags.has(Flags::ACK) {
            self.sender.hear(now, seg);
            if !self.plain && self.hears_accurately() && self.sender.awake().looked_at_marks() {
                self.receiver.awake().look_at_waiting(seg.seq_len() > 0);
            }
        }
        if seg.len > 0 || seg.flags.has(Flags::FIN) {
            let (srtt, rto) = self.sender.rtt();
            self.receiver.awake().on_data(now, seg, srtt, rto, self.config.timestamp(now));
        } else {
            self.receiver.on_pure_ack(seg);
        }
        if self.sender.fin_acked() && self.receiver.fin_received() && !self.receiver.ack_due() {
            self.go_to(State::Done);
        }
    }

    /// Whether a deadline has passed.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        match (self.state, &self.keeper) {
            (State::Established, None) => {
                self.sender.now().is_some_and(|sender| sender.is_due(now)) || self.receiver.deadline() <= now
            }
            _ => self.next_deadline() <= now,
        }
    }

    /// Marks of congestion are heeded, with the precision of accurate ECN.
    #[inline]
    fn hears_accurately(&self) -> bool {
        self.ecn != Mode::Off && self.sender.now().is_some_and(|sender| sender.ecn.accurate)
    }

    /// Process expired deadlines.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        if self.syn_deadline <= now {
            self.on_syn_timer(now);
        }
        if self.state == State::Established {
            if let Some(sender) = self.sender.now_mut() {
                sender.on_timer(now);
            }
            self.receiver.on_timer(now, self.sender.rtt().1);
            if self.keeper.is_some() {
                self.on_keepalive_timer(now);
            }
            if self.sender.now().is_some_and(|sender| sender.patience.failed) {
                self.go_to(State::Failed);
            }
        }
    }

    /// The SYN, or its answer, was not answered.
    #[cold]
    fn on_syn_timer(&mut self, now: Time) {
        self.syn_timeouts += 1;
        // Linux tcp_write_timeout: those at a constant pace come on top, for the SYN
        let linear = if self.state == State::SynSent { self.config.syn_linear_timeouts } else { 0 };
        if self.syn_timeouts > self.config.syn_retries as u16 + linear as u16 {
            self.syn_deadline = Time::NEVER;
            self.go_to(State::Failed);
            return;
        }
        self.syn_due = true;
        self.syn_again = true;
        self.arm_syn(now);
    }

    /// Whether the application has to read after everything else of this instant ([`Connection::on_timer`]).
    #[inline]
    pub fn reads_later(&self) -> bool {
        self.state == State::Established && self.receiver.awaits_turn()
    }

    /// How the timer that expires at `deadline` is armed; none if it is on no wheel, as a clock of pacing or of compressed ACKs.
    pub fn on_wheel(&self, now: Time, deadline: Time) -> Option<Armed> {
        let fresh = |level| Armed { level, since: now };
        if matches!(self.state, State::SynSent | State::SynReceived) {
            return Ticks::of(&self.config).level(deadline - now).map(fresh);
        }
        let sender = self.sender.now();
        let of_data = sender.and_then(|sender| sender.on_wheel(deadline));
        of_data.or_else(|| {
            let delays = self.receiver.now()?.delays_until(deadline);
            Ticks::of(&self.config).level(deadline - now).filter(|_| delays).map(fresh)
        })
    }

    /// Time at which [`Connection::on_timer`] has to be called; `Time::NEVER` if no timer is armed.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        match self.state {
            State::Established => {
                let sending = self.sender.now().map_or(Time::NEVER, Sender::deadline);
                let at = sending.min(self.receiver.deadline());
                self.keeper.as_ref().map_or(at, |k| at.min(k.at))
            }
            State::SynSent | State::SynReceived => self.syn_deadline,
            _ => Time::NEVER,
        }
    }

    /// The deadline if it is before `before`, else any time that is not, which is found faster.
    #[inline(always)]
    pub fn deadline_before(&self, before: Time) -> Time {
        if !self.plain && (self.state != State::Established || self.keeper.is_some()) {
            return self.next_deadline();
        }
        let sending = self.sender.now().map_or(Time::NEVER, |sender| sender.deadline_before(before));
        sending.min(self.receiver.deadline())
    }

    /// Next segment to leave; call until `None` after every input.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut seg = Segment::default();
        let due = self.next_due(now)?;
        self.transmit_into(now, due, &mut seg).then_some(seg)
    }

    /// Write the due segment into `seg`; false: nothing leaves after all.
    #[inline(always)]
    pub fn transmit_into(&mut self, now: Time, due: Due, seg: &mut Segment) -> bool {
        match due {
            Due::Segment(leaving) | Due::Ack(leaving) => self.write_header(now, leaving, seg),
            Due::Unsettled => {
                if !self.poll_slow(now, seg) {
                    return false;
                }
            }
        }
        if let (false, Some(ledger)) = (self.plain, &mut self.ledger) {
            ledger.sent(now, seg);
        }
        true
    }

    /// Segment that leaves next; call until `None` after every input, and let each leave ([`Connection::transmit_into`]).
    #[inline(always)]
    pub fn next_due(&mut self, now: Time) -> Option<Due> {
        let plain = self.plain;
        if !plain && self.state != State::Established {
            return Some(Due::Unsettled);
        }
        let rare = !plain && (self.ack_first || self.hears_accurately());
        // ordered by how often connections say no
        let cramps = |sender: &Sender| (self.cramped || self.receiver.has_blocks()) && sender.may_send_new();
        if rare || self.sender.now().is_some_and(cramps) {
            if let Some(ack) = self.before_data(now) {
                return Some(Due::Segment(ack));
            }
        }
        if let Some(data) = self.sender.poll(now) {
            self.receiver.on_data_sent(now);
            return Some(Due::Segment(data));
        }
        if self.receiver.ack_due() {
            let ack = self.pure_ack(now);
            let more = !self.plain && (rare || self.keeper.is_some() || self.state != State::Established);
            return Some(if more { Due::Segment(ack) } else { Due::Ack(ack) });
        }
        if plain {
            return None;
        }
        self.keepalive_probe(now).map(Due::Segment)
    }

    /// Whether nothing leaves now, as far as a quick check shows; otherwise use [`Connection::next_due`].
    #[inline(always)]
    pub fn has_nothing(&mut self, now: Time) -> bool {
        let nothing = self.plain && !self.receiver.ack_due() && self.sender.has_nothing();
        debug_assert!(!nothing || self.next_due(now).is_none());
        nothing
    }

    /// Whether an ACK without data must leave now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.receiver.ack_due()
    }

    /// Return the room for variable options, and for the ACK of the SYN-ACK if it is due.
    #[cold]
    fn before_data(&mut self, now: Time) -> Option<Leaving> {
        self.fit_payload(now);
        let first = std::mem::take(&mut self.ack_first).then(|| self.pure_ack(now));
        self.plain = self.is_plain();
        first
    }

    /// Return a segment without data. If the peer shrank its window, the segment has the number of that
    /// window's end, which the peer accepts (Linux `tcp_acceptable_seq`).
    fn bare(&self, flags: Flags) -> Leaving {
        let Some(sender) = self.sender.now() else {
            return Leaving { seq: self.sender.standing().1, len: 0, seg_no: 0, rexmit: 0, flags };
        };
        let (end, nxt) = (sender.snd_una + sender.snd_wnd, sender.snd_nxt);
        let beyond = end < nxt && self.config.rto_style == RtoStyle::Linux;
        let taken_back = beyond && nxt - end > self.receiver.ask(Receiver::rounding);
        Leaving { seq: if taken_back { end } else { nxt }, len: 0, seg_no: 0, rexmit: 0, flags }
    }

    /// Return the complete header of a departing segment.
    #[inline(always)]
    fn write_header(&mut self, now: Time, leaving: Leaving, seg: &mut Segment) {
        let Leaving { seq, len, seg_no, rexmit, flags } = leaving;
        let ts_val = if self.has_ts { self.config.timestamp(now) } else { 0 };
        *seg = Segment { seq, len, seg_no, rexmit, flags, ts_val, has_ts: self.has_ts, ..Segment::default() };
        match !self.plain && self.hears_accurately() {
            true => self.stamp_accurately(now, seg),
            false => self.receiver.stamp(seg),
        }
    }

    /// An ACK without data leaves.
    #[inline]
    fn pure_ack(&mut self, now: Time) -> Leaving {
        if let Some(sender) = self.sender.now_mut() {
            sender.sent_ack(now);
        }
        if self.sender.fin_acked() && self.receiver.fin_received() {
            self.go_to(State::Done);
        }
        self.bare(Flags::ACK)
    }
}
