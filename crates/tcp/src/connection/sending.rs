//! The sending half of a connection, in compact form before the handshake and at an end that only receives.
//! In a scenario with many bulk flows, half of all ends only receive.

use std::rc::Rc;

use ackclock_core::prefetch::prefetch_all;
use ackclock_core::{FlowId, Segment, Span, Time};

use super::{Connection, Mode, State};
use crate::config::{Config, RtoStyle};
use crate::sender::{Leaving, Sender};
use crate::stats::Stats;

/// Sending half, full or compact.
#[derive(Clone)]
pub(crate) enum Sending {
    /// Full sender.
    Awake(Box<Sender>),
    /// Compact form: no data to send, or no handshake yet.
    Resting(Box<Resting>),
}

/// Inputs of a sender that has not sent anything. Waking it replays them.
#[derive(Clone)]
pub(crate) struct Resting {
    flow: FlowId,
    responder: bool,
    /// The writer is suspended (see [`Sender::suspend_writer`]).
    suspended: bool,
    config: Rc<Config>,
    past: Past,
    /// Smoothed RTT after the handshake, and RTO.
    srtt: Span,
    rto: Span,
    /// The peer's current window, and its largest so far, bytes.
    snd_wnd: u32,
    greatest_wnd: u32,
    /// SND.WL1 (RFC 9293): sequence number of the segment that last updated the window.
    snd_wl1: u64,
}

/// Events so far.
#[derive(Clone)]
enum Past {
    /// Application calls made before the peer's SYN arrived.
    Calls(Vec<Call>),
    /// Handshake result; the application has made no call.
    Handshake(Established),
}

/// Handshake result, for [`Sender::established`].
#[derive(Clone, Copy)]
pub(crate) struct Established {
    pub at: Time,
    /// Start from a cwnd of one segment (see [`Sender::start_from_one`]).
    pub from_one: bool,
    pub wnd: u32,
    pub sack: bool,
    /// Payload and option bytes in a segment.
    pub room: (u32, u32),
    pub rtt: Option<Span>,
}

/// Application calls that a resting sender records; every application makes them.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Write(Time, u64),
    StopWriting,
    Close,
}

impl Call {
    fn apply(self, sender: &mut Sender) {
        match self {
            Call::Write(now, bytes) => sender.write(now, bytes),
            Call::StopWriting => sender.stop_writing(),
            Call::Close => sender.close(),
        }
    }
}

/// Maximum number of recorded calls; one more wakes the sender.
const MOST_CALLS: usize = 4;

impl Resting {
    fn before_handshake(sender: &Sender, config: &Rc<Config>) -> Resting {
        let (flow, responder) = sender.whose();
        Resting {
            flow,
            responder,
            suspended: sender.writer_is_suspended(),
            config: config.clone(),
            past: Past::Calls(Vec::new()),
            srtt: sender.rtt.srtt(),
            rto: sender.rtt.rto(),
            snd_wnd: 0,
            greatest_wnd: 0,
            snd_wl1: responder as u64,
        }
    }

    /// Record the peer's window. Returns false unless the ACK acknowledges only the SYN and carries no SACK blocks.
    #[inline]
    fn hear(&mut self, seg: &Segment) -> bool {
        // Same rule as in Sender::hears_window, for an ACK of no new data.
        let wider =
            seg.wnd > self.snd_wnd || seg.wnd == 0 || self.config.timers.rto_style == RtoStyle::Rfc6298;
        if seg.seq > self.snd_wl1 || seg.seq == self.snd_wl1 && wider {
            (self.snd_wnd, self.snd_wl1) = (seg.wnd, seg.seq);
            self.greatest_wnd = self.greatest_wnd.max(seg.wnd);
        }
        seg.ack == 1 && seg.sack.is_empty()
    }

    /// Record an application call. Returns false if the SYN has already arrived or too many calls have been recorded.
    fn notes(&mut self, call: Call) -> bool {
        match &mut self.past {
            Past::Calls(calls) if self.snd_wnd == 0 && calls.len() < MOST_CALLS => {
                calls.reserve_exact(1);
                calls.push(call);
                true
            }
            _ => false,
        }
    }

    /// Whether the application has made a call.
    fn has_calls(&self) -> bool {
        matches!(&self.past, Past::Calls(calls) if !calls.is_empty())
    }

    fn wake(&self) -> Box<Sender> {
        let mut sender = self.woken();
        sender.suspend_writer(self.suspended);
        sender
    }

    fn woken(&self) -> Box<Sender> {
        let mut sender = Box::new(Sender::new(self.flow, self.responder, &self.config));
        let Established { at, from_one, wnd, sack, room, rtt } = match &self.past {
            Past::Handshake(established) => *established,
            Past::Calls(calls) => {
                calls.iter().for_each(|call| call.apply(&mut sender));
                sender.set_snd_wnd(self.snd_wnd);
                return sender;
            }
        };
        if from_one {
            sender.start_from_one();
        }
        sender.agree_on_ecn(false);
        sender.established(at, wnd, sack, room, rtt);
        sender.offered(self.greatest_wnd, self.snd_wl1);
        sender.offered(self.snd_wnd, self.snd_wl1);
        let leaves = sender.poll(at);
        debug_assert!(leaves.is_none());
        sender
    }
}

impl Sending {
    /// Prefetch the state that an ACK needs.
    #[inline]
    pub fn prefetch_resting(&self) {
        if let Sending::Resting(resting) = self {
            prefetch_all(&**resting);
        }
    }

