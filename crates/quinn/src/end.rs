//! One end of a flow: an `Endpoint` of the stack with its only `Connection`, and the application's stream.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ackclock_core::datagram::{Datagram, DatagramEndpoint, Opaque, UDP_IP_BYTES};
use ackclock_core::foreign::{hash, Carried, Failure, Foreign, Row};
use ackclock_core::packet::Ecn;
use ackclock_core::{Stream, Time};
use bytes::Bytes;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, NoneTokenStore, ReadError, ServerConfig, Side, StreamEvent, StreamId, VarInt,
};

use crate::null::{Null, ResetKey, TokenKey};
use crate::registry::Recipe;
use crate::seal::{self, Clock, Ids, Still};
use crate::traced::Log;

mod asked;
#[cfg(test)]
mod tests;

/// One end of a flow.
pub struct End {
    clock: Clock,
    side: Side,
    endpoint: Endpoint,
    connection: Option<Box<(ConnectionHandle, Connection)>>,
    /// Client configuration; `None` for a server.
    client: Option<ClientConfig>,
    /// Stream type of a client: unidirectional or bidirectional.
    dir: Dir,
    carried: Carried,
    log: Arc<Log>,
    /// Datagrams to send that belong to no connection.
    responses: VecDeque<Vec<u8>>,
    scratch: Vec<u8>,
    /// Stream written by this end; `None` until it is opened.
    stream: Option<StreamId>,
    to_write: u64,
    forever: bool,
    written: u64,
    /// The stack currently accepts no more data.
    blocked: bool,
    /// The stream is to be finished once everything has been written.
    closes: bool,
    has_finished: bool,
    /// Whether the peer has received everything, or no more data will be sent.
    is_through: bool,
    received: u64,
    peer_finished: bool,
    is_established: bool,
    failure: Option<Failure>,
    /// Datagrams sent, datagrams with stream data, and frames with stream data.
    number: u64,
    pieces: u64,
    frames: u64,
    deadline: Time,
    /// Trace rows, if a trace is kept.
    trace: Option<Vec<Row>>,
    /// Losses reported in trace rows so far.
    lost_in_trace: u64,
}

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Zeros to write, reused without a copy.
static ZEROS: [u8; 65_536] = [0; 65_536];

impl End {
    /// Create an end that opens the connection or waits for it. Its random numbers come from `stream`. With `one_way`
    /// only the client sends data; otherwise the server responds on the same stream.
    pub fn new(
        recipe: &Recipe,
        opens: bool,
        one_way: bool,
        mut stream: Stream,
        carried: Carried,
        clock: Clock,
    ) -> End {
        let log = Arc::new(Log::default());
        let transport = recipe.transport(&log, clock);
        let crypto = Arc::new(Null(recipe.sizes()));
        let mut config = EndpointConfig::new(Arc::new(ResetKey));
        let ids = Stream::new(stream.next_u64(), "ids");
        config.rng_seed(Some(seal::seed(&mut stream))).cid_generator(move || Box::new(Ids::new(ids.clone())));
        let (client, server) = if opens {
            let mut client = ClientConfig::new(crypto);
            client
                .transport_config(transport)
                .token_store(Arc::new(NoneTokenStore))
                .initial_dst_cid_provider(seal::first_id(&mut stream));
            (Some(client), None)
        } else {
            let mut server = ServerConfig::new(crypto, Arc::new(TokenKey));
            server.transport_config(transport).time_source(Arc::new(Still));
            (None, Some(Arc::new(server)))
        };
        End {
            clock,
            side: if opens { Side::Client } else { Side::Server },
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            client,
            dir: if one_way { Dir::Uni } else { Dir::Bi },
            carried,
            log,
            responses: VecDeque::new(),
            scratch: Vec::new(),
            stream: None,
            to_write: 0,
            forever: false,
            written: 0,
            blocked: false,
            closes: false,
            has_finished: false,
            is_through: false,
            received: 0,
            peer_finished: false,
            is_established: false,
            failure: None,
            number: 0,
            pieces: 0,
            frames: 0,
            deadline: Time::NEVER,
            trace: None,
            lost_in_trace: 0,
        }
    }

    fn respond(&mut self, size: usize) {
        if size > 0 {
            self.responses.push_back(self.scratch[..size].to_vec());
        }
    }

    /// Process all consequences of the last event in a fixed order, except for sending.
    fn work(&mut self, now: Time) {
        let Some(mut opened) = self.connection.take() else { return };
        let (handle, connection) = &mut *opened;
        loop {
            let mut idle = true;
            while let Some(event) = connection.poll_endpoint_events() {
                idle = false;
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                idle = false;
                self.hear(connection, event);
            }
            if self.feed(connection) || self.leave(connection, now) {
                idle = false;
            }
            if idle {
                break;
            }
        }
        self.connection = Some(opened);
        self.set_deadline(now);
    }

