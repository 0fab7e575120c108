//! One end of a path: a TCP connection, or an endpoint over datagrams. The set is closed, so the event loop needs no
//! dynamic dispatch. Workloads that send bulk data use the common interface and are independent of the kind.
//!
//! Length: one function per operation on an end, over all kinds of ends.

use std::rc::Rc;
use std::sync::Arc;

use ackclock_core::datagram::DatagramEndpoint;
use ackclock_core::foreign::{Carried, Maker};
use ackclock_core::{Datagram, FlowId, Header, HostPacing, Packet, Stream, Time};
use ackclock_pcc::control::Recipe;
use ackclock_pcc::{utility, Controller, IntervalRow, Receiver, Sender, Utility};
use ackclock_tcp::{Config, Connection, Due, Halves, Record};

use crate::transport::udp::{Sink, Source, SourceParams};

mod datagrams;
pub(crate) mod foreign;
pub mod udp;
pub use datagrams::DatagramEnd;

/// Host that sends the data; packets on the forward path start here.
pub const SENDER: usize = 0;
/// Host that receives the data.
pub const RECEIVER: usize = 1;

/// Settings for a flow's two ends.
#[derive(Clone)]
pub enum TransportConfig {
    /// TCP.
    Tcp(Rc<Config>),
    /// Plain datagrams.
    Udp(Rc<SourceParams>),
    /// PCC.
    Pcc(Rc<PccConfig>),
    /// An external stack.
    Foreign(Rc<ForeignConfig>),
}

/// Storage for the bytes of external stacks' datagrams while they are in flight.
#[derive(Clone, Default)]
pub struct Freight(Carried);

impl Freight {
    /// Free the bytes of a packet that will not arrive.
    #[cold]
    pub fn lose(&self, packet: &Packet) {
        if let Header::Datagram(Datagram::Opaque(opaque)) = &packet.header {
            self.0.lose(opaque);
        }
    }

    /// Allocate separate bytes for the copy of a duplicated packet.
    #[cold]
    pub fn copy(&self, packet: &mut Packet) {
        if let Header::Datagram(Datagram::Opaque(opaque)) = &mut packet.header {
            self.0.copy(opaque);
        }
    }

    /// First impossible report of a stack, or `None`.
    pub fn fault(&self) -> Option<String> {
        self.0.fault()
    }

    /// Number of datagrams whose bytes are stored.
    pub fn held(&self) -> usize {
        self.0.held()
    }
}

/// Settings for a flow that uses an external stack.
#[derive(Clone)]
pub struct ForeignConfig {
    maker: Arc<dyn Maker>,
    carried: Carried,
}

impl ForeignConfig {
    /// Return the settings of flows whose bytes are stored in `freight`.
    pub fn new(maker: Arc<dyn Maker>, freight: &Freight) -> ForeignConfig {
        ForeignConfig { maker, carried: freight.0.clone() }
    }
}

/// PCC flow settings.
#[derive(Clone)]
pub struct PccConfig {
    /// Controller and transport.
    pub recipe: Recipe,
    /// A user's own utility function, created anew for each flow.
    pub utility: Option<UtilityMaker>,
}

/// Factory for a user's own utility function.
pub type UtilityMaker = Arc<dyn Fn() -> Box<dyn Utility> + Send + Sync>;

impl PccConfig {
    fn controller(&self, stream: Stream) -> Controller {
        match &self.utility {
            None => self.recipe.controller(stream),
            Some(make) => self.recipe.controller_with(stream, utility::Kind::Custom(make())),
        }
    }
}

impl TransportConfig {
    /// Whether the transport is PCC.
    pub fn is_pcc(&self) -> bool {
        matches!(self, TransportConfig::Pcc(_))
    }

    /// Whether the transport is an external stack.
    pub fn is_foreign(&self) -> bool {
        matches!(self, TransportConfig::Foreign(_))
    }

    /// Initial window in segments, or in datagrams of QUIC's initial size; 0 for transports without an initial
    /// window.
    pub fn initial_window(&self) -> u32 {
        match self {
            TransportConfig::Tcp(config) => config.sending.iw,
            TransportConfig::Foreign(foreign) => foreign.maker.initial_window(),
            TransportConfig::Udp(_) | TransportConfig::Pcc(_) => 0,
        }
    }

    /// TCP settings; `None` for other transports.
    pub fn tcp(&self) -> Option<&Config> {
        match self {
            TransportConfig::Tcp(config) => Some(config),
            _ => None,
        }
    }
}

