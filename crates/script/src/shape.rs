//! Structured literals: the C structure denoted by a pair of braces. It is inferred from the field names, so that
//! an unknown structure is detected when the script is parsed.

use crate::ast::Expr;

/// Structures used by the socket interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// `{..., len}` or `{"text", len}`: one piece of a scattered write.
    Iovec,
    /// `struct sockaddr_in` or its IPv6 counterpart.
    Sockaddr,
    /// `struct msghdr`.
    Msghdr,
    /// `struct pollfd`.
    Pollfd,
    /// `struct epoll_event`.
    EpollEvent,
    /// `struct linger`.
    Linger,
    /// `struct cmsghdr` with its data.
    ControlMessage,
    /// `struct sock_extended_err`, the data of a control message.
    ExtendedError,
    /// Time in a control message.
    Timestamp,
}

/// Structure, mandatory field, and all fields.
const FIELDS: &[(Shape, &str, &[&str])] = &[
    (
        Shape::Sockaddr,
        "sa_family",
        &["sa_family", "sin_port", "sin_addr", "sin6_port", "sin6_flowinfo", "sin6_addr", "sin6_scope_id"],
    ),
    (Shape::Msghdr, "msg_iov", &["msg_name", "msg_iov", "msg_control", "msg_flags"]),
    (Shape::Pollfd, "revents", &["fd", "events", "revents"]),
    (Shape::EpollEvent, "events", &["events", "data", "fd", "ptr", "u32", "u64"]),
    (Shape::Linger, "onoff", &["onoff", "linger", "l_onoff", "l_linger"]),
    (Shape::Linger, "l_onoff", &["l_onoff", "l_linger"]),
    (Shape::ControlMessage, "cmsg_type", &["cmsg_level", "cmsg_type", "cmsg_data"]),
    (
        Shape::ExtendedError,
        "ee_errno",
        &["ee_errno", "ee_origin", "ee_type", "ee_code", "ee_info", "ee_data"],
    ),
    (Shape::Timestamp, "scm_sec", &["scm_sec", "scm_nsec"]),
];

/// Return the structure that these fields belong to; `None` if it is unknown.
pub fn of(items: &[Expr]) -> Option<Shape> {
    if let [Expr::Ellipsis | Expr::Text(_), Expr::Int(_) | Expr::Hex(_)] = items {
        return Some(Shape::Iovec);
    }
    let names: Option<Vec<&str>> = items.iter().map(name).collect();
    let names = names?;
    FIELDS
        .iter()
        .find(|(_, always, all)| names.contains(always) && names.iter().all(|n| all.contains(n)))
        .map(|(shape, ..)| *shape)
}

/// Return the value of a field between braces.
pub fn field<'a>(items: &'a [Expr], wanted: &str) -> Option<&'a Expr> {
    items.iter().find(|i| name(i) == Some(wanted)).and_then(|i| match i {
        Expr::Assign(_, value) => Some(&**value),
        _ => None,
    })
}

fn name(item: &Expr) -> Option<&str> {
    match item {
        Expr::Assign(left, _) => match &**left {
            Expr::Word(name) | Expr::Apply(name, _) => Some(name),
            _ => None,
        },
        _ => None,
    }
}
