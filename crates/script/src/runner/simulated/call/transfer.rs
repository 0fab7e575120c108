//! Data to and from the connection.

use ackclock_tcp::State;

use super::{iovec_pieces, words_of, Answer};
use crate::ast::{Call, Expr};
use crate::runner::simulated::socket::Kind;
use crate::runner::simulated::Simulated;
use crate::runner::{unsupported, Stop};
use crate::shape;

/// Maximum size of a single write, bytes. A larger one is certainly a mistake and would never complete.
const MAX_WRITE: i64 = 64 << 20;
/// Maximum number of pieces of a zero-copy write in one buffer (Linux MAX_SKB_FRAGS).
const MAX_PIECES: usize = 17;

impl Simulated<'_> {
    pub(super) fn write(&mut self, line: u32, call: &Call, fd: i64) -> Result<Option<Answer>, Stop> {
        let (pieces, flags) = match call.name.as_str() {
            "writev" => (call.args.get(1).and_then(iovec_pieces), None),
            "sendmsg" => {
                let Some(Expr::Braces(items)) = call.args.get(1) else {
                    return unsupported(line, "a sendmsg without a message");
                };
                if shape::field(items, "msg_control").is_some_and(|c| *c != Expr::List(Vec::new())) {
                    return unsupported(line, "a control message to send");
                }
                let iov = shape::field(items, "msg_iov").and_then(iovec_pieces);
                (iov, call.args.get(2))
            }
            _ => (call.args.get(2).and_then(Expr::number).map(|n| vec![n]), call.args.get(3)),
        };
        let total = pieces.as_ref().and_then(|p| p.iter().try_fold(0i64, |sum, n| sum.checked_add(*n)));
        let Some(bytes) = total.filter(|n| (0..=MAX_WRITE).contains(n)) else {
            return unsupported(line, format!("a write that is not of 0 to {MAX_WRITE} bytes"));
        };
        let (mut more, mut record, mut zerocopy, mut dontwait) = (false, false, false, false);
        for word in flags.into_iter().flat_map(words_of) {
            match word {
                "MSG_MORE" => more = true,
                "MSG_EOR" => record = true,
                "MSG_ZEROCOPY" => zerocopy = true,
                "MSG_DONTWAIT" => dontwait = true,
                "MSG_NOSIGNAL" => {}
                other => return unsupported(line, format!("flag '{other}' of a write")),
            }
        }
        if flags.and_then(Expr::number).is_some_and(|n| n != 0) {
            return unsupported(line, "a numeric flag of a write");
        }
        let nowhere = call.name != "writev" && call.args.get(1).and_then(Expr::word) == Some("NULL");
        let open = self.stack.conn.as_ref().is_some_and(|c| c.state() == State::Established);
        if bytes > 0 && nowhere && open {
            return Ok(Some(Err("EFAULT")));
        }
        let socket = self.sockets.get(fd);
        let zerocopy = zerocopy && socket.is_some_and(|s| s.options.zerocopy);
        let pieces = pieces.unwrap_or_default();
        let chunks: Vec<i64> = match zerocopy {
            true => {
                let filled: Vec<i64> = pieces.into_iter().filter(|n| *n > 0).collect();
                filled.chunks(MAX_PIECES).map(|c| c.iter().sum()).collect()
            }
            false => vec![bytes],
        };
        self.put(line, fd, &chunks, more, record, zerocopy, dontwait)
    }

    /// Write data, each chunk into separate buffers.
    #[allow(clippy::too_many_arguments, reason = "the arguments of the system call")]
    pub(super) fn put(
        &mut self,
        line: u32,
        fd: i64,
        chunks: &[i64],
        more: bool,
        record: bool,
        zerocopy: bool,
        dontwait: bool,
    ) -> Result<Option<Answer>, Stop> {
        let Some(socket) = self.sockets.get(fd) else { return Ok(Some(Err("EBADF"))) };
        let (kind, nonblocking) = (socket.kind, socket.nonblocking || dontwait);
        let stamping = socket.options.stamping;
        let bytes: i64 = chunks.iter().sum();
        if bytes > MAX_WRITE {
            return unsupported(line, format!("a write of more than {MAX_WRITE} bytes"));
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
        if std::mem::take(&mut self.sockets.writing) {
            self.sockets.writing = conn.unwritten() > 0;
            return Ok((!self.sockets.writing).then_some(Ok(bytes)));
        }
        let now = self.stack.now;
        if bytes > 0 {
            for (n, chunk) in chunks.iter().enumerate() {
                let record = record || n + 1 < chunks.len();
                self.stack.act(|conn| conn.write_marked(now, *chunk as u64, more, record));
            }
            if let Some(conn) = &self.stack.conn {
                let end = conn.written();
                let (stamps, base) = stamping.unwrap_or_default();
                self.sockets.notices.wrote(end, zerocopy, stamps, (end - 1).wrapping_sub(base) as u32);
            }
        }
        let left = self.stack.conn.as_ref().map_or(0, |c| c.unwritten() as i64);
        if left > 0 && nonblocking {
            self.stack.act(|conn| conn.stop_waiting());
            return Ok(Some(if left == bytes { Err("EAGAIN") } else { Ok(bytes - left) }));
        }
        self.sockets.writing = left > 0;
        Ok((left == 0).then_some(Ok(bytes)))
    }

    pub(super) fn read(
        &mut self,
        line: u32,
        call: &Call,
        fd: i64,
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        if call.name == "readv" {
            let Some(bytes) = call.args.get(1).and_then(super::iovec_bytes) else {
                return unsupported(line, "a read without a number of bytes");
            };
            return self.take(line, fd, bytes, &[], nonblocking);
        }
        let flags = call.args.get(3).map(words_of).unwrap_or_default();
        if call.args.get(3).is_some_and(|f| f.number() != Some(0)) && flags.is_empty() {
            return unsupported(line, "a numeric flag of a read");
        }
        let Some(bytes) = call.args.get(2).and_then(Expr::number).filter(|n| *n >= 0) else {
            return unsupported(line, "a read without a number of bytes");
        };
        let nowhere = bytes > 0 && call.args.get(1).and_then(Expr::word) == Some("NULL");
        if nowhere && self.stack.conn.as_ref().is_some_and(|c| c.readable() > 0) {
            return Ok(Some(Err("EFAULT")));
        }
        self.take(line, fd, bytes, &flags, nonblocking)
    }

    /// Read up to `bytes` bytes.
    pub(super) fn take(
        &mut self,
        line: u32,
        fd: i64,
        bytes: i64,
        flags: &[&str],
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        let known = ["MSG_DONTWAIT", "MSG_PEEK", "MSG_NOSIGNAL"];
        if let Some(other) = flags.iter().find(|w| !known.contains(w)) {
            return unsupported(line, format!("flag '{other}' of a read"));
        }
        let connected = self.sockets.get(fd).is_some_and(|s| s.kind == Kind::Connection);
        let Some(conn) = self.stack.conn.as_ref().filter(|_| connected) else {
            return Ok(Some(Err("ENOTCONN")));
        };
        if conn.readable() > 0 {
            if flags.contains(&"MSG_PEEK") {
                return Ok(Some(Ok(bytes.min(conn.readable() as i64))));
            }
            let now = self.stack.now;
            return Ok(Some(Ok(self.stack.act(|conn| conn.read(now, bytes as u64)) as i64)));
        }
        if let Some(error) = self.stack.error.take() {
            return Ok(Some(Err(if error == "EPIPE" { "ECONNRESET" } else { error })));
        }
        if conn.peer_closed() || conn.has_failed() || self.sockets.deaf {
            return Ok(Some(Ok(0)));
        }
        Ok((nonblocking || flags.contains(&"MSG_DONTWAIT")).then_some(Err("EAGAIN")))
    }
}
