//! Socket calls: arguments, effects, results and return times.

mod files;
mod message;
mod open;
mod option;
mod ready;
mod transfer;

use super::socket::Kind;
use super::{unsupported, Answer, Simulated, Stop};
use crate::ast::{Call, Expr};
pub use files::Other;
pub use ready::Epoll;

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

/// Reject calls that cannot be played.
pub fn survey(line: u32, call: &Call) -> Result<(), Stop> {
    if !CALLS.contains(&call.name.as_str()) {
        return unsupported(line, format!("call '{}'", call.name));
    }
    option::survey(line, call)
}

impl Simulated<'_> {
    /// Make a socket call. Returns `None` if the call blocks; it may be repeated later.
    pub(super) fn carry_out(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
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
            // A later connection has replaced this one.
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

/// Return the words of `a|b`.
fn words_of(e: &Expr) -> Vec<&str> {
    match e {
        Expr::Word(word) => vec![word],
        Expr::Or(all) => all.iter().filter_map(Expr::word).collect(),
        _ => Vec::new(),
    }
}

/// Return the size of each piece of `[{..., n}, ...]`, bytes.
fn iovec_pieces(e: &Expr) -> Option<Vec<i64>> {
    let Expr::List(items) = e else { return None };
    let piece = |item: &Expr| match item {
        Expr::Braces(piece) => piece.get(1)?.number().filter(|n| *n >= 0),
        _ => None,
    };
    items.iter().map(piece).collect()
}

/// Return the total size of all pieces, bytes.
fn iovec_bytes(e: &Expr) -> Option<i64> {
    iovec_pieces(e)?.iter().try_fold(0i64, |sum, n| sum.checked_add(*n))
}

/// Return the number of an error stored in a socket (`asm-generic/errno.h`).
fn errno(name: &str) -> i64 {
    match name {
        "EPIPE" => 32,
        "ECONNRESET" => 104,
        "ETIMEDOUT" => 110,
        "ECONNREFUSED" => 111,
        _ => -1,
    }
}
