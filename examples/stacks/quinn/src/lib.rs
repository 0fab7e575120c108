//! QUIC of quinn-proto behind `ackclock_stack.h`: the release that Cargo.toml names, or your own branch (`make
//! QUINN=~/quinn`).
//!
//! quinn-proto does no I/O and takes time as an argument. Three files come from the simulator's own quinn endpoint,
//! `crates/quinn`: cryptography without secrets whose messages are as long as those of TLS 1.3, deterministic
//! replacements for the clock and the random numbers, and the log of the controller's calls. If your branch changes the
//! traits of `crypto` or `congestion`, copy the file here and change it.
//!
//! To add your own controller, add its name to `CONTROLLERS` and a line to `controller`, both in settings.rs.

mod abi;
#[allow(dead_code, reason = "the simulator's own end uses more of it")]
#[path = "../../../../crates/quinn/src/null.rs"]
mod null;
#[allow(dead_code, reason = "the simulator's own end uses more of it")]
#[path = "../../../../crates/quinn/src/seal.rs"]
mod seal;
mod settings;
#[allow(dead_code, reason = "the simulator's own end uses more of it")]
#[path = "../../../../crates/quinn/src/traced.rs"]
mod traced;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ackclock_core::{Stream, Time};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, NoneTokenStore, ReadError, ServerConfig, StreamEvent, StreamId, VarInt,
};

use crate::null::{Null, ResetKey, Sizes, TokenKey};
use crate::seal::{Clock, Ids, Still};
use crate::settings::{controller, Settings};
use crate::traced::Log;

const NONE: u64 = u64::MAX;
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);
static ZEROS: [u8; 65_536] = [0; 65_536];

/// Counterpart of `ack_sample` in the header.
#[repr(C)]
pub struct Sample {
    window: u64,
    in_flight: u64,
    ssthresh: u64,
    sent: u64,
    lost: u64,
    acks: u64,
    acked: u64,
    latest_rtt_ns: u64,
    srtt_ns: u64,
    min_rtt_ns: u64,
    pacing_bps: u64,
    mtu: u64,
}

pub enum State {
    Opening,
    Open,
    Closed,
    Failed(&'static str),
}

/// A datagram to be sent, with the flags that the header defines for it.
pub struct Sent {
    pub bytes: Vec<u8>,
    pub mark: u8,
}

/// One end: an `Endpoint` with a single `Connection` and one bidirectional stream.
pub struct Stack {
    is_server: bool,
    clock: Clock,
    endpoint: Endpoint,
    connection: Option<Box<(ConnectionHandle, Connection)>>,
    log: Arc<Log>,
    /// Outgoing datagrams that belong to no connection.
    responses: VecDeque<Vec<u8>>,
    stream: Option<StreamId>,
    to_write: u64,
    /// Whether quinn accepts no more data for now.
    blocked: bool,
    finishes: bool,
    has_finished: bool,
    /// Whether the peer has received everything, or wants no more.
    is_through: bool,
    received: u64,
    peer_finished: bool,
    is_open: bool,
    failure: Option<&'static str>,
    /// Datagrams sent, and STREAM frames sent in them.
    sent: u64,
    frames: u64,
    /// Whether quinn had nothing to send. Its pacer would release the next datagram before its timer expires, but no
    /// driver polls it before then.
    waits: bool,
    deadline: u64,
}

impl Stack {
    pub fn open(
        is_server: bool,
        name: &str,
        options: &str,
        seed: &[u8; 32],
        now: u64,
    ) -> Result<Stack, String> {
        let settings = Settings::read(options)?;
        let inner = controller(name, settings.initial_window).ok_or("the controllers cubic, newreno, bbr")?;
        let log = Arc::new(Log::default());
        let transport = settings.transport(inner, &log);
        let clock = Clock::default();
        let mut stream = Stream::new(u64::from_le_bytes(*seed.first_chunk().expect("32 bytes")), "quinn");
        let ids = stream.branch();
        let mut config = EndpointConfig::new(Arc::new(ResetKey));
        config.rng_seed(Some(*seed)).cid_generator(move || Box::new(Ids::new(ids.clone())));
        if let Some(bytes) = settings.mtu {
            config.max_udp_payload_size(bytes.max(1472)).map_err(|error| error.to_string())?;
        }
        let crypto = Arc::new(Null(Sizes::default()));
        let server = is_server.then(|| {
            let mut server = ServerConfig::new(crypto.clone(), Arc::new(TokenKey));
            server.transport_config(transport.clone()).time_source(Arc::new(Still));
            Arc::new(server)
        });
        let mut stack = Stack {
            is_server,
            clock,
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            log,
            responses: VecDeque::new(),
            stream: None,
            to_write: 0,
            blocked: false,
            finishes: false,
            has_finished: false,
            is_through: false,
            received: 0,
            peer_finished: false,
            is_open: false,
            failure: None,
            sent: 0,
            frames: 0,
            waits: false,
            deadline: NONE,
        };
        if !is_server {
            let mut client = ClientConfig::new(crypto);
            client
                .transport_config(transport)
                .token_store(Arc::new(NoneTokenStore))
                .initial_dst_cid_provider(seal::first_id(&mut stream));
            let opened = stack.endpoint.connect(stack.at(now), client, SERVER, "server");
            stack.connection = Some(Box::new(opened.map_err(|error| error.to_string())?));
            stack.work(now);
        }
        Ok(stack)
    }

