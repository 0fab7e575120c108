//! Constants of the socket interface, with Linux's numbers. Arguments and results are compared as numbers, however
//! they are written.

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
    ("AF_INET", 2),
    ("PF_INET", 2),
    ("AF_INET6", 10),
    ("PF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_NONBLOCK", 0o4000),
    ("SOCK_CLOEXEC", 0o2000000),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("SO_REUSEADDR", 2),
    ("SO_ERROR", 4),
    ("SO_SNDBUF", 7),
    ("SO_RCVBUF", 8),
    ("SO_KEEPALIVE", 9),
    ("SO_OOBINLINE", 10),
    ("SO_PRIORITY", 12),
    ("SO_LINGER", 13),
    ("SO_REUSEPORT", 15),
    ("SO_MARK", 36),
    ("SO_BUSY_POLL", 46),
    ("SO_MAX_PACING_RATE", 47),
    ("SO_ZEROCOPY", 60),
    ("TCP_NODELAY", 1),
    ("TCP_MAXSEG", 2),
    ("TCP_CORK", 3),
    ("TCP_KEEPIDLE", 4),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 6),
    ("TCP_SYNCNT", 7),
    ("TCP_LINGER2", 8),
    ("TCP_DEFER_ACCEPT", 9),
    ("TCP_WINDOW_CLAMP", 10),
    ("TCP_QUICKACK", 12),
    ("TCP_CONGESTION", 13),
    ("TCP_USER_TIMEOUT", 18),
    ("TCP_FASTOPEN", 23),
    ("TCP_NOTSENT_LOWAT", 25),
    ("TCP_FASTOPEN_CONNECT", 30),
    ("TCP_FASTOPEN_NO_COOKIE", 34),
    ("TCP_INQ", 36),
    ("IP_TOS", 1),
    ("IP_MTU_DISCOVER", 10),
    ("IP_FREEBIND", 15),
    ("IP_TRANSPARENT", 19),
    ("IPV6_V6ONLY", 26),
    ("IPV6_TCLASS", 67),
    // linux/in.h, linux/sockios.h, fcntl.h
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_PROBE", 3),
    ("FIONREAD", 0x541b),
    ("SIOCINQ", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("SIOCOUTQNSD", 0x894b),
    ("F_GETFD", 1),
    ("F_SETFD", 2),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    // Constants that packetdrill itself defines, for IPv4.
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

/// Return the number of a constant.
pub fn number(name: &str) -> Option<i64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, n)| *n)
}

/// Return the number of an expression. A single expression in brackets counts as the expression itself.
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

/// Return the value of an expression where C has an `int`. Like packetdrill, accepts both signed and unsigned values.
pub fn int(line: u32, e: &Expr) -> Result<i64, Stop> {
    let n = value(line, e)?;
    match (i32::MIN as i64..=u32::MAX as i64).contains(&n) {
        true => Ok(n),
        false => unsupported(line, format!("the number {n} as an int")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_int_has_32_bits() {
        let of = |n| int(1, &Expr::Int(n)).ok();
        assert_eq!((of(-1), of(0xffff_ffff)), (Some(-1), Some(0xffff_ffff)));
        assert_eq!((of(1 << 32), of(-(1 << 31) - 1)), (None, None));
    }

    #[test]
    fn sums_of_names() {
        let word = |w: &str| Expr::Word(w.into());
        let e = Expr::List(vec![Expr::Or(vec![word("EPOLLIN"), word("EPOLLET"), Expr::Hex(0x10)])]);
        assert_eq!(value(1, &e).unwrap(), 0x8000_0011);
        assert!(value(1, &word("EPOLLSOMETHING")).is_err());
    }
}
