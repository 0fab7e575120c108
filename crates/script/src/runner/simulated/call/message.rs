//! `recvmsg`: data, or an error queue entry, whose control messages are compared with the script.

use crate::ast::{Call, Expr};
use crate::runner::constant::value;
use crate::runner::control::{check_message, Control};
use crate::runner::simulated::notices::Notice;
use crate::runner::simulated::Simulated;
use crate::runner::{unsupported, Stop};
use crate::shape;

use super::{words_of, Answer};

const MSG_TRUNC: i64 = 0x20;
const MSG_ERRQUEUE: i64 = 0x2000;
const ENOMSG: i64 = 42;
const ORIGIN_TIMESTAMPING: i64 = 4;
const ORIGIN_ZEROCOPY: i64 = 5;
const ZEROCOPY_COPIED: i64 = 1;

impl Simulated<'_> {
    pub(super) fn recvmsg(
        &mut self,
        line: u32,
        call: &Call,
        fd: i64,
        nonblocking: bool,
    ) -> Result<Option<Answer>, Stop> {
        let Some(Expr::Braces(message)) = call.args.get(1) else {
            return unsupported(line, "a recvmsg without a message");
        };
        let flags = call.args.get(2).map_or(Ok(0), |e| value(line, e))?;
        if flags & MSG_ERRQUEUE != 0 {
            let Some(notice) = self.sockets.notices.take() else { return Ok(Some(Err("EAGAIN"))) };
            let (controls, truncated) = match notice {
                Notice::Zerocopy { first, last } => {
                    let error = [0, ORIGIN_ZEROCOPY, 0, ZEROCOPY_COPIED, first as i64, last as i64];
                    (vec![Control::Error(error)], 0)
                }
                Notice::Stamp { at, stage, key } => {
                    let error = [ENOMSG, ORIGIN_TIMESTAMPING, 0, 0, stage, key as i64];
                    (vec![Control::Stamp(at), Control::Error(error)], MSG_TRUNC)
                }
            };
            let flags = MSG_ERRQUEUE | truncated;
            check_message(line, call, message, flags, &controls, self.options.tolerance)?;
            return Ok(Some(Ok(0)));
        }
        let bytes = shape::field(message, "msg_iov").and_then(super::iovec_bytes);
        let Some(bytes) = bytes else { return unsupported(line, "a recvmsg without a number of bytes") };
        let flag_words = call.args.get(2).map(words_of).unwrap_or_default();
        let answer = self.take(line, fd, bytes, &flag_words, nonblocking)?;
        if let Some(Ok(n)) = answer {
            let inq = self.sockets.get(fd).is_some_and(|s| s.options.inq);
            let controls = match &self.stack.conn {
                // A FIN counts as one unread byte (Linux `tcp_inq_hint`).
                Some(conn) if inq && n > 0 => {
                    vec![Control::Waiting(conn.readable() as i64 + conn.peer_closed() as i64)]
                }
                _ => Vec::new(),
            };
            check_message(line, call, message, 0, &controls, self.options.tolerance)?;
        }
        Ok(answer)
    }
}
