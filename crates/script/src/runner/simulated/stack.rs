//! The stack under test: one connection, the wire in front of it, and the clock.

use ackclock_core::packet::Ecn;
use ackclock_core::{Segment, Time};
use ackclock_tcp::{Connection, State};

use super::host::{Host, SocketOptions};
use super::wire;
use crate::ast::TcpPacket;
use crate::runner::lateness::shown;
use crate::runner::tap::Tap;
use crate::setup::Qdisc;

/// Negotiated options that affect the header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreed {
    /// Window shift of the peer; `None` without window scaling.
    pub peer_shift: Option<u8>,
    /// Shift of our own windows once window scaling has been negotiated; `None` otherwise.
    pub shift: Option<u8>,
    pub timestamps: bool,
    pub sack: bool,
}

#[derive(Default)]
pub struct Stack {
    /// Current time of the host.
    pub now: Time,
    /// Current time of the script.
    pub at: Time,
    pub conn: Option<Connection>,
    pub host: Host,
    pub agreed: Agreed,
    pub tap: Tap,
    /// Error that the socket would report.
    pub error: Option<&'static str>,
    /// Whether this end opened the connection.
    pub active: bool,
    /// Window advertised in our SYN or SYN-ACK, bytes.
    pub first_offer: u32,
    /// Segment size within arriving aggregates, bytes.
    pub segment_limit: u32,
    /// MSS advertised by this end.
    pub advmss: u32,
}

impl Stack {
    pub fn new(now: Time) -> Stack {
        Stack { now, at: now, ..Stack::default() }
    }

    /// Begin a new connection. Packets and errors of the previous one are discarded.
    pub fn restart(&mut self) {
        self.tap.restart();
        self.error = None;
    }

    /// Advance to the next timer at or before `until`, otherwise to `until`.
    pub fn step(&mut self, until: Time) {
        let deadline = self.conn.as_ref().map_or(Time::NEVER, Connection::next_deadline);
        if deadline > until {
            (self.now, self.at) = (self.now.max(until), until);
            return;
        }
        debug_assert!(deadline >= self.now, "a timer that was due is due again");
        self.now = self.now.max(deadline);
        self.at = self.at.max(shown(self.now));
        let now = self.now;
        self.act(|conn| conn.on_timer(now));
    }

    /// Advance the host's clock to `until`, but not the script's.
    pub fn pass(&mut self, until: Time) {
        let at = self.at;
        while self.now < until {
            self.step(until);
        }
        self.at = at;
    }

    /// Apply an input to the connection, and capture the resulting packets.
    pub fn act<T: Default>(&mut self, input: impl FnOnce(&mut Connection) -> T) -> T {
        let Some(conn) = &mut self.conn else { return T::default() };
        let failed = conn.has_failed();
        let result = input(conn);
        if !failed && conn.has_failed() {
            self.error = Some("ETIMEDOUT"); // resets are reported by the code that delivers them
        }
        self.drain();
        result
    }

    /// Apply a socket's options to a new connection.
    pub fn take_over(&mut self, options: &SocketOptions) {
        let (now, keepalive) = (self.now, self.host.keepalive(options));
        let refused = self.host.setup.qdisc == Qdisc::DropAll;
        self.act(|conn| {
            conn.set_nodelay(options.nodelay);
            conn.set_cork(options.cork, true);
            conn.set_user_timeout(options.user_timeout);
            conn.set_keepalive(now, keepalive);
            conn.set_refused(refused);
        });
    }

    pub fn deliver(&mut self, segment: &Segment, mark: Ecn) {
        let now = self.now;
        let before = self.conn.as_ref().map(|c| (c.state(), c.info().tcp_state, c.has_failed()));
        self.act(|conn| conn.on_packet(now, segment, mark));
        let Some((state, number, false)) = before else { return };
        if self.conn.as_ref().is_some_and(Connection::has_failed) {
            self.error = Some(match (state, number) {
                (State::SynSent, _) => "ECONNREFUSED",
                (_, 8) => "EPIPE", // CLOSE_WAIT
                _ => "ECONNRESET",
            });
        }
    }

    fn drain(&mut self) {
        let Some(mut conn) = self.conn.take() else { return };
        while let Some(segment) = conn.poll_transmit(self.now) {
            let ecn = conn.mark_of(&segment);
            let mut packet = wire::outbound(&segment, self);
            // a tun device cannot preserve ACE in a packet of several segments, so Linux splits it first
            let whole = self.host.setup.tso && conn.accurate_marks().is_none();
            while whole && conn.continues() {
                let Some(next) = conn.poll_transmit(self.now) else { break };
                wire::append(&mut packet, &next);
            }
            self.capture(packet, ecn);
            if self.tap.sent > crate::runner::MAX_PACKETS {
                break;
            }
        }
        self.conn = Some(conn);
    }

    pub fn capture(&mut self, packet: TcpPacket, ecn: Ecn) {
        if self.host.setup.qdisc == Qdisc::DropAll {
            return; // packets refused by the device are never captured
        }
        self.tap.capture(self.at, packet, ecn);
    }
}
