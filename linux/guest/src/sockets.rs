//! Connections with both ends, on non-blocking sockets: data to be written is queued here until the socket accepts it,
//! and arriving data is counted and discarded inside the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ackclock_sim::workload::transactions::End;
use ackclock_sim::workload::ReadingPace;

use crate::flows::Sums;
use crate::info::Info;
use crate::sys::{self, Poll};

/// Identity of an open connection: its slot, and a serial number that distinguishes it from earlier users of the slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Id {
    at: u32,
    serial: u32,
}

impl Id {
    /// Serial number, unique among all connections of the run.
    pub fn serial(self) -> u32 {
        self.serial
    }

    /// Token of an end in the event poll.
    fn token(self, host: usize) -> u64 {
        (self.serial as u64) << 32 | (self.at as u64) << 1 | host as u64
    }
}

/// Owner of a connection, and the connection's index there.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub driver: usize,
    pub flow: u32,
    /// Index among the workload's connections.
    pub place: u32,
    /// Whether the applications set TCP_QUICKACK after every read.
    pub quickack: bool,
    /// Read pace of the application at each end; `None`: immediately.
    pub paces: [Option<ReadingPace>; 2],
}

/// Index of the sending host's end, which accepts.
pub const SERVER: usize = 0;
/// Index of the receiving host's end, which connects.
pub const CLIENT: usize = 1;

struct Pair {
    serial: u32,
    owner: Owner,
    peer: Peer,
    ends: [Option<Socket>; 2],
    /// Retransmissions of the client's SYN; `None` until the SYN-ACK has arrived.
    syns: Option<u64>,
    /// Counters of the server's socket when it was accepted, subtracted later so that SYN-ACK retransmissions do not
    /// count.
    base: Info,
}

/// Client as seen by the server: flow, last byte of the address, port.
type Peer = (u32, u8, u16);

struct Socket {
    fd: OwnedFd,
    seen: End,
    slow: Option<Slow>,
    unsent: u64,
    /// Whether to clear TCP_CORK once the unsent data is written.
    uncork: bool,
    shut: bool,
}

impl Socket {
    /// Wrap a socket whose application reads at this pace.
    fn new(fd: OwnedFd, seen: End, pace: Option<ReadingPace>) -> Socket {
        let slow = pace.map(|pace| Slow { pace, next: 0, waits: true, ended: false });
        Socket { fd, seen, slow, unsent: 0, uncork: false, shut: false }
    }

    /// Start the wait for the first slow read.
    fn begin(&mut self, now: u64) {
        if let Some(slow) = &mut self.slow {
            slow.next = now + slow.pace.wait.0;
        }
    }
}

/// State of an application that reads slowly.
struct Slow {
    pace: ReadingPace,
    /// Time of the next read, unless it waits for data.
    next: u64,
    waits: bool,
    /// Whether the end of the stream has arrived.
    ended: bool,
}

/// All connections of the run.
pub struct Sockets {
    poll: Poll,
    pairs: Vec<Option<Pair>>,
    free: Vec<u32>,
    by_peer: BTreeMap<Peer, Id>,
    serial: u32,
    block: Vec<u8>,
    /// Pending slow reads: time, slot, serial number, end.
    reads: BTreeSet<(u64, u32, u32, usize)>,
}

/// Event of a listener or an end.
pub enum Event {
    /// A client's connection is pending at the listener with this number.
    Listener(usize),
    /// The state of one end of a connection has changed.
    End(Id, usize),
}

impl Sockets {
    /// Create an empty connection set.
    pub fn new() -> Result<Sockets> {
        Ok(Sockets {
            poll: Poll::new()?,
            pairs: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            serial: 0,
            block: vec![0; WRITE],
            reads: BTreeSet::new(),
        })
    }

    /// Descriptor that is readable when an event is pending.
    pub fn fd(&self) -> RawFd {
        self.poll.fd()
    }

    /// Register a listener with the poll.
    pub fn listen(&self, fd: RawFd, number: usize) -> Result<()> {
        self.poll.add(fd, LISTENERS + number as u64)
    }

