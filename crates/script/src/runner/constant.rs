//! Names of the socket interface's constants, with Linux's numbers: what a call was given or must return is compared as
//! a number, however it is written.

use super::{unsupported, Stop};
use crate::ast::Expr;

const CONSTANTS: &[(&str, i64)] = &[
    ("NULL", 0),
    // sys/epoll.h, poll.h
    ("EPOLLIN", 0x1),
    ("EPOLLPRI", 0x2),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLRDBAND", 0x80),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLWRBAND", 0x200),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLEXCLUSIVE", 1 << 28),
    ("EPOLLWAKEUP", 1 << 29),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLLET", 1 << 31),
    ("POLLIN", 0x1),
    ("POLLPRI", 0x2),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLRDBAND", 0x80),
    ("POLLWRNORM", 0x100),
    ("POLLWRBAND", 0x200),
    ("POLLRDHUP", 0x2000),
    // sys/socket.h
    ("MSG_OOB", 0x1),
    ("MSG_PEEK", 0x2),
    ("MSG_CTRUNC", 0x8),
    ("MSG_TRUNC", 0x20),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_MORE", 0x8000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("SOL_SOCKET", 1),
    ("SOL_IP", 0),
    ("IPPROTO_IP", 0),
    ("SOL_TCP", 6),
    ("IPPROTO_TCP", 6),
    ("SOL_IPV6", 41),
    ("IPPROTO_IPV6", 41),
    ("TCP_CM_INQ", 36),
    ("SCM_TIMESTAMPING", 37),
    ("SO_TIMESTAMPING", 37),
    ("IP_RECVERR", 11),
    ("IPV6_RECVERR", 25),
    // What the kernel's own runner of scripts defines, for IPv4.
    ("CMSG_LEVEL_IP", 0),
    ("CMSG_TYPE_RECVERR", 11),
    // linux/errqueue.h, linux/net_tstamp.h
    ("SO_EE_ORIGIN_ZEROCOPY", 5),
    ("SO_EE_ORIGIN_TIMESTAMPING", 4),
    ("SO_EE_CODE_ZEROCOPY_COPIED", 1),
    ("SCM_TSTAMP_SND", 0),
    ("SCM_TSTAMP_SCHED", 1),
    ("SCM_TSTAMP_ACK", 2),
    ("SOF_TIMESTAMPING_TX_SOFTWARE", 1 << 1),
    ("SOF_TIMESTAMPING_SOFTWARE", 1 << 4),
    ("SOF_TIMESTAMPING_OPT_ID", 1 << 7),
    ("SOF_TIMESTAMPING_TX_SCHED", 1 << 8),
    ("SOF_TIMESTAMPING_TX_ACK", 1 << 9),
    ("SOF_TIMESTAMPING_OPT_TSONLY", 1 << 11),
    ("SOF_TIMESTAMPING_OPT_ID_TCP", 1 << 16),
    // asm-generic/errno.h
    ("EPIPE", 32),
    ("ENOMSG", 42),
    ("ECONNRESET", 104),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    // fcntl.h, sys/epoll.h
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_NONBLOCK", 0o4000),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
];

/// The number that a name stands for.
pub fn number(name: &str) -> Option<i64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, n)| *n)
}

/// The number that an expression stands for; a lone expression in brackets for itself.
pub fn value(line: u32, e: &Expr) -> Result<i64, Stop> {
    match e {
        Expr::Int(n) => Ok(*n),
        Expr::Hex(n) if i64::try_from(*n).is_ok() => Ok(*n as i64),
        Expr::Word(name) => match number(name) {
            Some(n) => Ok(n),
            None => unsupported(line, format!("constant '{name}'")),
        },
        Expr::Or(all) => all.iter().try_fold(0, |sum, e| Ok(sum | value(line, e)?)),
        Expr::List(items) if items.len() == 1 => value(line, &items[0]),
        other => unsupported(line, format!("the expression '{other}' as a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_names() {
        let word = |w: &str| Expr::Word(w.into());
        let e = Expr::List(vec![Expr::Or(vec![word("EPOLLIN"), word("EPOLLET"), Expr::Hex(0x10)])]);
        assert_eq!(value(1, &e).unwrap(), 0x8000_0011);
        assert!(value(1, &word("EPOLLSOMETHING")).is_err());
    }
}