/// One end of a path.
#[derive(Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "almost every end is TCP: a box would add an indirection per packet"
)]
pub enum Transport {
    /// TCP.
    Tcp(Connection),
    /// Datagrams, boxed to keep the many TCP ends small.
    Datagram(Box<DatagramEnd>),
}

impl Transport {
    /// Prefetch the state of the sending half (`sends`) or of the receiving half.
    #[inline]
    pub fn prefetch(&self, sends: bool) {
        if let Transport::Tcp(tcp) = self {
            tcp.prefetch(sends);
        }
    }

    /// Prefetch the lists that this half stores separately.
    #[inline]
    pub fn prefetch_lists(&self, sends: bool) {
        if let Transport::Tcp(tcp) = self {
            tcp.prefetch_lists(sends);
        }
    }

    /// Write the next packet to be sent into `place`, without addresses. Return the packet and whether more may
    /// follow, or `None` if nothing can be sent.
    #[inline(always)]
    pub fn transmit_into<'p>(
        &mut self,
        now: Time,
        framing_bytes: u32,
        place: impl FnOnce() -> &'p mut Packet,
    ) -> Option<(&'p mut Packet, bool)> {
        let mut more = true;
        let packet = match self {
            Transport::Tcp(tcp) => {
                let due = tcp.next_due(now)?;
                let packet = place();
                let seg = packet.header.tcp_mut();
                if !tcp.transmit_into(now, due, seg) {
                    return None;
                }
                (packet.more, more) = match due {
                    Due::Ack(_) => (0, tcp.ack_due()),
                    _ => (tcp.complete_packet(now, seg), true),
                };
                packet.ecn = tcp.mark_of(seg);
                packet
            }
            Transport::Datagram(datagrams) => {
                let datagram = datagrams.poll_transmit(now)?;
                let packet = place();
                packet.header = Header::Datagram(datagram);
                (packet.more, packet.ecn) = (0, datagram.ecn());
                packet
            }
        };
        packet.bytes = packet.header.charge(framing_bytes, packet.more);
        Some((packet, more))
    }

    /// Whether a quick check shows that nothing can be sent now.
    #[inline(always)]
    pub fn has_nothing(&mut self, now: Time) -> bool {
        self.tcp_mut().is_some_and(|tcp| tcp.has_nothing(now))
    }

    /// Write the fields shared by the next packets into `common`, without addresses. Return the number of packets
    /// that can be sent as a train, or 0.
    #[inline(always)]
    pub fn begin_train(&mut self, now: Time, framing_bytes: u32, common: &mut Packet) -> u32 {
        let Transport::Tcp(tcp) = self else { return 0 };
        let length = tcp.train_length(now);
        if length > 0 {
            let seg = common.header.tcp_mut();
            tcp.begin_train(now, length, seg);
            (common.more, common.ecn) = (0, tcp.mark_of(seg));
            common.bytes = common.header.charge(framing_bytes, 0);
        }
        length
    }

    /// Record that the train was sent. Return whether nothing more can be sent now.
    #[inline(always)]
    pub fn ends_with_train(&mut self, now: Time) -> bool {
        self.tcp_mut().is_some_and(|tcp| tcp.ends_with_train(now))
    }

    /// Turn `packet`, a copy of the shared fields, into the next packet of the train.
    #[inline(always)]
    pub fn next_of_train(&mut self, packet: &mut Packet) {
        if let Transport::Tcp(tcp) = self {
            tcp.next_of_train(packet.header.tcp_mut());
        }
    }

    /// Create both ends of a flow's connection, the sending one first.
    pub fn pair(config: &TransportConfig, flow: FlowId, initiator: usize, seed: u64) -> [Transport; 2] {
        [SENDER, RECEIVER].map(|host| Transport::new(config, flow, host, initiator, seed, None))
    }

    /// Take apart this end of a closed connection; `None` if it leaves nothing to reuse.
    #[inline]
    pub fn into_halves(self) -> Option<Halves> {
        match self {
            Transport::Tcp(tcp) => tcp.into_halves(),
            Transport::Datagram(_) => None,
        }
    }

    /// Create an end at `host`, which reuses the memory of a closed connection's halves.
    #[inline]
    pub fn new(
        config: &TransportConfig,
        flow: FlowId,
        host: usize,
        initiator: usize,
        seed: u64,
        over: Option<Halves>,
    ) -> Transport {
        let end = match (config, host) {
            (TransportConfig::Tcp(config), _) => {
                let responds = host != initiator;
                return Transport::Tcp(match over {
                    Some(halves) => Connection::renewed(halves, flow, config, responds),
                    None => Connection::sharing(flow, config, responds),
                });
            }
            (TransportConfig::Udp(params), SENDER) => {
                let stream = Stream::new(seed, &format!("flow.{flow}.source"));
                DatagramEnd::Source(Source::new((**params).clone(), stream))
            }
            (TransportConfig::Udp(_), _) => DatagramEnd::Sink(Sink::default()),
            (TransportConfig::Pcc(pcc), SENDER) => {
                let controller = pcc.controller(Stream::new(seed, &format!("flow.{flow}.pcc")));
                DatagramEnd::PccSender(Sender::new(pcc.recipe.config, controller))
            }
            (TransportConfig::Pcc(pcc), _) => DatagramEnd::PccReceiver(Receiver::new(&pcc.recipe.config)),
            (TransportConfig::Foreign(foreign), _) => {
                let ForeignConfig { maker, carried } = &**foreign;
                let stream = Stream::new(seed, &format!("flow.{flow}.{}.{host}", maker.stack()));
                DatagramEnd::Foreign(maker.end(host == initiator, initiator == SENDER, stream, carried))
            }
        };
        Transport::Datagram(Box::new(end))
    }

    /// Time at which [`Transport::on_timer`] must be called.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        match self {
            Transport::Tcp(tcp) => tcp.next_deadline(),
            Transport::Datagram(end) => end.next_deadline(),
        }
    }

    /// The next deadline if it is before `before`; otherwise any time that is not before it.
    #[inline(always)]
    pub fn deadline_before(&self, before: Time) -> Time {
        match self {
            Transport::Tcp(tcp) => tcp.deadline_before(before),
            Transport::Datagram(end) => end.next_deadline(),
        }
    }

    /// Whether the deadline has passed.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_due(now),
            Transport::Datagram(end) => end.next_deadline() <= now,
        }
    }

    /// Whether the application reads only after all other events of this instant.
    pub fn reads_later(&self) -> bool {
        self.tcp().is_some_and(Connection::reads_later)
    }

    /// Whether the application learns of packets only after all other events of their instant.
    pub fn learns_later(&self) -> bool {
        self.tcp().is_some_and(Connection::learns_later)
    }

    /// Whether an event has happened that the application may be waiting for: in-order arrival of TCP data up to
    /// `offset`, a FIN from the peer, or the end of the connection.
    #[inline(always)]
    pub fn has_come_to(&self, offset: u64) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.has_come_to(offset),
            Transport::Datagram(_) => true,
        }
    }

    /// Process the expired deadline.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.on_timer(now),
            Transport::Datagram(end) => end.on_timer(now),
        }
    }

    /// Payload bytes known to have arrived from the first end at the second.
    pub fn delivered([sender, receiver]: [&Transport; 2]) -> u64 {
        match (sender.datagram(), receiver) {
            (Some(DatagramEnd::Source(_)), _) => receiver.received(),
            // not all stacks report acknowledgements
            (Some(DatagramEnd::Foreign(_)), _) => receiver.received(),
            // less than acknowledged only if the receiver cheats
            (_, Transport::Tcp(tcp)) => sender.acked().min(tcp.received() - tcp.concealed()),
            _ => sender.acked(),
        }
    }

    /// Set the host's pacing policy.
    pub fn set_pacer(&mut self, pacer: HostPacing) {
        match self {
            Transport::Tcp(tcp) => tcp.set_host_pacer(pacer),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Source(source) => source.set_pacer(pacer),
                DatagramEnd::PccSender(sender) => sender.set_pacer(pacer),
                _ => {}
            },
        }
    }

    /// Send through a queue of the host. `paces`: whether that queue paces TCP.
    pub fn queue_behind(&mut self, paces: bool) {
        if let Transport::Tcp(tcp) = self {
            tcp.queue_behind(paces);
        }
    }

    /// Departure time of TCP's next segment, if the host's queue paces.
    pub fn departure(&self, now: Time) -> Time {
        self.tcp().map_or(now, |tcp| tcp.departure(now))
    }

    /// Payload of a full segment, bytes; `u32::MAX` unless the transport is TCP.
    pub fn smss(&self) -> u32 {
        self.tcp().map_or(u32::MAX, |tcp| tcp.smss())
    }

    /// Set whether the host's queue is full.
    pub fn set_queue_full(&mut self, full: bool) {
        if let Transport::Tcp(tcp) = self {
            tcp.set_queue_full(full);
        }
    }

    /// Return the number of packets that found the host's queue full since the last call.
    pub fn take_refused(&mut self) -> u32 {
        self.tcp_mut().map_or(0, |tcp| tcp.take_refused())
    }

    /// Record that a packet carrying `payload` bytes from offset `start` entered the host's queue.
    pub fn queued(&mut self, start: u64, payload: u32) {
        if let Transport::Tcp(tcp) = self {
            tcp.queued(start, payload);
        }
    }

    /// Record that a packet carrying `payload` bytes left the host's queue. Return whether TCP was waiting for that.
    pub fn left_queue(&mut self, start: u64, payload: u32) -> bool {
        self.tcp_mut().is_some_and(|tcp| tcp.left_queue(start, payload))
    }

    /// Assume that the host's NIC splits multi-segment packets.
    pub fn cut_packets(&mut self) {
        if let Transport::Tcp(tcp) = self {
            tcp.cut_packets();
        }
    }

    /// Suspend the writing application until all packets of a poll have been processed, or resume it.
    pub fn suspend_writer(&mut self, suspended: bool) {
        if let Transport::Tcp(tcp) = self {
            tcp.suspend_writer(suspended);
        }
    }

    /// Turn the per-ACK trace of TCP or of an external stack on or off.
    pub fn set_trace(&mut self, on: bool) {
        match self {
            Transport::Tcp(tcp) => tcp.set_trace(on),
            Transport::Datagram(end) => {
                if let DatagramEnd::Foreign(end) = &mut **end {
                    end.set_trace(on);
                }
            }
        }
    }

    /// Take the trace of an external stack; empty for other transports.
    pub fn take_rows(&mut self, flow: FlowId) -> Vec<Record> {
        let Transport::Datagram(end) = self else { return Vec::new() };
        let DatagramEnd::Foreign(end) = &mut **end else { return Vec::new() };
        let responder = end.is_responder();
        end.take_trace().iter().map(|row| foreign::record(flow, responder, row)).collect()
    }

    /// Start recording PCC's monitor intervals.
    pub fn trace_intervals(&mut self) {
        self.pcc(|sender| sender.set_trace(true));
    }

    /// Take the recorded monitor intervals; `None` unless this is a PCC sender.
    pub fn take_intervals(&mut self) -> Option<Vec<IntervalRow>> {
        let mut rows = None;
        self.pcc(|sender| rows = Some(sender.take_rows()));
        rows
    }

    /// The TCP connection; `None` for other transports.
    #[inline]
    pub fn tcp(&self) -> Option<&Connection> {
        match self {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Datagram(_) => None,
        }
    }

    /// The TCP connection, mutable; `None` for other transports.
    #[inline]
    pub fn tcp_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Datagram(_) => None,
        }
    }

    /// The datagram endpoint; `None` for TCP.
    pub fn datagram(&self) -> Option<&DatagramEnd> {
        match self {
            Transport::Tcp(_) => None,
            Transport::Datagram(end) => Some(end),
        }
    }
}