    /// Take the pending events, after updating the state of the ends. True if there may be more.
    pub fn events(&mut self, now: u64) -> Result<(Vec<Event>, bool)> {
        let mut raw = Vec::new();
        let more = self.poll.ready(&mut raw)?;
        let mut found = Vec::with_capacity(raw.len());
        for (token, events) in raw {
            if token >= LISTENERS {
                found.push(Event::Listener((token - LISTENERS) as usize));
                continue;
            }
            let id = Id { at: (token as u32) >> 1, serial: (token >> 32) as u32 };
            let host = (token & 1) as usize;
            if self.look(id, host, events, now)? {
                found.push(Event::End(id, host));
            }
        }
        Ok((found, more))
    }

    /// Update the state of one end; false if the connection is gone.
    fn look(&mut self, id: Id, host: usize, events: u32, now: u64) -> Result<bool> {
        let Some(pair) = self.pairs[id.at as usize].as_mut().filter(|p| p.serial == id.serial) else {
            return Ok(false);
        };
        let Some(socket) = pair.ends[host].as_mut() else { return Ok(false) };
        let fd = socket.fd.as_raw_fd();
        if events & sys::BROKEN != 0 && sys::take_error(fd)? != 0 {
            socket.seen.failed = true;
            return Ok(true);
        }
        if host == CLIENT && !socket.seen.established && events & sys::WRITABLE != 0 {
            socket.seen.established = true;
            socket.begin(now);
            pair.syns = Some(Info::of(fd)?.total_retrans as u64);
        }
        if let (Some(slow), true) = (&mut socket.slow, events & sys::READABLE != 0) {
            slow.ended |= events & sys::CLOSED != 0;
            if slow.waits && !socket.seen.peer_closed {
                slow.waits = false;
                let at = slow.next.max(now);
                self.reads.insert((at, id.at, id.serial, host));
            }
        } else if events & sys::READABLE != 0 {
            loop {
                match sys::swallow_now(fd, u64::MAX) {
                    Ok(None) => break,
                    Ok(Some(0)) => {
                        socket.seen.peer_closed = true;
                        break;
                    }
                    Ok(Some(n)) => socket.seen.received += n as u64,
                    Err(_) => {
                        socket.seen.failed = true;
                        return Ok(true);
                    }
                }
                if events & sys::CLOSED == 0 {
                    break; // the receive buffer is empty; the next arrival raises another event
                }
            }
            if pair.owner.quickack {
                sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, &1i32)?;
            }
        }
        self.flush(id, host);
        Ok(true)
    }

    /// Time of the next slow read, ns.
    pub fn next_read(&self) -> u64 {
        self.reads.first().map_or(u64::MAX, |read| read.0)
    }

    /// Perform one slow read that is due; returns the end at which it was made, or `None` if none is due.
    pub fn read_next(&mut self, now: u64) -> Result<Option<(Id, usize)>> {
        while let Some(&read) = self.reads.first().filter(|read| read.0 <= now) {
            self.reads.remove(&read);
            let (_, at, serial, host) = read;
            let Some(pair) = self.pairs[at as usize].as_mut().filter(|p| p.serial == serial) else {
                continue;
            };
            let quickack = pair.owner.quickack;
            let Some(socket) = pair.ends[host].as_mut() else { continue };
            let Some(slow) = socket.slow.as_mut() else { continue };
            let fd = socket.fd.as_raw_fd();
            match sys::swallow_now(fd, slow.pace.most) {
                Ok(None) => slow.waits = true,
                Ok(Some(0)) => (socket.seen.peer_closed, slow.waits) = (true, true),
                Ok(Some(n)) => {
                    socket.seen.received += n as u64;
                    slow.next = now + slow.pace.after(n as u64).0;
                    slow.waits = (n as u64) < slow.pace.most && !slow.ended; // nothing is left
                    if !slow.waits {
                        self.reads.insert((slow.next, at, serial, host));
                    }
                    if quickack {
                        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, &1i32)?;
                    }
                }
                Err(_) => socket.seen.failed = true,
            }
            return Ok(Some((Id { at, serial }, host)));
        }
        Ok(None)
    }

    /// Connect a client from address `from` of its host; the calling thread must be in that host's namespace.
    pub fn connect(
        &mut self,
        owner: Owner,
        socket: OwnedFd,
        from: [u8; 4],
        to: ([u8; 4], u16),
    ) -> Result<Id> {
        let fd = socket.as_raw_fd();
        sys::set_option(fd, libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &1i32)?;
        sys::bind(fd, from, 0)?;
        sys::connect_now(fd, to.0, to.1)?;
        let peer = (owner.flow, from[3], sys::local_port(fd)?);
        let id = self.seat();
        self.poll.watch(fd, id.token(CLIENT))?;
        self.by_peer.insert(peer, id);
        let client = Socket::new(socket, End::default(), owner.paces[CLIENT]);
        let ends = [None, Some(client)];
        let pair = Pair { serial: id.serial, owner, peer, ends, syns: None, base: Info::default() };
        self.pairs[id.at as usize] = Some(pair);
        Ok(id)
    }

    /// Port of the client.
    pub fn client_port(&self, id: Id) -> u16 {
        self.pair(id).peer.2
    }

    /// Create a connection without ends.
    pub fn nothing(&mut self) -> Id {
        let id = self.seat();
        let owner = Owner { driver: 0, flow: u32::MAX, place: 0, quickack: false, paces: [None; 2] };
        self.pairs[id.at as usize] = Some(Pair {
            serial: id.serial,
            owner,
            peer: (u32::MAX, 0, 0),
            ends: [None, None],
            syns: None,
            base: Info::default(),
        });
        id
    }

    fn seat(&mut self) -> Id {
        let at = self.free.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            self.pairs.len() as u32 - 1
        });
        self.serial += 1;
        Id { at, serial: self.serial }
    }

    /// Accept one pending connection of a flow's listener; further ones raise another event.
    pub fn accept(&mut self, listener: RawFd, flow: u32, now: u64) -> Result<Option<Id>> {
        if let Some((fd, ip, port)) = sys::accept_now(listener)? {
            let Some(&id) = self.by_peer.get(&(flow, ip[3], port)) else { return Ok(None) }; // the client has given up
            let pair = self.pairs[id.at as usize].as_mut().expect("invariant: known by its address");
            pair.base = Info::of(fd.as_raw_fd())?;
            self.poll.watch(fd.as_raw_fd(), id.token(SERVER))?;
            let seen = End { established: true, ..End::default() };
            let mut server = Socket::new(fd, seen, pair.owner.paces[SERVER]);
            server.begin(now);
            pair.ends[SERVER] = Some(server);
            return Ok(Some(id));
        }
        Ok(None)
    }

    fn pair(&self, id: Id) -> &Pair {
        self.pairs[id.at as usize].as_ref().expect("invariant: asked for open connections only")
    }

    fn socket(&mut self, id: Id, host: usize) -> Option<&mut Socket> {
        self.pairs[id.at as usize].as_mut()?.ends[host].as_mut()
    }

    /// Owner of a connection.
    pub fn owner(&self, id: Id) -> Option<Owner> {
        self.pairs[id.at as usize].as_ref().filter(|p| p.serial == id.serial).map(|p| p.owner)
    }

    /// Store the connection's index among the workload's connections.
    pub fn set_place(&mut self, id: Id, place: u32) {
        let pair = self.pairs[id.at as usize].as_mut().expect("invariant: open");
        pair.owner.place = place;
    }

    /// State of one end as seen by the application.
    pub fn end(&self, id: Id, host: usize) -> End {
        let Some(socket) = &self.pair(id).ends[host] else { return End::default() };
        End { done: socket.shut && socket.seen.peer_closed, ..socket.seen }
    }

    /// Queue `bytes` bytes for writing, and write what the socket accepts.
    pub fn write(&mut self, id: Id, host: usize, bytes: u64) {
        if let Some(socket) = self.socket(id, host) {
            socket.unsent += bytes;
        }
        self.flush(id, host);
    }

    /// Set TCP_CORK, or clear it after the queued data is written.
    pub fn cork(&mut self, id: Id, host: usize, on: bool) -> Result<()> {
        let Some(socket) = self.socket(id, host) else { return Ok(()) };
        socket.uncork = !on && socket.unsent > 0;
        match socket.uncork {
            true => Ok(()),
            false => sys::set_option(socket.fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CORK, &(on as i32)),
        }
    }

    /// Shut down the sending side after the queued data is written.
    pub fn close(&mut self, id: Id, host: usize) {
        if let Some(socket) = self.socket(id, host) {
            socket.seen.closing = true;
        }
        self.flush(id, host);
    }

    fn flush(&mut self, id: Id, host: usize) {
        let Sockets { pairs, block, .. } = self;
        let Some(socket) = pairs[id.at as usize].as_mut().and_then(|p| p.ends[host].as_mut()) else {
            return;
        };
        let fd = socket.fd.as_raw_fd();
        while socket.unsent > 0 {
            match sys::send_now(fd, &block[..socket.unsent.min(WRITE as u64) as usize]) {
                Ok(Some(n)) => socket.unsent -= n as u64,
                Ok(None) => return,
                Err(_) => {
                    socket.seen.failed = true;
                    return;
                }
            }
        }
        if std::mem::take(&mut socket.uncork) {
            // an error means that the connection was reset, which the next event reports too
            let _ = sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_CORK, &0i32);
        }
        if socket.seen.closing && !socket.shut {
            socket.shut = true;
            sys::shut(fd); // an error means that the connection was reset, which the next event reports too
        }
    }

    /// Counters of a connection: the server's without its SYN-ACK, retransmissions of the SYN-ACK, retransmissions of
    /// the SYN.
    pub fn counts(&self, id: Id) -> (Info, u64, u64) {
        let pair = self.pair(id);
        let of = |host: usize| pair.ends[host].as_ref().and_then(|s| Info::of(s.fd.as_raw_fd()).ok());
        let syns = pair.syns.unwrap_or_else(|| of(CLIENT).map_or(0, |i| i.total_retrans as u64));
        let mut server = of(SERVER).unwrap_or_default();
        let synacks = pair.base.total_retrans;
        server.total_retrans = server.total_retrans.saturating_sub(synacks);
        server.total_rto = server.total_rto.saturating_sub(pair.base.total_rto);
        (server, synacks as u64, syns)
    }

    /// Remove a connection, adding its counters to `sums`.
    pub fn retire(&mut self, id: Id, sums: &mut Sums) {
        let (server, synacks, syns) = self.counts(id);
        sums.add(&server, false);
        sums.syn_retransmissions += syns + synacks;
        let pair = self.pairs[id.at as usize].take().expect("invariant: counted above");
        self.by_peer.remove(&pair.peer);
        self.free.push(id.at);
        if pair.ends.iter().flatten().any(|s| s.seen.failed) {
            // the other end is aborted at the same time
            for socket in pair.ends.iter().flatten() {
                sys::abort_on_close(socket.fd.as_raw_fd());
            }
        }
    }

    /// Open connections of a flow.
    pub fn open(&self, flow: u32) -> Vec<Id> {
        let pairs = self.pairs.iter().zip(0..).filter_map(|(pair, at)| Some((pair.as_ref()?, at)));
        pairs.filter(|(p, _)| p.owner.flow == flow).map(|(p, at)| Id { at, serial: p.serial }).collect()
    }
}

/// Size of one write, bytes, as for streams; the last segment of a write may be short.
const WRITE: usize = 256 << 10;
/// First token of listeners; smaller tokens belong to ends of connections.
const LISTENERS: u64 = 1 << 63;
/// Socket option that defers the port choice until the peer is known.
const IP_BIND_ADDRESS_NO_PORT: i32 = 24;