    fn at(&self, now: u64) -> Instant {
        self.clock.instant(Time(now))
    }

    /// Process everything that the last event caused, in a fixed order, except sending.
    fn work(&mut self, now: u64) {
        self.waits = false;
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
            idle &= !self.feed(connection);
            if self.finishes && self.is_through && self.peer_finished && !connection.is_closed() {
                connection.close(self.at(now), VarInt::from_u32(0), Bytes::new());
                idle = false;
            }
            if idle {
                break;
            }
        }
        self.connection = Some(opened);
        self.look_ahead(now);
    }

    fn look_ahead(&mut self, now: u64) {
        let timeout = self.connection.as_mut().and_then(|opened| opened.1.poll_timeout());
        // a timeout that expired during the call fires again, after at least 1 ns
        self.deadline = timeout.map_or(NONE, |at| self.clock.time(at).0.max(now + 1));
    }

    fn hear(&mut self, connection: &mut Connection, event: Event) {
        match event {
            Event::Connected => self.is_open = true,
            Event::ConnectionLost { reason } => self.lose(&reason),
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(dir) {
                    self.stream = Some(id);
                    self.read(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(connection, id),
            Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                self.blocked = false
            }
            Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Stopped { .. }) => {
                self.is_through = true
            }
            _ => {}
        }
    }

