//! Sockets of a script: descriptors, the listener and the connection, and the handling of packets without a
//! connection.

use ackclock_core::{Flags, Segment};
use ackclock_tcp::{Connection, State};

use super::call::{Epoll, Other};
use super::host::SocketOptions;
use super::notices::Notices;
use super::stack::{Agreed, Stack};
use super::{unsupported, wire, Stop};
use crate::ast::{SeqRange, TcpFlags, TcpOption, TcpOptions, TcpPacket};

/// Socket state of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Fresh,
    Bound,
    Listener,
    Connection,
}

/// A descriptor.
#[derive(Debug)]
pub struct Socket {
    pub fd: i64,
    pub kind: Kind,
    pub nonblocking: bool,
    pub options: SocketOptions,
    /// Connection number, if the socket is a connection.
    pub generation: u32,
}

impl Socket {
    pub fn new(fd: i64, kind: Kind, nonblocking: bool) -> Socket {
        Socket { fd, kind, nonblocking, options: SocketOptions::default(), generation: 0 }
    }
}

#[derive(Default)]
pub struct Sockets {
    /// Open sockets, in the order of their descriptors.
    pub open: Vec<Socket>,
    /// Whether the connection belongs to a socket: it was accepted, or this end connected.
    pub owned: bool,
    /// Whether the application has closed the socket and reads no more data.
    pub orphan: bool,
    /// Whether `connect` has reported that the connection is established.
    pub connected: bool,
    /// Whether a write is waiting for send buffer space.
    pub writing: bool,
    /// Whether the application has shut down the sending direction.
    pub shut: bool,
    /// Whether the application has shut down the receiving direction.
    pub deaf: bool,
    /// Whether a socket has started to listen since the last connection began, so that the next SYN opens a new
    /// connection.
    pub listening: bool,
    /// Number of connections so far; calls refer to the newest one.
    pub generation: u32,
    pub notices: Notices,
    pub epolls: Vec<Epoll>,
    /// Files and pipes, by descriptor.
    pub others: Vec<(i64, Other)>,
    /// Number of bytes in each pipe.
    pub pipes: Vec<i64>,
}

impl Sockets {
    pub fn get(&mut self, fd: i64) -> Option<&mut Socket> {
        let at = self.open.binary_search_by_key(&fd, |s| s.fd).ok()?;
        Some(&mut self.open[at])
    }

    /// Return the socket for reading.
    pub fn find(&self, fd: i64) -> Option<&Socket> {
        let at = self.open.binary_search_by_key(&fd, |s| s.fd).ok()?;
        Some(&self.open[at])
    }

    /// Whether the process has its maximum number of descriptors (RLIMIT_NOFILE).
    pub fn is_full(&self) -> bool {
        self.open.len() + self.others.len() + self.epolls.len() >= 1024
    }

    /// Add a descriptor, replacing one with the same number.
    pub fn put(&mut self, socket: Socket) {
        match self.open.binary_search_by_key(&socket.fd, |s| s.fd) {
            Ok(at) => self.open[at] = socket,
            Err(at) => self.open.insert(at, socket),
        }
    }

    /// Whether no connection belongs to a socket.
    pub fn is_between(&self) -> bool {
        self.listening || self.orphan
    }

    fn begin(&mut self, owned: bool) {
        self.generation += 1;
        self.notices = Notices::default();
        (self.owned, self.orphan, self.shut, self.deaf, self.connected) = (owned, false, false, false, false);
        self.listening = false;
    }

