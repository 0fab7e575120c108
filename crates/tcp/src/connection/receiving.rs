//! The receiving half of a connection, in compact form until data arrives. In a scenario with many bulk
//! flows, half of all ends never receive data.

use std::rc::Rc;

use ackclock_core::{Segment, Span, Time};

use crate::config::Config;
use crate::receiver::{Receiver, Resting};

/// Receiving half, full or compact.
#[derive(Clone)]
pub(crate) enum Receiving {
    /// Full receiver.
    Awake(Box<Receiver>),
    /// Compact form: nothing has arrived except the handshake and ACKs.
    Resting(Resting),
}

impl Receiving {
    /// Replace the receiver by its compact form, unless a setting or data prevents it.
    pub fn rest(&mut self, config: &Rc<Config>, responder: bool) {
        if let Receiving::Awake(receiver) = self {
            if let Some(resting) = receiver.rest(config, responder) {
                *self = Receiving::Resting(resting);
            }
        }
    }

    /// Return the receiver, waking it if necessary.
    #[inline]
    pub fn awake(&mut self) -> &mut Receiver {
        match self {
            Receiving::Awake(receiver) => receiver,
            resting => resting.wake(),
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&mut self) -> &mut Receiver {
        if let Receiving::Resting(resting) = self {
            *self = Receiving::Awake(Box::new(resting.wake()));
        }
        match self {
            Receiving::Awake(receiver) => receiver,
            Receiving::Resting(_) => unreachable!("invariant: woken above"),
        }
    }

    /// Return the receiver if it is awake. A resting receiver has no data and no timer.
    #[inline]
    pub fn now(&self) -> Option<&Receiver> {
        match self {
            Receiving::Awake(receiver) => Some(receiver),
            Receiving::Resting(_) => None,
        }
    }

    /// Answer a rare query; a resting receiver answers through a woken copy.
    pub fn ask<T>(&self, question: impl FnOnce(&Receiver) -> T) -> T {
        match self {
            Receiving::Awake(receiver) => question(receiver),
            Receiving::Resting(resting) => question(&resting.wake()),
        }
    }

    /// Process the peer's SYN.
    pub fn on_syn(&mut self, seg: &Segment) {
        match self {
            Receiving::Awake(receiver) => {
                receiver.on_syn();
                receiver.negotiated(seg.syn.sack_permitted, seg.has_ts);
                receiver.stamps.recent = seg.ts_val;
            }
            Receiving::Resting(resting) => resting.on_syn(seg),
        }
    }

    /// Start at the end of the handshake.
    pub fn begin(&mut self, now: Time, smss: u32) {
        match self {
            Receiving::Awake(receiver) => receiver.begin(now, smss),
            Receiving::Resting(resting) => resting.begin(now, smss),
        }
    }

    /// Next offset expected in order.
    #[inline]
    pub fn next(&self) -> u64 {
        match self {
            Receiving::Awake(receiver) => receiver.rcv_nxt,
            Receiving::Resting(resting) => resting.next(),
        }
    }

    /// Process a segment without data.
    #[inline(always)]
    pub fn on_pure_ack(&mut self, seg: &Segment) {
        match self {
            Receiving::Awake(receiver) => receiver.on_pure_ack(seg),
            Receiving::Resting(resting) => resting.on_pure_ack(seg),
        }
    }

    /// See [`Receiver::forget_echo`].
    pub fn forget_echo(&mut self) {
        match self {
            Receiving::Awake(receiver) => receiver.forget_echo(),
            Receiving::Resting(resting) => resting.forget_echo(),
        }
    }

    /// See [`Receiver::last_ack`].
    pub fn last_ack(&self) -> u64 {
        match self {
            Receiving::Awake(receiver) => receiver.last_ack(),
            Receiving::Resting(resting) => resting.next(),
        }
    }

    /// Request an ACK that acknowledges nothing new.
    pub fn answer(&mut self) {
        self.awake().answer();
    }

    /// Latest timestamp of the peer, which ACKs echo.
    #[inline(always)]
    pub fn latest_stamp(&self) -> u32 {
        match self {
            Receiving::Awake(receiver) => receiver.stamps.recent,
            Receiving::Resting(resting) => resting.latest_stamp(),
        }
    }

    /// Whether the segment's timestamp is older than the latest one by more than `window`, or its first byte
    /// has already been received.
    #[inline(always)]
    pub fn has_passed(&self, seg: &Segment, window: i32) -> bool {
        let (latest, next) = (self.latest_stamp(), self.next());
        (seg.seq < next) | (seg.has_ts && latest.wrapping_sub(seg.ts_val) as i32 > window)
    }

    /// Whether the next header carries SACK blocks.
    #[inline(always)]
    pub fn has_blocks(&self) -> bool {
        self.now().is_some_and(Receiver::has_blocks)
    }

    /// See [`Receiver::stamp`].
    #[inline(always)]
    pub fn stamp(&mut self, seg: &mut Segment) {
        match self {
            Receiving::Awake(receiver) => receiver.stamp(seg),
            Receiving::Resting(resting) => resting.stamp(seg),
        }
    }

    /// See [`Receiver::stamps_alike`].
    #[inline(always)]
    pub fn stamps_alike(&self) -> bool {
        match self {
            Receiving::Awake(receiver) => receiver.stamps_alike(),
            Receiving::Resting(resting) => resting.stamps_alike(),
        }
    }

    /// Record that the application sent data.
    #[inline(always)]
    pub fn on_data_sent(&mut self, now: Time) {
        if let Receiving::Awake(receiver) = self {
            receiver.on_data_sent(now);
        }
    }

    #[inline]
    pub fn awaits_turn(&self) -> bool {
        self.now().is_some_and(Receiver::awaits_turn)
    }

    /// See [`Receiver::turn`].
    pub fn turn(&self) -> Time {
        self.now().map_or(Time::NEVER, Receiver::turn)
    }

    pub fn on_timer(&mut self, now: Time, rto: Span) {
        if let Receiving::Awake(receiver) = self {
            receiver.on_timer(now, rto);
        }
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        self.now().map_or(Time::NEVER, Receiver::deadline)
    }

    #[inline]
    pub fn ack_due(&self) -> bool {
        match self {
            Receiving::Awake(receiver) => receiver.ack_due(),
            Receiving::Resting(resting) => resting.ack_due(),
        }
    }

    pub fn ack_now(&mut self) {
        match self {
            Receiving::Awake(receiver) => receiver.ack_now(),
            Receiving::Resting(resting) => resting.ack_now(),
        }
    }

    #[inline]
    pub fn fin_received(&self) -> bool {
        self.now().is_some_and(Receiver::fin_received)
    }

    #[inline]
    pub fn received(&self) -> u64 {
        self.now().map_or(0, Receiver::received)
    }

    /// Record that the application has closed.
    pub fn close(&mut self) {
        match self {
            Receiving::Awake(receiver) => receiver.acks.closing = true,
            Receiving::Resting(resting) => resting.close(),
        }
    }
}