    /// Return the sender, waking it if necessary.
    #[inline]
    pub fn awake(&mut self) -> &mut Sender {
        if let Sending::Resting(resting) = self {
            *self = Sending::Awake(resting.wake());
        }
        match self {
            Sending::Awake(sender) => sender,
            Sending::Resting(_) => unreachable!("invariant: woken above"),
        }
    }

    /// Answer a rare query; a resting sender answers through a woken copy.
    pub fn ask<T>(&self, question: impl FnOnce(&Sender) -> T) -> T {
        match self {
            Sending::Awake(sender) => question(sender),
            Sending::Resting(resting) => question(&resting.wake()),
        }
    }

    /// Record or apply an application call.
    pub fn call(&mut self, call: Call) {
        if let Sending::Resting(resting) = self {
            if resting.notes(call) {
                return;
            }
        }
        call.apply(self.awake());
    }

    /// Suspend the writer, or resume it.
    pub fn suspend_writer(&mut self, suspended: bool) {
        match self {
            Sending::Awake(sender) => sender.suspend_writer(suspended),
            Sending::Resting(resting) => resting.suspended = suspended,
        }
    }

    /// Record the window from the peer's SYN.
    pub fn on_syn(&mut self, wnd: u32) {
        match self {
            Sending::Awake(sender) => sender.set_snd_wnd(wnd),
            Sending::Resting(resting) => resting.snd_wnd = wnd,
        }
    }

    /// Process an ACK.
    #[inline(always)]
    pub fn hear(&mut self, now: Time, seg: &Segment) {
        match self {
            Sending::Awake(sender) => sender.hear(now, seg),
            Sending::Resting(resting) => {
                if !resting.hear(seg) {
                    self.awake().hear(now, seg);
                }
            }
        }
    }

    /// Quick check that there is nothing to send.
    #[inline(always)]
    pub fn has_nothing(&mut self) -> bool {
        match self {
            Sending::Awake(sender) => sender.has_nothing(),
            Sending::Resting(_) => true,
        }
    }

    /// Return the next segment to send, if any.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<Leaving> {
        match self {
            Sending::Awake(sender) => sender.poll(now),
            Sending::Resting(_) => None,
        }
    }

    #[inline]
    pub fn stats(&self) -> &Stats {
        static NONE: Stats = Stats::NONE;
        self.now().map_or(&NONE, |sender| &sender.stats)
    }

    /// Smoothed RTT and RTO.
    #[inline]
    pub fn rtt(&self) -> (Span, Span) {
        match self {
            Sending::Awake(sender) => (sender.rtt.srtt(), sender.rtt.rto()),
            Sending::Resting(resting) => (resting.srtt, resting.rto),
        }
    }

    /// The peer's receive window, bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        match self {
            Sending::Awake(sender) => sender.snd_wnd,
            Sending::Resting(resting) => resting.snd_wnd as u64,
        }
    }

    /// First unacknowledged offset, and next offset to send.
    #[inline]
    pub fn standing(&self) -> (u64, u64) {
        match self {
            Sending::Awake(sender) => (sender.snd_una, sender.snd_nxt),
            Sending::Resting(_) => (1, 1),
        }
    }

    /// Return the sender if it is awake. A resting one has no timer, has sent no FIN and does not use ECN.
    #[inline]
    pub fn now(&self) -> Option<&Sender> {
        match self {
            Sending::Awake(sender) => Some(sender),
            Sending::Resting(_) => None,
        }
    }

    #[inline]
    pub fn now_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Sending::Awake(sender) => Some(sender),
            Sending::Resting(_) => None,
        }
    }

    /// Payload bytes that the application wrote.
    pub fn written(&self) -> u64 {
        match self {
            Sending::Awake(sender) => sender.written(),
            Sending::Resting(resting) if !resting.has_calls() => 0,
            Sending::Resting(resting) => resting.wake().written(),
        }
    }

    /// Whether the application has closed this end.
    #[inline]
    pub fn is_closing(&self) -> bool {
        match self {
            Sending::Awake(sender) => sender.stream.is_closed(),
            Sending::Resting(resting) if !resting.has_calls() => false,
            Sending::Resting(resting) => resting.wake().stream.is_closed(),
        }
    }

    #[inline]
    pub fn fin_acked(&self) -> bool {
        self.now().is_some_and(Sender::fin_acked)
    }
}

impl Connection {
    /// Declare that data will probably flow in one direction only, so that both halves use compact forms until
    /// they are needed. Called before the peer's SYN arrives, by applications that set no socket options.
    pub fn rest(&mut self) {
        self.rests = matches!(self.state, State::Closed | State::Listen | State::SynSent);
        self.rests &= self.config.rests;
        if !self.rests || self.ecn != Mode::Off || self.validity.is_some() {
            return;
        }
        if let Some(sender) = self.sender.now().filter(|sender| sender.is_untouched()) {
            let resting = Resting::before_handshake(sender, &self.config);
            self.sender = Sending::Resting(Box::new(resting));
        }
        self.receiver.rest(&self.config, self.state == State::Listen);
    }

    /// Return to the compact form at the end of the handshake, if possible.
    pub(super) fn rest_on(&mut self, established: Established) {
        let Sending::Awake(sender) = &self.sender else { return };
        if self.rests && self.ecn == Mode::Off && sender.is_untouched() {
            self.sender = Sending::Resting(Box::new(Resting {
                past: Past::Handshake(established),
                snd_wnd: established.wnd,
                greatest_wnd: established.wnd,
                ..Resting::before_handshake(sender, &self.config)
            }));
        }
    }
}
