//! Calls of the socket interface: arguments out of their expressions, what the call does, what it returns and when.

use ackclock_core::Time;
use ackclock_tcp::State;

use super::socket::{Kind, Socket};
use super::{clock, fail, unsupported, Player, Stop, PATIENCE, START};
use crate::ast::{Call, Expr, When};
use crate::shape;

/// Largest write of one call: more is surely a slip, and would be played for ever.
const MAX_WRITE: i64 = 64 << 20;

/// What a call returned: a number, or the name of an error.
type Answer = Result<i64, &'static str>;

/// Options of the socket that change nothing that a script can see here.
const IGNORED_OPTIONS: &[&str] =
    &["SO_REUSEADDR", "SO_REUSEPORT", "SO_PRIORITY", "SO_MARK", "IP_MTU_DISCOVER", "IP_TOS", "IP_RECVERR"];

const CALLS: &[&str] = &[
    "socket",
    "setsockopt",
    "getsockopt",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "write",
    "send",
    "sendto",
    "read",
    "recv",
    "recvfrom",
    "close",
    "shutdown",
    "fcntl",
    "ioctl",
    "writev",
    "sendmsg",
];

/// A call that waits.
pub struct Blocking {
    line: u32,
    call: Call,
    /// When it must return.
    until: Time,
    /// When it was made.
    began: Time,
}

/// Refuse calls that are not played.
pub fn survey(line: u32, call: &Call) -> Result<(), Stop> {
    if !CALLS.contains(&call.name.as_str()) {
        return unsupported(line, format!("call '{}'", call.name));
    }
    let option = call.args.get(2).and_then(Expr::word);
    let known = match call.name.as_str() {
        "setsockopt" => ["SO_SNDBUF", "SO_RCVBUF", "TCP_NODELAY", "TCP_CORK", "TCP_MAXSEG", "TCP_CONGESTION"]
            .iter()
            .chain(["SO_MAX_PACING_RATE"].iter())
            .chain(IGNORED_OPTIONS)
            .any(|known| option == Some(known)),
        "getsockopt" => matches!(option, Some("SO_ERROR" | "TCP_NODELAY" | "TCP_CORK" | "TCP_MAXSEG")),
        "ioctl" => matches!(call.args.get(1).and_then(Expr::word), Some("SIOCINQ" | "FIONREAD")),
        _ => true,
    };
    if !known {
        let option = option.or(call.args.get(1).and_then(Expr::word)).unwrap_or("without a name");
        return unsupported(line, format!("{} option '{option}'", call.name));
    }
    Ok(())
}

impl Player {
    pub(super) fn call(&mut self, line: u32, call: &Call, time: When) -> Result<(), Stop> {
        let began = self.stack.now;
        match self.answer(line, call)? {
            Some(answer) => {
                if let Some(until) = call.until {
                    self.returned_in_time(line, call, self.until(time, until, began), began)?;
                }
                returned(line, call, answer)
            }
            None => {
                let Some(until) = call.until else {
                    return fail(line, call, "the call blocks");
                };
                let until = self.until(time, until, began);
                self.pending = Some(Blocking { line, call: call.clone(), until, began });
                Ok(())
            }
        }
    }

    fn until(&self, time: When, until: ackclock_core::Span, began: Time) -> Time {
        match time {
            When::At(_) => START + until,
            When::After(after) => began + (until - after),
            _ => began,
        }
    }

    fn returned_in_time(&mut self, line: u32, call: &Call, until: Time, began: Time) -> Result<(), Stop> {
        let now = self.stack.now;
        let off = now.since(until).max(until.since(now));
        let share = until.since(began).0 / 1000 * self.options.tolerance_permille as u64;
        if off > self.options.tolerance.max(ackclock_core::Span(share)) {
            return fail(line, format!("{call} returns at {}", clock(until)), format!("at {}", clock(now)));
        }
        self.deviation = self.deviation.max(off);
        Ok(())
    }

