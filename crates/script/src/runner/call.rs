//! Calls of the socket interface: arguments out of their expressions, what the call does, what it returns and when.

mod files;
mod message;
mod open;
mod option;
mod ready;
mod transfer;

use ackclock_core::Time;

use super::socket::Kind;
use super::{clock, fail, unsupported, Player, Stop, PATIENCE, START};
use crate::ast::{Call, Expr, When};
pub use files::Other;
pub use ready::Epoll;

/// What a call returned: a number, or the name of an error.
type Answer = Result<i64, &'static str>;

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
    "readv",
    "sendmsg",
    "recvmsg",
    "sendfile",
    "splice",
    "open",
    "pipe",
    "poll",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
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
    option::survey(line, call)
}

impl Player {
    pub(super) fn call(&mut self, line: u32, call: &Call, time: When) -> Result<(), Stop> {
        let began = self.stack.now;
        (self.call_began, self.wake) = (began, Time::NEVER);
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
                self.step(give_up)?;
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
        let opens = ["socket", "open", "pipe", "epoll_create", "epoll_create1", "accept", "accept4"];
        if opens.contains(&call.name.as_str()) && self.sockets.is_full() {
            return Ok(Some(Err("EMFILE")));
        }
        match call.name.as_str() {
            "socket" => return self.socket(line, call).map(Some),
            "open" => return self.open(line, call).map(Some),
            "pipe" => return self.pipe(line, call).map(Some),
            "sendfile" => return self.sendfile(line, call),
            "splice" => return self.splice(line, call),
            "poll" => return self.poll_descriptors(line, call),
            "epoll_create" | "epoll_create1" => return self.epoll_create(line, call).map(Some),
            "epoll_ctl" => return self.epoll_ctl(line, call).map(Some),
            "epoll_wait" => return self.epoll_wait(line, call),
            _ => {}
        }
        let name = call.name.as_str();
        let Some(fd) = fd else { return unsupported(line, format!("descriptor of '{name}'")) };
        if name == "close" {
            if let Some(answer) = self.close_other(fd) {
                return Ok(Some(answer));
            }
        }
        let generation = self.sockets.generation;
        let Some(socket) = self.sockets.get(fd) else { return Ok(Some(Err("EBADF"))) };
        let (kind, nonblocking) = (socket.kind, socket.nonblocking);
        if kind == Kind::Connection && socket.generation != generation {
            // A later connection took the stage.
            if name != "close" {
                return unsupported(line, "a call on an earlier connection");
            }
            self.sockets.open.retain(|s| s.fd != fd);
            return Ok(Some(Ok(0)));
        }
        Ok(match name {
            "bind" => Some(self.bind(fd)),
            "listen" => Some(self.listen(fd)),
            "accept" | "accept4" => return self.accept(line, call, kind, nonblocking),
            "connect" => return self.connect(line, fd, nonblocking),
            "setsockopt" => Some(self.setsockopt(line, call, fd)?),
            "getsockopt" => Some(self.getsockopt(line, call, fd)?),
            "fcntl" => Some(self.fcntl(line, call, fd)?),
            "ioctl" => Some(self.ioctl(line, call)?),
            "close" => Some(self.close(line, fd, kind)?),
            "shutdown" => Some(self.shutdown(line, call, kind)?),
            "write" | "send" | "sendto" | "writev" | "sendmsg" => return self.write(line, call, fd),
            "read" | "readv" | "recv" | "recvfrom" => return self.read(line, call, fd, nonblocking),
            "recvmsg" => return self.recvmsg(line, call, fd, nonblocking),
            _ => return unsupported(line, format!("call '{name}'")),
        })
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

/// Bytes of each piece of `[{..., n}, ...]`.
fn iovec_pieces(e: &Expr) -> Option<Vec<i64>> {
    let Expr::List(items) = e else { return None };
    let piece = |item: &Expr| match item {
        Expr::Braces(piece) => piece.get(1)?.number().filter(|n| *n >= 0),
        _ => None,
    };
    items.iter().map(piece).collect()
}

/// Bytes of all of them.
fn iovec_bytes(e: &Expr) -> Option<i64> {
    iovec_pieces(e)?.iter().try_fold(0i64, |sum, n| sum.checked_add(*n))
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
