//! One endpoint of a connection: handshake and close, around a [`Sender`](crate::sender::Sender) and a
//! [`Receiver`](crate::receiver::Receiver). (RFC 9293; Linux behaviour if the profile requests it.)

mod application;
mod ecn;
mod halves;
mod handshake;
mod host;
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
use ecn::{Marks, Mode};
use keepalive::Keeper;

pub use halves::Halves;
pub use info::Info;
pub use keepalive::KeepAlive;
pub use queries::AccurateMarks;
use receiving::Receiving;
use sending::Sending;
use validity::Validity;

/// Connection state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing has been sent or received yet.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN has been sent.
    SynSent,
    /// A SYN-ACK has been sent.
    SynReceived,
    /// The handshake is complete, and at least one FIN has not been acknowledged yet.
    Established,
    /// Both FINs have been sent and acknowledged.
    Done,
    /// Retries are exhausted, or the peer has reset the connection.
    Failed,
}

/// Next segment to send.
#[derive(Clone, Copy)]
pub enum Due {
    /// A segment of an established connection.
    Segment(Leaving),
    /// An ACK of an established connection. Only another ACK can follow ([`Connection::ack_due`]).
    Ack(Leaving),
    /// A segment of the handshake or the close, if one is to be sent.
    Unsettled,
}

/// One endpoint of a connection.
#[derive(Clone)]
pub struct Connection {
    pub(crate) state: State,
    /// Cached result of [`Connection::is_plain`], which every packet needs.
    pub(crate) plain: bool,
    pub(crate) config: Rc<Config>,
    pub(crate) sender: Sending,
    pub(crate) receiver: Receiving,
    pub(crate) validity: Option<Box<Validity>>,
    /// Time at which an unacceptable segment without payload was last answered; NEVER before the first.
    pub(crate) last_answer: Time,
    pub(crate) ledger: Option<Box<Ledger>>,
    pub(crate) keeper: Option<Box<Keeper>>,
    /// A SYN or SYN-ACK must be sent.
    syn_due: bool,
    /// The pending SYN or SYN-ACK is a retransmission, requested by the timer or by the peer.
    syn_again: bool,
    syn_sent_at: Time,
    syn_tries: u16,
    syn_timeouts: u16,
    syn_retransmissions: u16,
    syn_deadline: Time,
    pub(crate) has_ts: bool,
    sack: bool,
    peer_mss: u32,
    /// The ACK of the SYN-ACK is sent before any data, because `connect` returns first.
    ack_first: bool,
    /// The peer's FIN had arrived before this end closed.
    pub(crate) closed_last: bool,
    /// An RST must be sent.
    reset_due: bool,
    ecn: Mode,
    marks: Marks,
    /// SACK blocks reduce the payload of data segments.
    cramped: bool,
    /// The payload has been adapted to the AccECN option. It stays the same for all segments that leave in a row (Linux
    /// `tcp_write_xmit` keeps its `mss_now`).
    fitted: bool,
    /// Maximum age of a timestamp relative to the latest one, in ticks of the timestamp clock (Linux
    /// TCP_PAWS_WINDOW).
    pub(crate) paws_window: i32,
    /// The NIC splits multi-segment packets (TSO).
    cuts: bool,
    /// The halves may be stored in compact form (see [`Connection::rest`]).
    rests: bool,
}

impl Connection {
    /// Return the end that sends the SYN.
    pub fn initiator(flow: FlowId, config: &Config) -> Connection {
        Connection::sharing(flow, &Rc::new(config.clone()), false)
    }

    /// Return the end that listens.
    pub fn responder(flow: FlowId, config: &Config) -> Connection {
        Connection::sharing(flow, &Rc::new(config.clone()), true)
    }

    /// Return the initiating or the responding end, with settings shared with other connections.
    pub fn sharing(flow: FlowId, config: &Rc<Config>, responder: bool) -> Connection {
        let sender = Sending::Awake(Box::new(Sender::new(flow, responder, config)));
        let receiver = Receiving::Awake(Box::new(Receiver::of_end(config, responder)));
        Connection::of(config, responder, sender, receiver)
    }

