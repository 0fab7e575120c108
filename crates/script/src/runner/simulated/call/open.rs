//! Opening and closing of sockets: socket, bind, listen, accept, connect, shutdown, close.

use ackclock_tcp::State;

use super::{words_of, Answer};
use crate::ast::{Call, Expr};
use crate::runner::simulated::socket::{Kind, Socket};
use crate::runner::simulated::Simulated;
use crate::runner::{fail, unsupported, Stop};

impl Simulated<'_> {
    pub(super) fn socket(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let words: Vec<&str> = call.args.iter().flat_map(words_of).collect();
        if words.iter().any(|w| matches!(*w, "SOCK_DGRAM" | "SOCK_RAW" | "IPPROTO_UDP" | "IPPROTO_MPTCP")) {
            return unsupported(line, "a socket that is not TCP");
        }
        let Some(fd) = call.result.number().filter(|n| *n >= 0) else {
            return unsupported(line, "a socket that cannot be opened");
        };
        self.sockets.put(Socket::new(fd, Kind::Fresh, words.contains(&"SOCK_NONBLOCK")));
        Ok(Ok(fd))
    }

    pub(super) fn bind(&mut self, fd: i64) -> Answer {
        if let Some(socket) = self.sockets.get(fd) {
            socket.kind = Kind::Bound;
        }
        Ok(0)
    }

    /// Listen on a socket: the next SYN opens a new connection.
    pub(super) fn listen(&mut self, fd: i64) -> Answer {
        if let Some(socket) = self.sockets.get(fd) {
            socket.kind = Kind::Listener;
        }
        self.sockets.listening = true;
        Ok(0)
    }

    /// Whether a connection is waiting for `accept`.
    pub(super) fn acceptable(&self) -> bool {
        let conn = self.stack.conn.as_ref().filter(|_| !self.sockets.owned && !self.sockets.listening);
        conn.is_some_and(|c| c.is_established() || (c.has_failed() && c.receiving().0 > 1))
    }

    pub(super) fn accept(
        &mut self,
        line: u32,
        call: &Call,
        kind: Kind,
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        if kind != Kind::Listener {
            return Ok(Some(Err("EINVAL")));
        }
        if !self.acceptable() {
            return Ok(nonblocking.then_some(Err("EAGAIN")));
        }
        let Some(fd) = call.result.number().filter(|n| *n >= 0) else {
            return fail(line, call, "a connection is ready").map(Some);
        };
        let flags: Vec<&str> = call.args.iter().skip(3).flat_map(words_of).collect();
        let listener = self.sockets.open.iter().find(|s| s.kind == Kind::Listener);
        let options = listener.map(|s| s.options.clone()).unwrap_or_default();
        let mut socket = Socket::new(fd, Kind::Connection, flags.contains(&"SOCK_NONBLOCK"));
        (socket.options, socket.generation) = (options, self.sockets.generation);
        self.sockets.put(socket);
        self.sockets.owned = true;
        Ok(Some(Ok(fd)))
    }

    pub(super) fn connect(&mut self, line: u32, fd: i64, nonblocking: bool) -> Result<Option<Answer>, Stop> {
        let socket = self.sockets.get(fd).expect("invariant: the caller looked it up");
        if socket.kind == Kind::Listener {
            return unsupported(line, "connect on a socket that listens");
        }
        if socket.kind != Kind::Connection {
            socket.kind = Kind::Connection;
            let options = socket.options.clone();
            self.sockets.open_actively(line, &mut self.stack, options)?;
            let generation = self.sockets.generation;
            self.sockets.get(fd).expect("invariant: seen above").generation = generation;
            if nonblocking {
                return Ok(Some(Err("EINPROGRESS")));
            }
        }
        let Some(conn) = &self.stack.conn else { return Ok(Some(Err("ECONNREFUSED"))) };
        Ok(match conn.state() {
            State::SynSent if nonblocking => Some(Err("EALREADY")),
            State::SynSent => None,
            State::Failed => Some(Err(self.stack.error.take().unwrap_or("ECONNREFUSED"))),
            _ if nonblocking && self.sockets.connected => Some(Err("EISCONN")),
            _ => {
                self.sockets.connected = true;
                Some(Ok(0))
            }
        })
    }

    pub(super) fn close(&mut self, line: u32, fd: i64, kind: Kind) -> Result<Answer, Stop> {
        let linger = self.sockets.get(fd).and_then(|s| s.options.linger);
        self.sockets.open.retain(|s| s.fd != fd);
        if kind == Kind::Listener && !self.sockets.listening && !self.sockets.owned {
            // A connection that is waiting for `accept` is reset; one that is not established is forgotten (Linux
            // `inet_csk_listen_stop`).
            if self.acceptable() {
                self.stack.act(|conn| conn.reset());
            }
            self.stack.conn = None;
            return Ok(Ok(0));
        }
        if kind != Kind::Connection {
            return Ok(Ok(0));
        }
        let now = self.stack.now;
        let unread = self.stack.conn.as_ref().is_some_and(|c| c.readable() > 0);
        self.sockets.orphan = true;
        if self.stack.conn.as_ref().is_some_and(|c| matches!(c.state(), State::SynSent | State::Failed)) {
            self.stack.conn = None;
        } else if unread || linger == Some(0) {
            self.stack.act(|conn| conn.reset()); // RFC 1122 §4.2.2.13: data was lost
        } else if linger.is_some() {
            return unsupported(line, "a close that lingers");
        } else if !self.sockets.shut {
            self.stack.act(|conn| {
                conn.orphan();
                conn.close(now);
            });
        }
        Ok(Ok(0))
    }

    pub(super) fn shutdown(&mut self, line: u32, call: &Call, kind: Kind) -> Result<Answer, Stop> {
        if kind != Kind::Connection || !self.stack.conn.as_ref().is_some_and(|c| c.is_established()) {
            return Ok(Err("ENOTCONN"));
        }
        let (deaf, shut) = match call.args.get(1).map(|how| (how.word(), how.number())) {
            Some((Some("SHUT_RD"), _) | (_, Some(0))) => (true, false),
            Some((Some("SHUT_WR"), _) | (_, Some(1))) => (false, true),
            Some((Some("SHUT_RDWR"), _) | (_, Some(2))) => (true, true),
            _ => return unsupported(line, "this shutdown"),
        };
        self.sockets.deaf |= deaf;
        if shut && !self.sockets.shut {
            self.sockets.shut = true;
            let now = self.stack.now;
            self.stack.act(|conn| conn.close(now));
        }
        Ok(Ok(0))
    }

    /// Read or set the file status flags of a socket.
    pub(super) fn fcntl(&mut self, line: u32, call: &Call, fd: i64) -> Result<Answer, Stop> {
        /// `fcntl.h`
        const O_RDWR: i64 = 2;
        const O_NONBLOCK: i64 = 0o4000;
        let socket = self.sockets.get(fd).expect("invariant: the caller looked it up");
        match call.args.get(1).and_then(Expr::word) {
            Some("F_GETFL") => Ok(Ok(O_RDWR | if socket.nonblocking { O_NONBLOCK } else { 0 })),
            Some("F_SETFL") => {
                let flags = call.args.get(2);
                let words: Vec<&str> = flags.into_iter().flat_map(words_of).collect();
                let number = flags.and_then(Expr::number).unwrap_or(0);
                if let Some(other) = words.iter().find(|w| !matches!(**w, "O_RDWR" | "O_NONBLOCK")) {
                    return unsupported(line, format!("fcntl flag '{other}'"));
                }
                socket.nonblocking = words.contains(&"O_NONBLOCK") || number & O_NONBLOCK != 0;
                Ok(Ok(0))
            }
            Some("F_GETFD" | "F_SETFD") => Ok(Ok(0)),
            _ => unsupported(line, "this fcntl"),
        }
    }
}
