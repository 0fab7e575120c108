//! Compares control messages of `recvmsg` with the script.

use ackclock_core::{Span, Time};

use super::constant::value;
use super::{fail, seconds, unsupported, Stop, START};
use crate::ast::{Call, Expr};
use crate::shape;

const SOL_SOCKET: i64 = 1;
const SOL_TCP: i64 = 6;
const TCP_CM_INQ: i64 = 36;
const SCM_TIMESTAMPING: i64 = 37;
/// `IP_RECVERR` at `SOL_IP`, `IPV6_RECVERR` at `SOL_IPV6`.
const RECVERR: [(i64, i64); 2] = [(0, 11), (41, 25)];

/// Control message delivered by a socket.
#[derive(Clone, Debug)]
pub enum Control {
    /// TCP_CM_INQ: number of unread bytes.
    Waiting(i64),
    /// SCM_TIMESTAMPING: a time.
    Stamp(Time),
    /// IP_RECVERR: errno, origin, type, code, info, data.
    Error([i64; 6]),
}

/// Compare a message filled in by `recvmsg` with the script. Times may differ by `tolerance`.
pub fn check_message(
    line: u32,
    call: &Call,
    message: &[Expr],
    flags: i64,
    controls: &[Control],
    tolerance: Span,
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
        if let Some(differs) = control_differs(line, fields, control, tolerance)? {
            return fail(line, call, differs);
        }
    }
    Ok(())
}

/// Return a description of the first difference, if any.
fn control_differs(
    line: u32,
    fields: &[Expr],
    control: &Control,
    tolerance: Span,
) -> Result<Option<String>, Stop> {
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
            (off > tolerance.0).then(|| format!("the time stamp is {}", seconds(was)))
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
