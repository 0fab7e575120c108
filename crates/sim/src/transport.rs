//! What sits at the end of a path: a TCP connection, or an endpoint over datagrams. A closed set, so that the event loop
//! makes no boxed call; whoever sends bulk data uses the common part and need not know which it is.

use std::rc::Rc;

use ackclock_core::datagram::{Datagram, DatagramEndpoint};
use ackclock_core::{FlowId, Header, Pacer, Packet, Stream, Time};
use ackclock_tcp::{Config, Connection};

use crate::udp::{Sink, Source, SourceParams};

/// Settings of both ends of a flow.
#[derive(Clone, Debug)]
pub enum TransportConfig {
    /// TCP.
    Tcp(Rc<Config>),
    /// Plain datagrams.
    Udp(Rc<SourceParams>),
}

impl TransportConfig {
    /// TCP's settings, if it is TCP.
    pub fn tcp(&self) -> Option<&Config> {
        match self {
            TransportConfig::Tcp(config) => Some(config),
            TransportConfig::Udp(_) => None,
        }
    }
}

/// One end.
pub enum Transport {
    /// TCP.
    Tcp(Connection),
    /// Over datagrams; boxed, because TCP is what there are thousands of.
    Datagram(Box<DatagramEnd>),
}

/// One end of a transport over datagrams.
#[allow(missing_docs)]
pub enum DatagramEnd {
    Source(Source),
    Sink(Sink),
}

macro_rules! dispatch {
    ($self:expr, $e:ident => $body:expr) => {
        match $self {
            DatagramEnd::Source($e) => $body,
            DatagramEnd::Sink($e) => $body,
        }
    };
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

impl Transport {
    /// Both ends of a new flow's connection, the sending one first.
    pub fn pair(config: &TransportConfig, flow: FlowId, initiator: usize, seed: u64) -> [Transport; 2] {
        match config {
            TransportConfig::Tcp(config) => {
                [0, 1].map(|host| Transport::Tcp(Connection::sharing(flow, config, host != initiator)))
            }
            TransportConfig::Udp(params) => {
                let stream = Stream::new(seed, &format!("flow.{flow}.source"));
                [
                    DatagramEnd::Source(Source::new((**params).clone(), stream)),
                    DatagramEnd::Sink(Sink::default()),
                ]
                .map(|end| Transport::Datagram(Box::new(end)))
            }
        }
    }

    /// A packet arrived.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: &Packet) {
        match (self, &packet.header) {
            (Transport::Tcp(tcp), Header::Tcp(seg)) => tcp.on_packet(now, seg, packet.ecn),
            (Transport::Datagram(end), Header::Datagram(datagram)) => end.on_packet(now, datagram),
            _ => unreachable!("invariant: both ends of a flow speak the same transport"),
        }
    }

    /// When it wants [`Transport::on_timer`].
    #[inline]
    pub fn next_deadline(&self) -> Time {
        match self {
            Transport::Tcp(tcp) => tcp.next_deadline(),
            Transport::Datagram(end) => end.next_deadline(),
        }
    }

    /// The deadline has come.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.on_timer(now),
            Transport::Datagram(end) => end.on_timer(now),
        }
    }

    /// Payload bytes that have verifiably arrived from the first of two ends at the second.
    pub fn delivered([sender, receiver]: [&Transport; 2]) -> u64 {
        match sender.datagram() {
            Some(DatagramEnd::Source(_)) => receiver.received(),
            _ => sender.acked(),
        }
    }

    /// How its host treats a paced sender's lateness.
    pub fn set_pacer(&mut self, pacer: Pacer) {
        match self {
            Transport::Tcp(_) => {}
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Source(source) => source.set_pacer(pacer),
                DatagramEnd::Sink(_) => {}
            },
        }
    }

    /// Switch the per-ACK trace of TCP on or off.
    pub fn set_trace(&mut self, on: bool) {
        if let Transport::Tcp(tcp) = self {
            tcp.set_trace(on);
        }
    }

    /// The TCP connection that it is.
    #[inline]
    pub fn tcp(&self) -> Option<&Connection> {
        match self {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Datagram(_) => None,
        }
    }

    /// Likewise.
    #[inline]
    pub fn tcp_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Datagram(_) => None,
        }
    }

    /// The datagram endpoint that it is.
    pub fn datagram(&self) -> Option<&DatagramEnd> {
        match self {
            Transport::Tcp(_) => None,
            Transport::Datagram(end) => Some(end),
        }
    }
}

/// What an application does with the sending end.
impl Transport {
    /// Open.
    pub fn connect(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.connect(now),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Source(source) => source.start(now),
                DatagramEnd::Sink(_) => {}
            },
        }
    }

    /// Hand over `bytes`; a source of datagrams makes its own.
    pub fn write(&mut self, now: Time, bytes: u64) {
        if let Transport::Tcp(tcp) = self {
            tcp.write(now, bytes);
        }
    }

    /// From now on there is always something to send.
    pub fn write_forever(&mut self, now: Time) {
        if let Transport::Tcp(tcp) = self {
            tcp.write_forever(now);
        }
    }

    /// Nothing beyond what was sent.
    pub fn stop_writing(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.stop_writing(now),
            Transport::Datagram(end) => {
                if let DatagramEnd::Source(source) = &mut **end {
                    source.stop();
                }
            }
        }
    }

    /// Everything is written: close after it.
    pub fn close(&mut self, now: Time) {
        if let Transport::Tcp(tcp) = self {
            tcp.close(now);
        }
    }

    /// The end that opened it knows that the other one is there.
    pub fn is_established(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_established(),
            Transport::Datagram(_) => true,
        }
    }

    /// Payload bytes that the peer acknowledged.
    pub fn acked(&self) -> u64 {
        match self {
            Transport::Tcp(tcp) => tcp.acked(),
            Transport::Datagram(_) => 0,
        }
    }

    /// Payload bytes delivered to the application at this end.
    pub fn received(&self) -> u64 {
        match self {
            Transport::Tcp(tcp) => tcp.received(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::Source(_) => 0,
                DatagramEnd::Sink(sink) => sink.received().bytes,
            },
        }
    }

    /// Data packets sent by this end, and how many of them were retransmissions.
    pub fn sent(&self) -> (u64, u64) {
        match self {
            Transport::Tcp(tcp) => (tcp.stats().data_segments_sent, tcp.stats().retransmissions),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::Source(source) => (source.sent(), 0),
                DatagramEnd::Sink(_) => (0, 0),
            },
        }
    }

    /// The peer has closed, and all its data is here.
    pub fn peer_closed(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.peer_closed(),
            Transport::Datagram(_) => false,
        }
    }

    /// May be dropped.
    pub fn is_done(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_done(),
            Transport::Datagram(_) => false,
        }
    }

    /// Gave up.
    pub fn has_failed(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.has_failed(),
            Transport::Datagram(_) => false,
        }
    }
}
