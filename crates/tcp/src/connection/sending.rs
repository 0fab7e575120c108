//! The sending half of a connection, or what is left of it at an end that only receives: of many bulk flows every second one.

use std::rc::Rc;

use ackclock_core::{FlowId, Segment, Span, Time};

use super::Connection;
use crate::config::Config;
use crate::info::Stats;
use crate::sender::{Leaving, Sender};
use crate::ticks::Ticks;

/// The sending half.
pub(crate) enum Sending {
    /// As it is.
    Awake(Box<Sender>),
    /// It has nothing to send.
    Resting(Box<Resting>),
}

/// What makes a sender that has not sent anything: it is woken by going through the same again.
pub(crate) struct Resting {
    flow: FlowId,
    responder: bool,
    config: Rc<Config>,
    ticks: Ticks,
    from_one: bool,
    established: Established,
    /// Estimates of the RTT that the handshake has left behind: smoothed, and the RTO.
    srtt: Span,
    rto: Span,
    /// The peer's window now, and the greatest so far.
    snd_wnd: u32,
    greatest_wnd: u32,
    pub stats: Stats,
}

/// What the handshake settled, for [`Sender::established`].
#[derive(Clone, Copy)]
pub(crate) struct Established {
    pub at: Time,
    pub wnd: u32,
    pub sack: bool,
    /// Payload of a segment and room for its options, bytes.
    pub room: (u32, u32),
    pub rtt: Option<Span>,
}

impl Resting {
    /// The peer's window; false: this is no plain ACK for a sender that has sent nothing.
    #[inline]
    fn hear(&mut self, seg: &Segment) -> bool {
        self.snd_wnd = seg.wnd;
        self.greatest_wnd = self.greatest_wnd.max(seg.wnd);
        seg.ack == 1 && seg.sack.is_empty()
    }

    fn wake(&self) -> Box<Sender> {
        let mut sender = Box::new(Sender::new(self.flow, self.responder, &self.config, self.ticks));
        if self.from_one {
            sender.start_from_one();
        }
        sender.agree_on_ecn(false);
        let Established { at, wnd, sack, room, rtt } = self.established;
        sender.established(at, wnd, sack, room, rtt);
        sender.offered(self.greatest_wnd);
        sender.offered(self.snd_wnd);
        let leaves = sender.poll(at);
        debug_assert!(leaves.is_none());
        sender.stats = self.stats.clone();
        sender
    }
}

impl Sending {
    /// The sender itself, woken if need be.
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

    /// What can be asked of the sender, for those who ask seldom.
    pub fn ask<T>(&self, question: impl FnOnce(&Sender) -> T) -> T {
        match self {
            Sending::Awake(sender) => question(sender),
            Sending::Resting(resting) => question(&resting.wake()),
        }
    }

    /// An ACK.
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

    /// What it has to send.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<Leaving> {
        match self {
            Sending::Awake(sender) => sender.poll(now),
            Sending::Resting(_) => None,
        }
    }

    #[inline]
    pub fn stats(&self) -> &Stats {
        match self {
            Sending::Awake(sender) => &sender.stats,
            Sending::Resting(resting) => &resting.stats,
        }
    }

    #[inline]
    pub fn stats_mut(&mut self) -> &mut Stats {
        match self {
            Sending::Awake(sender) => &mut sender.stats,
            Sending::Resting(resting) => &mut resting.stats,
        }
    }

    /// Smoothed RTT and RTO.
    #[inline]
    pub fn rtt(&self) -> (Span, Span) {
        match self {
            Sending::Awake(sender) => (sender.rtt.srtt(), sender.rtt.rto()),
            Sending::Resting(resting) => (resting.srtt, resting.rto),
        }
    }

    /// The peer's window, bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        match self {
            Sending::Awake(sender) => sender.snd_wnd,
            Sending::Resting(resting) => resting.snd_wnd as u64,
        }
    }

    /// First offset not acknowledged, and the next one to send.
    #[inline]
    pub fn standing(&self) -> (u64, u64) {
        match self {
            Sending::Awake(sender) => (sender.snd_una, sender.snd_nxt),
            Sending::Resting(_) => (1, 1),
        }
    }

    /// The sender, if it is awake: one that rests has no timer, no FIN and no part in ECN.
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

    #[inline]
    pub fn fin_acked(&self) -> bool {
        self.now().is_some_and(Sender::fin_acked)
    }

    /// Marks of congestion are heeded, with the precision of accurate ECN.
    #[inline]
    pub fn hears_accurately(&self) -> bool {
        self.now().is_some_and(|sender| sender.ecn.accurate)
    }
}

impl Connection {
    /// This end will probably send nothing: its sending half is to take little memory from the handshake on. Said before the
    /// handshake, by applications that set no options of the socket.
    pub fn only_receives(&mut self) {
        self.only_receives = true;
    }

    /// The handshake is over.
    pub(super) fn rest(&mut self, from_one: bool, established: Established) {
        let Sending::Awake(sender) = &self.sender else { return };
        if self.sender_may_rest(sender) {
            let (flow, responder) = sender.whose();
            self.sender = Sending::Resting(Box::new(Resting {
                flow,
                responder,
                config: self.config.clone(),
                ticks: self.ticks,
                from_one,
                established,
                srtt: sender.rtt.srtt(),
                rto: sender.rtt.rto(),
                snd_wnd: established.wnd,
                greatest_wnd: established.wnd,
                stats: sender.stats.clone(),
            }));
        }
    }

    fn sender_may_rest(&self, sender: &Sender) -> bool {
        self.only_receives && self.ecn == super::Mode::Off && sender.is_untouched()
    }
}