    /// Deliver a packet to the connection or to the listener.
    pub fn deliver(
        &mut self,
        line: u32,
        stack: &mut Stack,
        p: &TcpPacket,
        segment: Segment,
    ) -> Result<(), Stop> {
        let signed = |o: &TcpOption| matches!(o, TcpOption::Md5(_));
        if matches!(&p.options, TcpOptions::Exactly(list) if list.iter().any(signed)) {
            return Ok(());
        }
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK | Flags::RST);
        if opens && self.listening {
            if let Some(options) = self.listener() {
                return self.open_passively(line, stack, p, &segment, options);
            }
        }
        if stack.conn.as_ref().is_some_and(gone) && !(opens && self.listener().is_some()) {
            refuse(stack, &segment);
            return Ok(());
        }
        if stack.conn.is_none() || (opens && stack.conn.as_ref().is_some_and(gone)) {
            return match self.listener() {
                Some(options) if opens => self.open_passively(line, stack, p, &segment, options),
                _ => {
                    refuse(stack, &segment);
                    Ok(())
                }
            };
        }
        if let Some(TcpState::SynSent) = stack.conn.as_ref().map(|c| c.state()) {
            if segment.flags.has(Flags::ACK) && segment.ack != 1 {
                refuse(stack, &segment);
                return Ok(());
            }
            if segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK) {
                agree(stack, p);
                self.on_agreed(stack);
            } else if segment.flags.has(Flags::SYN) {
                return unsupported(line, "a simultaneous open");
            }
        }
        let unsure = stack.conn.as_ref().is_some_and(|c| c.state() == TcpState::SynReceived);
        let wrong = segment.flags.has(Flags::ACK) && segment.ack != 1;
        if unsure && wrong && !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST) {
            refuse(stack, &segment); // Linux `tcp_check_req`: the listener answers
            return Ok(());
        }
        let (rcv_nxt, snd_nxt, unheard, over) = {
            let conn = stack.conn.as_ref().expect("invariant: checked above");
            let info = conn.info();
            let unheard = (self.orphan || self.deaf) && matches!(info.tcp_state, 4 | 5 | 11);
            (conn.receiving().0, conn.sending().1, unheard, self.orphan && info.tcp_state == 5)
        };
        // Data for a closed socket is answered with an RST (RFC 1122 §4.2.2.13), unless its ACK is not acceptable,
        // which is checked first. Linux does not check the ACK if the connection's FIN was acknowledged.
        let acceptable = segment.ack <= snd_nxt || over;
        if unheard && acceptable && segment.len > 0 && segment.seq + segment.len as u64 > rcv_nxt {
            stack.conn = None;
            refuse(stack, &segment);
            return Ok(());
        }
        stack.deliver(&segment, wire::mark(p));
        Ok(())
    }

    fn listener(&self) -> Option<SocketOptions> {
        self.open.iter().find(|s| s.kind == Kind::Listener).map(|s| s.options.clone())
    }

    fn open_passively(
        &mut self,
        line: u32,
        stack: &mut Stack,
        p: &TcpPacket,
        segment: &Segment,
        options: SocketOptions,
    ) -> Result<(), Stop> {
        let s = &stack.host.setup.sysctls;
        let timestamps = s.tcp_timestamps > 0 && segment.has_ts;
        let mut config = stack.host.config(line, &options, timestamps, s.tcp_sack > 0)?;
        config.timers.syn_retries = s.tcp_synack_retries as u8;
        (stack.advmss, stack.first_offer) = (stack.host.advmss(&options), config.receiving.initial_rwnd);
        let shift = stack.host.shift(&options);
        stack.conn = Some(Connection::responder(0, &config));
        (stack.agreed, stack.active) = (Agreed::default(), false);
        self.begin(false);
        stack.restart();
        agree(stack, p);
        if stack.agreed.shift.is_some() {
            stack.agreed.shift = Some(shift);
        }
        self.on_agreed(stack);
        stack.take_over(&options);
        stack.deliver(segment, wire::mark(p));
        Ok(())
    }

    /// Open a connection by sending a SYN.
    pub fn open_actively(
        &mut self,
        line: u32,
        stack: &mut Stack,
        options: SocketOptions,
    ) -> Result<(), Stop> {
        let s = &stack.host.setup.sysctls;
        let scales = s.tcp_window_scaling > 0;
        let config = stack.host.config(line, &options, s.tcp_timestamps > 0, s.tcp_sack > 0)?;
        (stack.advmss, stack.first_offer) = (stack.host.advmss(&options), config.receiving.initiator_rwnd);
        stack.conn = Some(Connection::initiator(0, &config));
        (stack.agreed, stack.active) = (Agreed::default(), true);
        self.begin(true);
        stack.restart();
        // Our own shift applies until the SYN-ACK rules it out.
        if scales {
            stack.agreed.shift = Some(stack.host.shift(&options));
        }
        let now = stack.now;
        stack.take_over(&options);
        stack.act(|conn| conn.connect(now));
        Ok(())
    }

    fn on_agreed(&mut self, stack: &mut Stack) {
        let (shift, limit) = (stack.agreed.shift, stack.segment_limit);
        stack.act(|conn| {
            conn.fit_header(shift);
            conn.set_segment_limit(limit);
        });
    }
}

use State as TcpState;

/// Whether the connection no longer accepts packets.
fn gone(conn: &Connection) -> bool {
    let info = conn.info();
    conn.has_failed() || info.tcp_state == 7
}

/// Adopt the options of the peer's SYN or SYN-ACK that both ends support.
fn agree(stack: &mut Stack, p: &TcpPacket) {
    let TcpOptions::Exactly(options) = &p.options else { return };
    let s = &stack.host.setup.sysctls;
    let shift = options.iter().find_map(|o| match o {
        TcpOption::WindowScale(n) => Some((*n).min(14)),
        _ => None,
    });
    let scales = s.tcp_window_scaling > 0 && shift.is_some();
    let ours = stack.agreed.shift.unwrap_or(0);
    stack.agreed = Agreed {
        peer_shift: shift,
        shift: scales.then_some(ours),
        timestamps: s.tcp_timestamps > 0 && options.iter().any(|o| matches!(o, TcpOption::Timestamps { .. })),
        sack: s.tcp_sack > 0 && options.contains(&TcpOption::SackPermitted),
    };
}

/// Answer a segment with an RST (RFC 9293 §3.5.2).
fn refuse(stack: &mut Stack, segment: &Segment) {
    if segment.flags.has(Flags::RST) {
        return;
    }
    let acked = segment.flags.has(Flags::ACK);
    let seq = if acked { segment.ack as u32 } else { 0 };
    let packet = TcpPacket {
        flags: TcpFlags {
            bits: if acked { Flags::RST } else { Flags::RST | Flags::ACK },
            ..TcpFlags::default()
        },
        seq: SeqRange { start: seq, end: seq, len: 0 },
        ack: (!acked).then_some((segment.seq + segment.seq_len()) as u32),
        win: Some(0),
        ..TcpPacket::default()
    };
    stack.capture(packet, ackclock_core::packet::Ecn::NotEct);
}