    /// Return a connection in its initial state.
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
            peer_mss: 536, // RFC 9293 §3.7.1, until the peer announces its MSS
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
            fitted: false,
            paws_window: (config.timers.rto_style == RtoStyle::Linux) as i32,
            cuts: false,
            rests: false,
            config: config.clone(),
        }
    }

    /// Set the initial ssthresh, segments, remembered from an earlier connection to the same destination.
    pub fn start_at(&mut self, ssthresh: u32) {
        let window = &mut self.sender.awake().window;
        window.ssthresh = ssthresh.min(window.cwnd_clamp);
    }

    /// Set the host's policy for paced segments that are late.
    pub fn set_host_pacer(&mut self, policy: HostPacing) {
        self.sender.awake().set_host_pacer(policy);
    }

    /// Put packets into a queue of the host, which may pace them.
    pub fn queue_behind(&mut self, paces: bool) {
        self.sender.awake().queue_behind(paces);
    }

    /// Departure time of the next packet: `now` unless the host's queue does the pacing.
    pub fn departure(&self, now: Time) -> Time {
        self.sender.now().map_or(now, |sender| sender.departure(now))
    }

    /// Set whether the host's queue is full.
    pub fn set_queue_full(&mut self, full: bool) {
        if let Some(sender) = self.sender.now_mut() {
            sender.set_queue_full(full);
        }
    }

    /// Whether the connection is established and uses no rare feature: ECN, a ledger, keep-alive, validity
    /// checks, or an ACK that must be sent before all data.
    fn is_plain(&self) -> bool {
        self.state == State::Established
            && self.ledger.is_none()
            && self.keeper.is_none()
            && self.validity.is_none()
            && self.ecn == Mode::Off
            && !self.ack_first
    }

    /// Change the state. The connection is no longer plain.
    #[inline]
    fn go_to(&mut self, state: State) {
        (self.state, self.plain) = (state, false);
    }

    /// Process an arriving segment.
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

    /// Whether accurate ECN is in use.
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
        } else if self.receiver.turn() <= now {
            self.receiver.on_timer(now, self.sender.rtt().1);
        }
    }

    /// Process a timeout of the SYN or SYN-ACK.
    #[cold]
    fn on_syn_timer(&mut self, now: Time) {
        self.syn_timeouts += 1;
        // Linux tcp_write_timeout: the SYN has additional timeouts at a constant interval.
        let linear = if self.state == State::SynSent { self.config.timers.syn_linear_timeouts } else { 0 };
        if self.syn_timeouts > self.config.timers.syn_retries as u16 + linear as u16 {
            self.syn_deadline = Time::NEVER;
            self.go_to(State::Failed);
            return;
        }
        self.syn_due = true;
        self.syn_again = true;
        self.arm_syn(now);
    }

    /// Whether the application has to read after all other events of this instant ([`Connection::on_timer`]).
    #[inline]
    pub fn reads_later(&self) -> bool {
        self.state == State::Established && self.receiver.awaits_turn()
    }

    /// Whether the application learns of packets only after all other events of their instant.
    #[inline]
    pub fn learns_later(&self) -> bool {
        self.config.application_waits
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
            State::Done => self.receiver.turn(), // a slow application still reads
            _ => Time::NEVER,
        }
    }

    /// Return the deadline if it is earlier than `before`, otherwise any time not earlier than `before`. Faster than
    /// [`Connection::next_deadline`].
    #[inline(always)]
    pub fn deadline_before(&self, before: Time) -> Time {
        if !self.plain && (self.state != State::Established || self.keeper.is_some()) {
            return self.next_deadline();
        }
        let sending = self.sender.now().map_or(Time::NEVER, |sender| sender.deadline_before(before));
        sending.min(self.receiver.deadline())
    }

    /// Return the next segment to send. Call until `None` after every input.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut seg = Segment::default();
        let due = self.next_due(now)?;
        self.transmit_into(now, due, &mut seg).then_some(seg)
    }

    /// Write the next segment into `seg`. Returns false if there was nothing to send after all.
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

    /// Return the next segment to send. Call until `None` after every input, and pass each result to [`Connection::transmit_into`].
    #[inline(always)]
    pub fn next_due(&mut self, now: Time) -> Option<Due> {
        let plain = self.plain;
        if !plain && self.state != State::Established {
            return Some(Due::Unsettled);
        }
        let rare = !plain && (self.ack_first || self.hears_accurately());
        // ordered so that the condition fails early for most connections
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
        if rare {
            self.fitted = false;
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

    /// Quick check that nothing has to be sent now. If it fails, call [`Connection::next_due`].
    #[inline(always)]
    pub fn has_nothing(&mut self, now: Time) -> bool {
        let nothing = self.plain && !self.receiver.ack_due() && self.sender.has_nothing();
        debug_assert!(!nothing || self.next_due(now).is_none());
        nothing
    }

    /// Whether an ACK without data must be sent now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.receiver.ack_due()
    }

    /// Adapt the payload to the options of the next segment. Returns the ACK of the SYN-ACK if it is to be sent now.
    #[cold]
    fn before_data(&mut self, now: Time) -> Option<Leaving> {
        if !self.fitted {
            self.fit_payload(now);
        }
        let first = std::mem::take(&mut self.ack_first).then(|| self.pure_ack(now));
        self.fitted = first.is_none() && self.hears_accurately();
        self.plain = self.is_plain();
        first
    }

    /// Return a segment without data. If the peer shrank its window, the sequence number is that of the
    /// window's right edge, which the peer accepts (Linux `tcp_acceptable_seq`).
    fn bare(&self, flags: Flags) -> Leaving {
        let Some(sender) = self.sender.now() else {
            return Leaving { seq: self.sender.standing().1, len: 0, seg_no: 0, rexmit: 0, flags };
        };
        let (end, nxt) = (sender.snd_una + sender.snd_wnd, sender.snd_nxt);
        let beyond = end < nxt && self.config.timers.rto_style == RtoStyle::Linux;
        let taken_back = beyond && nxt - end > self.receiver.ask(Receiver::rounding);
        Leaving { seq: if taken_back { end } else { nxt }, len: 0, seg_no: 0, rexmit: 0, flags }
    }

    /// Write the complete header of a segment that is being sent.
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

    /// Return an ACK without data.
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
