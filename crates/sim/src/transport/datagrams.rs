//! Ends of transports over datagrams: a closed set, too.

use ackclock_core::datagram::{Datagram, DatagramEndpoint};
use ackclock_core::packet::Ecn;
use ackclock_core::Time;
use ackclock_pcc::{Receiver, Sender};

use crate::udp::{Sink, Source};

/// One end of a transport over datagrams.
#[allow(missing_docs, reason = "each variant holds the endpoint of its name")]
#[allow(clippy::large_enum_variant, reason = "boxed as a whole in `Transport`")]
pub enum DatagramEnd {
    Source(Source),
    Sink(Sink),
    PccSender(Sender),
    PccReceiver(Receiver),
    #[cfg(feature = "quinn")]
    Quinn(Box<ackclock_quinn::End>),
}

macro_rules! dispatch {
    ($self:expr, $e:ident => $body:expr) => {
        match $self {
            DatagramEnd::Source($e) => $body,
            DatagramEnd::Sink($e) => $body,
            DatagramEnd::PccSender($e) => $body,
            DatagramEnd::PccReceiver($e) => $body,
            #[cfg(feature = "quinn")]
            DatagramEnd::Quinn($e) => $body,
        }
    };
}

impl DatagramEnd {
    /// A datagram of the peer arrived, marked so: only a stack of others looks at the mark.
    #[inline]
    pub fn arrive(&mut self, now: Time, datagram: &Datagram, ecn: Ecn) {
        match (self, datagram) {
            #[cfg(feature = "quinn")]
            (DatagramEnd::Quinn(end), Datagram::Opaque(opaque)) => end.arrive(now, opaque, ecn),
            (end, _) => {
                let _ = ecn;
                end.on_packet(now, datagram);
            }
        }
    }
}

impl DatagramEndpoint for DatagramEnd {
    #[inline]
    fn on_packet(&mut self, now: Time, datagram: &Datagram) {
        dispatch!(self, e => e.on_packet(now, datagram))
    }
    fn on_timer(&mut self, now: Time) {
        dispatch!(self, e => e.on_timer(now))
    }
    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        dispatch!(self, e => e.poll_transmit(now))
    }
    #[inline]
    fn next_deadline(&self) -> Time {
        dispatch!(self, e => e.next_deadline())
    }
}