    fn hear(&mut self, connection: &mut Connection, event: Event) {
        match event {
            Event::Connected => self.is_established = true,
            Event::ConnectionLost { reason } => self.lose(&reason),
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(dir) {
                    if dir == Dir::Bi {
                        self.stream = Some(id);
                    }
                    self.read(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(connection, id),
            Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                self.blocked = false
            }
            Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. }) => {
                self.is_through |= self.stream == Some(id);
            }
            Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {}
        }
    }

    fn lose(&mut self, reason: &ConnectionError) {
        let failure = match reason {
            ConnectionError::LocallyClosed => return,
            // the peer's application has received everything it needs, or sends nothing more
            ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0 => {
                (self.peer_finished, self.is_through) = (true, true);
                return;
            }
            ConnectionError::TimedOut => Failure::TimedOut,
            ConnectionError::TransportError(error) if error.reason.contains("too many gaps") => Failure::Gaps,
            ConnectionError::TransportError(_) => Failure::Error,
            ConnectionError::ApplicationClosed(_)
            | ConnectionError::ConnectionClosed(_)
            | ConnectionError::Reset => Failure::ByPeer,
            ConnectionError::VersionMismatch | ConnectionError::CidsExhausted => Failure::Refused,
        };
        self.failure.get_or_insert(failure);
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received += chunk.bytes.len() as u64,
                Ok(None) | Err(ReadError::Reset(_)) => {
                    self.peer_finished = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
            }
        }
        let _ = chunks.finalize(); // the stack is polled for datagrams to send anyway
    }

    /// Write as much data as the stack accepts. Return whether it accepted any.
    fn feed(&mut self, connection: &mut Connection) -> bool {
        if self.blocked || self.has_finished || self.is_through {
            return false;
        }
        if self.stream.is_none() && self.side.is_client() && self.is_established {
            self.stream = connection.streams().open(self.dir);
        }
        let Some(id) = self.stream else { return false };
        let before = self.written;
        while self.forever || self.to_write > 0 {
            let most = ZEROS.len() as u64;
            let piece = if self.forever { most } else { self.to_write.min(most) };
            let mut chunks = [Bytes::from_static(&ZEROS[..piece as usize])];
            match connection.send_stream(id).write_chunks(&mut chunks) {
                Ok(written) => {
                    self.written += written.bytes as u64;
                    self.to_write = self.to_write.saturating_sub(written.bytes as u64);
                }
                Err(_) => {
                    self.blocked = true;
                    return self.written > before;
                }
            }
        }
        if self.closes {
            self.has_finished = true;
            let _ = connection.send_stream(id).finish(); // fails if the peer has stopped the stream
            return true;
        }
        self.written > before
    }

    /// Close the connection when neither end needs it any more. Return whether it was closed now.
    fn leave(&mut self, connection: &mut Connection, now: Time) -> bool {
        // a client is done once it has its response; a server's data must have arrived
        let over = match (self.dir, self.side) {
            (Dir::Uni, _) => self.is_through,
            (Dir::Bi, Side::Client) => self.peer_finished,
            (Dir::Bi, Side::Server) => self.peer_finished && self.is_through,
        };
        let over = over && self.closes;
        let closes = over && !connection.is_closed();
        if closes {
            connection.close(self.clock.instant(now), VarInt::from_u32(0), Bytes::new());
        }
        closes
    }

    fn set_deadline(&mut self, now: Time) {
        let timeout = self.connection.as_mut().and_then(|opened| opened.1.poll_timeout());
        // a deadline already in the past fires again after 1 ns, so that time advances
        self.deadline = timeout.map_or(Time::NEVER, |at| self.clock.time(at).max(Time(now.0 + 1)));
    }

    fn datagram(&mut self, bytes: usize, has_data: bool, ecn: Ecn) -> Opaque {
        let sent = &self.scratch[..bytes];
        self.number += 1;
        self.pieces += u64::from(has_data);
        Opaque {
            number: self.number,
            hash: hash(sent),
            place: self.carried.put(sent),
            len: bytes as u32,
            piece: if has_data { self.pieces as u32 } else { 0 },
            ecn,
            header: UDP_IP_BYTES as u8,
        }
    }
}

impl DatagramEndpoint for End {
    fn on_packet(&mut self, now: Time, datagram: &Datagram) {
        if let Datagram::Opaque(opaque) = datagram {
            self.arrive(now, opaque, Ecn::NotEct);
        }
    }

    fn on_timer(&mut self, now: Time) {
        if let Some(opened) = &mut self.connection {
            opened.1.handle_timeout(self.clock.instant(now));
        }
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if let Some(response) = self.responses.pop_front() {
            let bytes = response.len();
            self.scratch = response;
            return Some(Datagram::Opaque(self.datagram(bytes, false, Ecn::NotEct)));
        }
        let opened = self.connection.as_mut()?;
        self.scratch.clear();
        let Some(transmit) = opened.1.poll_transmit(self.clock.instant(now), 1, &mut self.scratch) else {
            self.set_deadline(now);
            return None;
        };
        let frames = opened.1.stats().frame_tx.stream;
        let has_data = frames > std::mem::replace(&mut self.frames, frames);
        let ecn = match transmit.ecn {
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
            None => Ecn::NotEct,
        };
        let datagram = self.datagram(transmit.size, has_data, ecn);
        if has_data && self.trace.is_some() {
            self.note_sent(now, &datagram);
        }
        Some(Datagram::Opaque(datagram))
    }

    fn next_deadline(&self) -> Time {
        self.deadline
    }
}
