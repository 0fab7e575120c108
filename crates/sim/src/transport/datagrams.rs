//! Ends of transports over datagrams; also a closed set.

use ackclock_core::datagram::{Datagram, DatagramEndpoint};
use ackclock_core::foreign::Foreign;
use ackclock_core::packet::Ecn;
use ackclock_core::Time;
use ackclock_pcc::{Receiver, Sender};

use crate::transport::udp::{Sink, Source};

/// One end of a transport over datagrams.
#[derive(Clone)]
#[allow(missing_docs, reason = "each variant holds the endpoint of its name")]
#[allow(clippy::large_enum_variant, reason = "boxed as a whole in `Transport`")]
pub enum DatagramEnd {
    Source(Source),
    Sink(Sink),
    PccSender(Sender),
    PccReceiver(Receiver),
    Foreign(Box<dyn Foreign>),
}

macro_rules! dispatch {
    ($self:expr, $e:ident => $body:expr) => {
        match $self {
            DatagramEnd::Source($e) => $body,
            DatagramEnd::Sink($e) => $body,
            DatagramEnd::PccSender($e) => $body,
            DatagramEnd::PccReceiver($e) => $body,
            DatagramEnd::Foreign($e) => $body,
        }
    };
}

impl DatagramEnd {
    /// Process a datagram from the peer that arrived with this ECN mark, used only by external stacks.
    #[inline]
    pub fn arrive(&mut self, now: Time, datagram: &Datagram, ecn: Ecn) {
        match (self, datagram) {
            (DatagramEnd::Foreign(end), Datagram::Opaque(opaque)) => end.arrive(now, opaque, ecn),
            (end, _) => end.on_packet(now, datagram),
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