    /// A call that waits may have its answer now.
    pub(super) fn poll_call(&mut self) -> Result<(), Stop> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        match self.answer(pending.line, &pending.call)? {
            Some(answer) => {
                self.returned_in_time(pending.line, &pending.call, pending.until, pending.began)?;
                returned(pending.line, &pending.call, answer)
            }
            None => {
                self.pending = Some(pending);
                Ok(())
            }
        }
    }

    /// Wait for the call that has not returned.
    pub(super) fn finish_call(&mut self) -> Result<(), Stop> {
        while let Some(pending) = &self.pending {
            let (give_up, line) = (pending.until.max(self.stack.now) + PATIENCE, pending.line);
            let shown = format!("{} returns at {}", pending.call, clock(pending.until));
            while self.pending.is_some() && self.stack.now < give_up && self.stack.sent <= super::MAX_PACKETS
            {
                self.stack.step(give_up);
                self.poll_call()?;
            }
            if self.pending.is_some() {
                return fail(line, shown, "still blocked");
            }
        }
        self.finished = self.finished.max(self.stack.now);
        Ok(())
    }

    /// Do what a call does. `None`: it blocks, and nothing was done that must not be done again.
    fn answer(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        let fd = call.args.first().and_then(Expr::number);
        let name = call.name.as_str();
        if name == "socket" {
            return self.socket(line, call).map(Some);
        }
        let Some(fd) = fd else { return unsupported(line, format!("descriptor of '{name}'")) };
        let Some(socket) = self.sockets.get(fd) else { return Ok(Some(Err("EBADF"))) };
        let (kind, nonblocking) = (socket.kind, socket.nonblocking);
        Ok(match name {
            "bind" => {
                socket.kind = Kind::Bound;
                Some(Ok(0))
            }
            "listen" => {
                socket.kind = Kind::Listener;
                Some(Ok(0))
            }
            "accept" | "accept4" => return self.accept(line, call, kind, nonblocking),
            "connect" => return self.connect(line, fd, nonblocking),
            "setsockopt" => Some(self.setsockopt(line, call, fd)?),
            "getsockopt" => Some(self.getsockopt(line, call, fd)?),
            "fcntl" => Some(self.fcntl(line, call, fd)?),
            "ioctl" => Some(self.ioctl(line, call)?),
            "close" => Some(self.close(fd, kind)),
            "shutdown" => Some(self.shutdown(line, call, kind)?),
            "write" | "send" | "sendto" | "writev" | "sendmsg" => {
                return self.write(line, call, kind, nonblocking)
            }
            "read" | "recv" | "recvfrom" => return self.read(line, call, kind, nonblocking),
            _ => return unsupported(line, format!("call '{name}'")),
        })
    }

    fn socket(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let words: Vec<&str> = call.args.iter().flat_map(words_of).collect();
        if words.iter().any(|w| matches!(*w, "SOCK_DGRAM" | "SOCK_RAW" | "IPPROTO_UDP" | "AF_INET6")) {
            return unsupported(line, "a socket that is not TCP over IPv4");
        }
        let Some(fd) = call.result.number().filter(|n| *n >= 0) else {
            return unsupported(line, "a socket that cannot be opened");
        };
        self.sockets.open.retain(|s| s.fd != fd);
        let nonblocking = words.contains(&"SOCK_NONBLOCK");
        self.sockets.open.push(Socket { fd, kind: Kind::Fresh, nonblocking, options: Default::default() });
        Ok(Ok(fd))
    }

    fn accept(
        &mut self,
        line: u32,
        call: &Call,
        kind: Kind,
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        if kind != Kind::Listener {
            return Ok(Some(Err("EINVAL")));
        }
        let ready = !self.sockets.owned
            && self
                .stack
                .conn
                .as_ref()
                .is_some_and(|c| c.is_established() || (c.has_failed() && c.receiving().0 > 1));
        if !ready {
            return Ok(nonblocking.then_some(Err("EAGAIN")));
        }
        let Some(fd) = call.result.number().filter(|n| *n >= 0) else {
            return fail(line, call, "a connection is ready").map(Some);
        };
        let flags: Vec<&str> = call.args.iter().skip(3).flat_map(words_of).collect();
        let options = self
            .sockets
            .open
            .iter()
            .find(|s| s.kind == Kind::Listener)
            .map(|s| s.options.clone())
            .unwrap_or_default();
        let nonblocking = flags.contains(&"SOCK_NONBLOCK");
        self.sockets.open.retain(|s| s.fd != fd);
        self.sockets.open.push(Socket { fd, kind: Kind::Connection, nonblocking, options });
        self.sockets.owned = true;
        Ok(Some(Ok(fd)))
    }

    fn connect(&mut self, line: u32, fd: i64, nonblocking: bool) -> Result<Option<Answer>, Stop> {
        let socket = self.sockets.get(fd).expect("invariant: the caller looked it up");
        if socket.kind != Kind::Connection {
            if self.stack.conn.is_some() {
                return unsupported(line, "a second connection");
            }
            socket.kind = Kind::Connection;
            let options = socket.options.clone();
            self.sockets.open_actively(line, &mut self.stack, options)?;
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

    fn setsockopt(&mut self, line: u32, call: &Call, fd: i64) -> Result<Answer, Stop> {
        let name = call.args.get(2).and_then(Expr::word).unwrap_or_default();
        if IGNORED_OPTIONS.contains(&name) {
            return Ok(Ok(0));
        }
        let text = match call.args.get(3) {
            Some(Expr::Text(parts)) => Some(parts.concat()),
            Some(Expr::List(items)) => match items.as_slice() {
                [Expr::Text(parts)] => Some(parts.concat()),
                _ => None,
            },
            _ => None,
        };
        let value = call.args.get(3).and_then(single);
        let live = self.sockets.get(fd).is_some_and(|s| s.kind == Kind::Connection);
        let socket = self.sockets.get(fd).expect("invariant: the caller looked it up");
        match (name, value, text) {
            ("TCP_CONGESTION", _, Some(name)) if !live => socket.options.controller = Some(name),
            ("TCP_NODELAY", Some(on), _) => {
                socket.options.nodelay = on != 0;
                if live {
                    self.stack.act(|conn| conn.set_nodelay(on != 0));
                }
            }
            ("TCP_CORK", Some(on), _) => {
                socket.options.cork = on != 0;
                if live {
                    self.stack.act(|conn| conn.set_cork(on != 0, true));
                }
            }
            ("SO_SNDBUF", Some(n), _) if n >= 0 => socket.options.send_buffer = Some(n as u64),
            ("SO_RCVBUF", Some(n), _) if n >= 0 && !live => socket.options.receive_buffer = Some(n as u64),
            ("SO_MAX_PACING_RATE", Some(n), _) => {
                let most = match n as u32 {
                    u32::MAX => u64::MAX, // four bytes of ones: no limit
                    rate => rate as u64,
                };
                socket.options.max_pacing_rate = (most != u64::MAX).then_some(most);
                if live {
                    self.stack.act(|conn| conn.set_max_pacing_rate(most));
                }
            }
            ("TCP_MAXSEG", Some(n), _) if !live => match n {
                88..=32_767 => socket.options.max_segment = Some(n as u32), // Linux TCP_MIN_MSS, MAX_TCP_WINDOW
                _ => return Ok(Err("EINVAL")),
            },
            (name, ..) => return unsupported(line, format!("setsockopt '{name}' here")),
        }
        Ok(Ok(0))
    }

    fn getsockopt(&mut self, line: u32, call: &Call, fd: i64) -> Result<Answer, Stop> {
        let name = call.args.get(2).and_then(Expr::word).unwrap_or_default();
        let wanted = call.args.get(3);
        let options = self.sockets.get(fd).expect("invariant: the caller looked it up").options.clone();
        let (value, word) = match name {
            "SO_ERROR" => match self.stack.error.take() {
                None => (0, "0"),
                Some(error) => (errno(error), error),
            },
            "TCP_NODELAY" => (options.nodelay as i64, ""),
            "TCP_CORK" => (options.cork as i64, ""),
            "TCP_MAXSEG" => match &self.stack.conn {
                Some(conn) if conn.is_established() => (conn.info().smss as i64, ""),
                _ => return unsupported(line, "TCP_MAXSEG before the connection"),
            },
            name => return unsupported(line, format!("getsockopt '{name}'")),
        };
        let agrees = match wanted {
            Some(Expr::List(items)) => match items.as_slice() {
                [Expr::Ellipsis] => true,
                [Expr::Word(w)] => w == word,
                [e] => e.number() == Some(value),
                _ => false,
            },
            Some(Expr::Ellipsis) => true,
            _ => false,
        };
        match agrees {
            true => Ok(Ok(0)),
            false => fail(line, call, format!("{name} is {value} {word}")),
        }
    }

    fn fcntl(&mut self, line: u32, call: &Call, fd: i64) -> Result<Answer, Stop> {
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
            _ => unsupported(line, "this fcntl"),
        }
    }

    fn ioctl(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let readable = self.stack.conn.as_ref().map_or(0, |c| c.readable() as i64);
        match call.args.get(2).and_then(single) {
            Some(wanted) if wanted == readable => Ok(Ok(0)),
            _ => fail(line, call, format!("{readable} bytes wait")),
        }
    }

    fn close(&mut self, fd: i64, kind: Kind) -> Answer {
        self.sockets.open.retain(|s| s.fd != fd);
        if kind != Kind::Connection {
            return Ok(0);
        }
        let now = self.stack.now;
        let unread = self.stack.conn.as_ref().is_some_and(|c| c.readable() > 0);
        self.sockets.orphan = true;
        if self.stack.conn.as_ref().is_some_and(|c| matches!(c.state(), State::SynSent | State::Failed)) {
            self.stack.conn = None;
        } else if unread {
            self.stack.act(|conn| conn.reset()); // RFC 1122 §4.2.2.13: data was lost
        } else if !self.sockets.shut {
            self.stack.act(|conn| conn.close(now));
        }
        Ok(0)
    }

    fn shutdown(&mut self, line: u32, call: &Call, kind: Kind) -> Result<Answer, Stop> {
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

    fn write(
        &mut self,
        line: u32,
        call: &Call,
        kind: Kind,
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        let (bytes, flags) = match call.name.as_str() {
            "writev" => (call.args.get(1).and_then(iovec_bytes), None),
            "sendmsg" => {
                let iov = match call.args.get(1) {
                    Some(Expr::Braces(items)) => shape::field(items, "msg_iov").and_then(iovec_bytes),
                    _ => None,
                };
                (iov, call.args.get(2))
            }
            _ => (call.args.get(2).and_then(Expr::number), call.args.get(3)),
        };
        let Some(bytes) = bytes.filter(|n| (0..=MAX_WRITE).contains(n)) else {
            return unsupported(line, format!("a write that is not of 0 to {MAX_WRITE} bytes"));
        };
        let (mut more, mut record) = (false, false);
        for word in flags.into_iter().flat_map(words_of) {
            match word {
                "MSG_MORE" => more = true,
                "MSG_EOR" => record = true,
                "MSG_DONTWAIT" | "MSG_NOSIGNAL" => {}
                other => return unsupported(line, format!("flag '{other}' of a write")),
            }
        }
        if flags.and_then(Expr::number).is_some_and(|n| n != 0) {
            return unsupported(line, "a numeric flag of a write");
        }
        if kind != Kind::Connection {
            return Ok(Some(Err("EPIPE")));
        }
        if let Some(error) = self.stack.error.take() {
            return Ok(Some(Err(error)));
        }
        let Some(conn) = &self.stack.conn else { return Ok(Some(Err("EPIPE"))) };
        if conn.has_failed() || self.sockets.shut {
            return Ok(Some(Err("EPIPE")));
        }
        match conn.state() {
            State::SynSent | State::SynReceived => return Ok(nonblocking.then_some(Err("EAGAIN"))),
            State::Established => {}
            _ => return Ok(Some(Err("EPIPE"))),
        }
        let asked =
            self.sockets.open.iter().find(|s| s.kind == Kind::Connection).and_then(|s| s.options.send_buffer);
        if let Some(asked) = asked {
            // Linux counts what packets take in memory; well below that the two cannot differ.
            let held = conn.written() - conn.acked() + bytes as u64;
            if held > asked.clamp(2_304, self.stack.host.setup.sysctls.wmem_max) {
                return unsupported(line, "a write beyond the send buffer");
            }
        }
        let now = self.stack.now;
        let cork = self.sockets.open.iter().any(|s| s.kind == Kind::Connection && s.options.cork);
        if bytes > 0 {
            self.stack.act(|conn| {
                conn.set_cork(cork || more, true);
                conn.write_marked(now, bytes as u64, more, record);
            });
            self.stack.act(|conn| conn.set_cork(cork, false));
        }
        Ok(Some(Ok(bytes)))
    }

    fn read(
        &mut self,
        line: u32,
        call: &Call,
        kind: Kind,
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        if let Some(flags) = call.args.get(3) {
            let plain = flags.number() == Some(0) || words_of(flags).iter().all(|w| *w == "MSG_DONTWAIT");
            if !plain {
                return unsupported(line, "a flag of a read");
            }
        }
        let Some(bytes) = call.args.get(2).and_then(Expr::number).filter(|n| *n >= 0) else {
            return unsupported(line, "a read without a number of bytes");
        };
        let dontwait = call.args.get(3).is_some_and(|f| words_of(f).contains(&"MSG_DONTWAIT"));
        let Some(conn) = self.stack.conn.as_ref().filter(|_| kind == Kind::Connection) else {
            return Ok(Some(Err("ENOTCONN")));
        };
        if conn.readable() > 0 {
            let now = self.stack.now;
            return Ok(Some(Ok(self.stack.act(|conn| conn.read(now, bytes as u64)) as i64)));
        }
        if let Some(error) = self.stack.error.take() {
            return Ok(Some(Err(if error == "EPIPE" { "ECONNRESET" } else { error })));
        }
        if conn.peer_closed() || conn.has_failed() || self.sockets.deaf {
            return Ok(Some(Ok(0)));
        }
        Ok((nonblocking || dontwait).then_some(Err("EAGAIN")))
    }
}

/// Words of `a|b`.
fn words_of(e: &Expr) -> Vec<&str> {
    match e {
        Expr::Word(word) => vec![word],
        Expr::Or(all) => all.iter().filter_map(Expr::word).collect(),
        _ => Vec::new(),
    }
}

/// The number in `[n]`.
fn single(e: &Expr) -> Option<i64> {
    match e {
        Expr::List(items) => match items.as_slice() {
            [item] => item.number(),
            _ => None,
        },
        e => e.number(),
    }
}

/// Bytes of all pieces of `[{..., n}, ...]`.
fn iovec_bytes(e: &Expr) -> Option<i64> {
    let Expr::List(items) = e else { return None };
    items.iter().try_fold(0i64, |sum, item| match item {
        Expr::Braces(piece) => sum.checked_add(piece.get(1)?.number()?),
        _ => None,
    })
}

/// Numbers of the errors that a socket keeps (`asm-generic/errno.h`).
fn errno(name: &str) -> i64 {
    match name {
        "EPIPE" => 32,
        "ECONNRESET" => 104,
        "ETIMEDOUT" => 110,
        "ECONNREFUSED" => 111,
        _ => -1,
    }
}

/// The answer beside what the script says.
fn returned(line: u32, call: &Call, answer: Answer) -> Result<(), Stop> {
    let agrees = match (&answer, &call.errno) {
        (Err(error), Some(wanted)) => error == wanted || (*error == "EAGAIN" && wanted == "EWOULDBLOCK"),
        (Err(_), None) => call.result == Expr::Int(-1),
        (Ok(_), Some(_)) => false,
        (Ok(n), None) => match &call.result {
            Expr::Ellipsis => true,
            Expr::Word(_) | Expr::Or(_) => return unsupported(line, "a result in words"),
            result => result.number() == Some(*n),
        },
    };
    match (agrees, answer) {
        (true, _) => Ok(()),
        (false, Ok(n)) => fail(line, call, format!("it returned {n}")),
        (false, Err(error)) => fail(line, call, format!("it returned -1 {error}")),
    }
}