    fn lose(&mut self, reason: &ConnectionError) {
        let failure = match reason {
            ConnectionError::LocallyClosed => return,
            // both ends have received everything
            ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0 => {
                (self.peer_finished, self.is_through) = (true, true);
                return;
            }
            ConnectionError::TimedOut => "idle timeout",
            ConnectionError::TransportError(error) if error.reason.contains("too many gaps") => {
                "too many gaps"
            }
            ConnectionError::TransportError(_) => "an error of the transport",
            ConnectionError::ApplicationClosed(_)
            | ConnectionError::ConnectionClosed(_)
            | ConnectionError::Reset => "closed by the peer",
            _ => "refused",
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
        let _ = chunks.finalize(); // quinn is polled for datagrams to send in any case
    }

    /// Write as much application data as quinn accepts; returns whether it accepted any.
    fn feed(&mut self, connection: &mut Connection) -> bool {
        if self.blocked || self.has_finished || self.is_through {
            return false;
        }
        if self.stream.is_none() && !self.is_server && self.is_open {
            self.stream = connection.streams().open(Dir::Bi);
        }
        let Some(id) = self.stream else { return false };
        let mut wrote = false;
        while self.to_write > 0 {
            let piece = self.to_write.min(ZEROS.len() as u64) as usize;
            match connection.send_stream(id).write_chunks(&mut [Bytes::from_static(&ZEROS[..piece])]) {
                Ok(written) => {
                    wrote = true;
                    if self.to_write != NONE {
                        self.to_write -= written.bytes as u64;
                    }
                }
                Err(_) => {
                    self.blocked = true;
                    return wrote;
                }
            }
        }
        if self.finishes {
            self.has_finished = true;
            let _ = connection.send_stream(id).finish(); // fails if the peer has closed it
            return true;
        }
        wrote
    }

    pub fn datagram(&mut self, now: u64, ecn: u8, bytes: &[u8]) {
        let (own, peer) = if self.is_server { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
        let (at, mut answer) = (self.at(now), Vec::new());
        let (ecn, bytes) = (EcnCodepoint::from_bits(ecn), BytesMut::from(bytes));
        let size = match self.endpoint.handle(at, peer, Some(own.ip()), ecn, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(opened) = self.connection.as_mut().filter(|opened| opened.0 == handle) {
                    opened.1.handle_event(event);
                }
                0
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, at, &mut answer, None) {
                    Ok(accepted) => {
                        self.connection = Some(Box::new(accepted));
                        0
                    }
                    Err(error) => {
                        self.failure = Some("refused");
                        error.response.map_or(0, |transmit| transmit.size)
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.endpoint.ignore(incoming);
                0
            }
            Some(DatagramEvent::Response(transmit)) => transmit.size,
            None => 0,
        };
        if size > 0 {
            answer.truncate(size);
            self.responses.push_back(answer);
        }
        self.work(now);
    }

    pub fn timer(&mut self, now: u64) {
        let at = self.at(now);
        if let Some(opened) = &mut self.connection {
            opened.1.handle_timeout(at);
        }
        self.work(now);
    }

    pub fn transmit(&mut self, now: u64) -> Option<Sent> {
        if let Some(bytes) = self.responses.pop_front() {
            self.sent += 1;
            return Some(Sent { bytes, mark: 0 });
        }
        if self.waits {
            return None;
        }
        let (at, mut bytes) = (self.at(now), Vec::new());
        let opened = self.connection.as_mut()?;
        let Some(transmit) = opened.1.poll_transmit(at, 1, &mut bytes) else {
            self.waits = true;
            self.look_ahead(now);
            return None;
        };
        self.sent += 1;
        bytes.truncate(transmit.size);
        let frames = opened.1.stats().frame_tx.stream;
        let has_data = frames > std::mem::replace(&mut self.frames, frames);
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        Some(Sent { bytes, mark: ecn | if has_data { 4 } else { 0 } })
    }

    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    pub fn write(&mut self, now: u64, bytes: u64) {
        self.to_write = self.to_write.saturating_add(bytes);
        self.work(now);
    }

    pub fn finish(&mut self, now: u64) {
        if self.to_write == NONE {
            self.to_write = 0;
        }
        (self.finishes, self.blocked) = (true, self.blocked && self.to_write > 0);
        self.work(now);
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn peer_finished(&self) -> bool {
        self.peer_finished
    }

    pub fn state(&self) -> State {
        match self.failure {
            Some(why) => State::Failed(why),
            None if self.connection.as_ref().is_some_and(|opened| opened.1.is_closed()) => State::Closed,
            None if self.is_open => State::Open,
            None => State::Opening,
        }
    }

    pub fn sample(&self) -> Sample {
        let least = |ns: u64| if ns == 0 { NONE } else { ns };
        let known = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(NONE);
        let Some((_, connection)) = self.connection.as_deref() else {
            return Sample {
                window: NONE,
                in_flight: NONE,
                ssthresh: NONE,
                sent: self.sent,
                lost: 0,
                acks: 0,
                acked: NONE,
                latest_rtt_ns: NONE,
                srtt_ns: NONE,
                min_rtt_ns: NONE,
                pacing_bps: NONE,
                mtu: NONE,
            };
        };
        let stats = connection.stats();
        let has_sample = self.log.rtt_samples.load(Relaxed) > 0;
        Sample {
            window: connection.congestion_state().window(),
            in_flight: self.log.in_flight.load(Relaxed),
            ssthresh: self.log.ssthresh.load(Relaxed),
            sent: self.sent,
            lost: stats.path.lost_packets,
            acks: stats.frame_rx.acks,
            acked: NONE, // not exposed by quinn
            latest_rtt_ns: NONE,
            srtt_ns: if has_sample { known(connection.rtt()) } else { NONE },
            min_rtt_ns: least(self.log.min_rtt_ns.load(Relaxed)),
            pacing_bps: NONE,
            mtu: connection.current_mtu().into(),
        }
    }
}