/// Calls by the application at this end.
impl Transport {
    /// Open the connection.
    pub fn connect(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.connect(now),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Source(source) => source.start(now),
                DatagramEnd::PccSender(sender) => sender.connect(now),
                DatagramEnd::Foreign(end) => end.connect(now),
                DatagramEnd::Sink(_) | DatagramEnd::PccReceiver(_) => {}
            },
        }
    }

    /// Write `bytes`. A datagram source ignores the call because it generates its own data. PCC's receiving end sends
    /// the bytes as one request in a datagram.
    pub fn write(&mut self, now: Time, bytes: u64) {
        match self {
            Transport::Tcp(tcp) => tcp.write(now, bytes),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::PccSender(sender) => sender.write(now, bytes),
                DatagramEnd::PccReceiver(receiver) => receiver.ask(bytes as u32),
                DatagramEnd::Foreign(end) => end.write(now, bytes),
                DatagramEnd::Source(_) | DatagramEnd::Sink(_) => {}
            },
        }
    }

    /// Provide unlimited application data from now on.
    pub fn write_forever(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.write_forever(now),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Foreign(end) => end.write_forever(now),
                _ => self.pcc(Sender::write_forever),
            },
        }
    }

    /// Stop writing. The content of the send buffer is still sent; without a send buffer, nothing beyond the sent
    /// data counts as written.
    pub fn stop_writing(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.stop_writing(now),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Source(source) => source.stop(),
                DatagramEnd::PccSender(sender) => sender.stop_writing(),
                DatagramEnd::Foreign(end) => end.stop_writing(now),
                DatagramEnd::Sink(_) | DatagramEnd::PccReceiver(_) => {}
            },
        }
    }

    /// Close after all written data has been sent.
    pub fn close(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.close(now),
            Transport::Datagram(end) => match &mut **end {
                DatagramEnd::Foreign(end) => end.close(now),
                _ => self.pcc(Sender::close),
            },
        }
    }

    fn pcc(&mut self, action: impl FnOnce(&mut Sender)) {
        if let Transport::Datagram(end) = self {
            if let DatagramEnd::PccSender(sender) = &mut **end {
                action(sender);
            }
        }
    }

    /// Whether the connection is established at this end.
    pub fn is_established(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_established(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccSender(sender) => sender.is_established(),
                DatagramEnd::PccReceiver(receiver) => receiver.is_established(),
                DatagramEnd::Foreign(end) => end.is_established(),
                DatagramEnd::Source(_) | DatagramEnd::Sink(_) => true,
            },
        }
    }

    /// Payload bytes acknowledged by the peer.
    pub fn acked(&self) -> u64 {
        match self {
            Transport::Tcp(tcp) => tcp.acked(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccSender(sender) => sender.acked(),
                DatagramEnd::Foreign(end) => end.acked(),
                _ => 0,
            },
        }
    }

    /// Payload bytes delivered to the application at this end.
    pub fn received(&self) -> u64 {
        match self {
            Transport::Tcp(tcp) => tcp.received(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::Sink(sink) => sink.received().bytes,
                DatagramEnd::PccReceiver(receiver) => receiver.received(),
                DatagramEnd::PccSender(sender) => sender.asked(),
                DatagramEnd::Foreign(end) => end.received(),
                DatagramEnd::Source(_) => 0,
            },
        }
    }

    /// Payload bytes that the application at this end has read, and whether it has read the end of the stream.
    pub fn has_read(&self) -> (u64, bool) {
        self.tcp().map_or_else(|| (self.received(), self.peer_closed()), Connection::has_read)
    }

    /// Received payload bytes, including those after a gap.
    pub fn arrived(&self) -> u64 {
        match self {
            Transport::Tcp(tcp) => tcp.arrived(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccReceiver(receiver) => receiver.arrived(),
                _ => self.received(),
            },
        }
    }

    /// Data packets sent by this end, and the retransmissions among them. For an external stack: all packets sent,
    /// and those declared lost.
    pub fn sent(&self) -> (u64, u64) {
        match self {
            Transport::Tcp(tcp) => (tcp.stats().data_segments_sent, tcp.stats().retransmissions),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::Source(source) => (source.sent(), 0),
                DatagramEnd::PccSender(sender) => (sender.stats().sent, sender.stats().retransmissions),
                DatagramEnd::Foreign(end) => (end.stats().sent, end.stats().lost),
                _ => (0, 0),
            },
        }
    }

    /// Sum of this end's RTT samples, ns, and their number.
    #[inline]
    pub fn rtt_samples(&self) -> (u128, u64) {
        match self {
            Transport::Tcp(tcp) => (tcp.stats().rtt_sum_ns.into(), tcp.stats().rtt_samples),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccSender(sender) => (sender.stats().rtt_sum_ns, sender.stats().rtt_samples),
                DatagramEnd::Foreign(end) => end.rtt_samples(),
                _ => (0, 0),
            },
        }
    }

    /// Whether the peer has closed and all its data has arrived.
    pub fn peer_closed(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.peer_closed(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccReceiver(receiver) => receiver.is_complete(),
                DatagramEnd::Foreign(end) => end.peer_closed(),
                _ => false,
            },
        }
    }

    /// Whether the application has closed this end.
    pub fn is_closing(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_closing(),
            Transport::Datagram(end) => matches!(&**end, DatagramEnd::Foreign(end) if end.is_closing()),
        }
    }

    /// Whether the connection is finished at this end, so that the end may be discarded.
    pub fn is_done(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_done(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccSender(sender) => sender.is_done(),
                DatagramEnd::PccReceiver(receiver) => receiver.is_complete(),
                DatagramEnd::Foreign(end) => end.is_done(),
                _ => false,
            },
        }
    }

    /// Whether the connection has failed at this end.
    pub fn has_failed(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.has_failed(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::PccSender(sender) => sender.failure().is_some(),
                DatagramEnd::PccReceiver(receiver) => receiver.has_failed(),
                DatagramEnd::Foreign(end) => end.failure().is_some(),
                DatagramEnd::Source(_) | DatagramEnd::Sink(_) => false,
            },
        }
    }
}
