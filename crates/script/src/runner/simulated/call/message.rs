//! `recvmsg`: data, or an entry of the error queue, with its control messages beside what the script says.

use crate::ast::{Call, Expr};
use crate::runner::constant::value;
use crate::runner::simulated::notices::Notice;
use crate::runner::simulated::Simulated;
use crate::runner::{fail, seconds, unsupported, Stop, START};
use crate::shape;

use super::{words_of, Answer};

const MSG_TRUNC: i64 = 0x20;
const MSG_ERRQUEUE: i64 = 0x2000;
const SOL_SOCKET: i64 = 1;
const SOL_TCP: i64 = 6;
const TCP_CM_INQ: i64 = 36;
const SCM_TIMESTAMPING: i64 = 37;
const ENOMSG: i64 = 42;
const ORIGIN_TIMESTAMPING: i64 = 4;
const ORIGIN_ZEROCOPY: i64 = 5;
const ZEROCOPY_COPIED: i64 = 1;
/// `IP_RECVERR` at `SOL_IP`, `IPV6_RECVERR` at `SOL_IPV6`.
const RECVERR: [(i64, i64); 2] = [(0, 11), (41, 25)];

/// A control message that the socket hands out.
enum Control {
    /// TCP_CM_INQ: bytes that still wait.
    Waiting(i64),
    /// SCM_TIMESTAMPING: a time.
    Stamp(ackclock_core::Time),
    /// IP_RECVERR: errno, origin, type, code, info, data.
    Error([i64; 6]),
}

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
            self.check_message(line, call, message, MSG_ERRQUEUE | truncated, &controls)?;
            return Ok(Some(Ok(0)));
        }
        let bytes = shape::field(message, "msg_iov").and_then(super::iovec_bytes);
        let Some(bytes) = bytes else { return unsupported(line, "a recvmsg without a number of bytes") };
        let flag_words = call.args.get(2).map(words_of).unwrap_or_default();
        let answer = self.take(line, fd, bytes, &flag_words, nonblocking)?;
        if let Some(Ok(n)) = answer {
            let inq = self.sockets.get(fd).is_some_and(|s| s.options.inq);
            let controls = match &self.stack.conn {
                // A FIN counts as one byte that waits (Linux `tcp_inq_hint`).
                Some(conn) if inq && n > 0 => {
                    vec![Control::Waiting(conn.readable() as i64 + conn.peer_closed() as i64)]
                }
                _ => Vec::new(),
            };
            self.check_message(line, call, message, 0, &controls)?;
        }
        Ok(answer)
    }

    fn check_message(
        &self,
        line: u32,
        call: &Call,
        message: &[Expr],
        flags: i64,
        controls: &[Control],
    ) -> Result<(), Stop> {
        if let Some(wanted) = shape::field(message, "msg_flags") {
            if *wanted != Expr::Ellipsis && value(line, wanted)? != flags {
                return fail(line, call, format!("msg_flags is {flags:#x}"));
            }
        }
        let Some(wanted) = shape::field(message, "msg_control") else { return Ok(()) };
        let wanted = match wanted {
            Expr::List(items) => items.as_slice(),
            Expr::Ellipsis => return Ok(()),
            _ => return unsupported(line, "this msg_control"),
        };
        if wanted.len() != controls.len() {
            return fail(line, call, format!("{} control messages", controls.len()));
        }
        for (wanted, control) in wanted.iter().zip(controls) {
            let Expr::Braces(fields) = wanted else { return unsupported(line, "this control message") };
            if let Some(differs) = self.control_differs(line, fields, control)? {
                return fail(line, call, differs);
            }
        }
        Ok(())
    }

    /// What differs, if anything does.
    fn control_differs(&self, line: u32, fields: &[Expr], control: &Control) -> Result<Option<String>, Stop> {
        let of = |name: &str| match shape::field(fields, name) {
            Some(e) => Ok(e),
            None => unsupported(line, format!("a control message without {name}")),
        };
        let kind = (value(line, of("cmsg_level")?)?, value(line, of("cmsg_type")?)?);
        let data = of("cmsg_data")?;
        Ok(match control {
            Control::Waiting(n) => {
                let same = kind == (SOL_TCP, TCP_CM_INQ) && value(line, data)? == *n;
                (!same).then(|| format!("TCP_CM_INQ is {n}"))
            }
            Control::Stamp(at) => {
                if kind != (SOL_SOCKET, SCM_TIMESTAMPING) {
                    return Ok(Some("SCM_TIMESTAMPING comes first".into()));
                }
                let Expr::Braces(data) = data else { return unsupported(line, "this time stamp") };
                let part = |name| shape::field(data, name).map_or(Ok(0), |e| value(line, e));
                let said = part("scm_sec")? * 1_000_000_000 + part("scm_nsec")?;
                let was = at.since(START);
                let off = said.abs_diff(was.0 as i64);
                (off > self.options.tolerance.0).then(|| format!("the time stamp is {}", seconds(was)))
            }
            Control::Error(is) => {
                if !RECVERR.contains(&kind) {
                    return Ok(Some("IP_RECVERR".into()));
                }
                let Expr::Braces(data) = data else { return unsupported(line, "this extended error") };
                let names = ["ee_errno", "ee_origin", "ee_type", "ee_code", "ee_info", "ee_data"];
                for (name, is) in names.iter().zip(is) {
                    match shape::field(data, name) {
                        None | Some(Expr::Ellipsis) => {}
                        Some(e) if value(line, e)? == *is => {}
                        Some(_) => return Ok(Some(format!("{name} is {is}"))),
                    }
                }
                None
            }
        })
    }
}
