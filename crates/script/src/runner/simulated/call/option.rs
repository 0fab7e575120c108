//! Socket options, and ioctl.

use super::{errno, Answer};
use crate::ast::{Call, Expr};
use crate::runner::constant::{int, value, value as number_of};
use crate::runner::simulated::socket::Kind;
use crate::runner::simulated::Simulated;
use crate::runner::{fail, unsupported, Stop};
use crate::shape;

/// Options without observable effect in a script.
const IGNORED: &[&str] = &[
    "IPV6_RECVERR",
    "IPV6_TCLASS",
    "IPV6_V6ONLY",
    "IP_FREEBIND",
    "IP_MTU_DISCOVER",
    "IP_RECVERR",
    "IP_TOS",
    "IP_TRANSPARENT",
    "SO_BINDTODEVICE",
    "SO_BUSY_POLL",
    "SO_MARK",
    "SO_PRIORITY",
    "SO_RCVTIMEO",
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDTIMEO",
];

const SET: &[&str] = &[
    "SO_KEEPALIVE",
    "SO_LINGER",
    "SO_MAX_PACING_RATE",
    "SO_OOBINLINE",
    "SO_RCVBUF",
    "SO_SNDBUF",
    "SO_TIMESTAMPING",
    "SO_ZEROCOPY",
    "TCP_CONGESTION",
    "TCP_CORK",
    "TCP_DEFER_ACCEPT",
    "TCP_INQ",
    "TCP_KEEPCNT",
    "TCP_KEEPIDLE",
    "TCP_KEEPINTVL",
    "TCP_MAXSEG",
    "TCP_NODELAY",
    "TCP_NOTSENT_LOWAT",
    "TCP_USER_TIMEOUT",
];

const GET: &[&str] = &[
    "SO_ERROR",
    "SO_KEEPALIVE",
    "SO_SNDBUF",
    "SO_ZEROCOPY",
    "TCP_CORK",
    "TCP_INQ",
    "TCP_KEEPCNT",
    "TCP_KEEPIDLE",
    "TCP_KEEPINTVL",
    "TCP_MAXSEG",
    "TCP_NODELAY",
    "TCP_NOTSENT_LOWAT",
];

/// MSS of a socket without a peer (Linux TCP_MSS_DEFAULT).
const UNKNOWN_MSS: u32 = 536;

/// Supported flags of SO_TIMESTAMPING.
const STAMPS: i64 = 1 << 1 | 1 << 4 | 1 << 7 | 1 << 8 | 1 << 9;

/// Reject options that cannot be played.
pub fn survey(line: u32, call: &Call) -> Result<(), Stop> {
    let option = call.args.get(2).and_then(Expr::word);
    let request = call.args.get(1).and_then(Expr::word);
    let known = match call.name.as_str() {
        "setsockopt" => option.is_some_and(|o| SET.contains(&o) || IGNORED.contains(&o)),
        "getsockopt" => option.is_some_and(|o| GET.contains(&o)),
        "ioctl" => matches!(request, Some("SIOCINQ" | "FIONREAD" | "SIOCOUTQ" | "SIOCOUTQNSD")),
        _ => true,
    };
    if !known {
        let option = option.or(request).unwrap_or("without a name");
        return unsupported(line, format!("{} option '{option}'", call.name));
    }
    Ok(())
}

impl Simulated<'_> {
    #[allow(clippy::too_many_lines, reason = "one arm for each option")]
    pub(super) fn setsockopt(&mut self, line: u32, call: &Call, fd: i64) -> Result<Answer, Stop> {
        let name = call.args.get(2).and_then(Expr::word).unwrap_or_default();
        if IGNORED.contains(&name) {
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
        let value = match call.args.get(3) {
            Some(e) if value(line, e).is_ok() => Some(int(line, e)?),
            _ => None,
        };
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
            ("SO_SNDBUF", Some(n), _) if n >= 0 => {
                socket.options.send_buffer = Some(n as u64);
                let limit = self.stack.host.send_limit(&socket.options);
                if live {
                    self.stack.act(|conn| conn.set_send_buffer(limit));
                }
            }
            ("SO_RCVBUF", Some(n), _) if n >= 0 => {
                socket.options.receive_buffer = Some(n as u64);
                let memory = self.stack.host.receive_limit(n as u64);
                if live {
                    self.stack.act(|conn| conn.set_receive_buffer(memory));
                }
            }
            ("SO_MAX_PACING_RATE", Some(n), _) => {
                let most = match n as u32 {
                    u32::MAX => u64::MAX, // all four bytes 0xff: no limit
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
            ("SO_ZEROCOPY", Some(on), _) => socket.options.zerocopy = on != 0,
            ("TCP_INQ", Some(on), _) => socket.options.inq = on != 0,
            ("TCP_NOTSENT_LOWAT", Some(n), _) => {
                socket.options.notsent_lowat = Some(n as u32 as u64);
                if live {
                    let bytes = self.notsent_lowat(fd);
                    self.stack.act(|conn| conn.set_notsent_lowat(bytes));
                }
            }
            ("SO_TIMESTAMPING", Some(flags), _) => {
                if flags & !STAMPS != 0 {
                    return unsupported(line, "this SO_TIMESTAMPING");
                }
                let base = self.stack.conn.as_ref().map_or(0, |c| c.acked());
                let socket = self.sockets.get(fd).expect("invariant: the caller looked it up");
                socket.options.stamping = Some((flags, base));
            }
            ("SO_LINGER", ..) => {
                let Some(Expr::Braces(fields)) = call.args.get(3) else {
                    return unsupported(line, "this SO_LINGER");
                };
                let of = |a, b| shape::field(fields, a).or(shape::field(fields, b)).and_then(Expr::number);
                let (on, seconds) = (of("onoff", "l_onoff"), of("linger", "l_linger"));
                socket.options.linger = on.filter(|on| *on != 0).and(seconds);
            }
            ("TCP_USER_TIMEOUT", Some(ms), _) if ms >= 0 => {
                socket.options.user_timeout = ackclock_core::Span::from_ms(ms as u64);
                let timeout = socket.options.user_timeout;
                if live {
                    self.stack.act(|conn| conn.set_user_timeout(timeout));
                }
            }
            ("SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT", Some(n), _) => {
                if name != "SO_KEEPALIVE" && !(1..=32_767).contains(&n) {
                    return Ok(Err("EINVAL")); // Linux MAX_TCP_KEEPIDLE and others
                }
                let keep = &mut socket.options.keepalive;
                match name {
                    "SO_KEEPALIVE" => keep.on = n != 0,
                    "TCP_KEEPIDLE" => keep.idle = Some(n as u64),
                    "TCP_KEEPINTVL" => keep.interval = Some(n as u64),
                    _ => keep.probes = Some(n.min(127) as u64),
                }
                let options = socket.options.clone();
                let (now, settings) = (self.stack.now, self.stack.host.keepalive(&options));
                if live {
                    self.stack.act(|conn| conn.set_keepalive(now, settings));
                }
            }
            // No change: the option is already off.
            ("TCP_DEFER_ACCEPT" | "SO_OOBINLINE", Some(0), _) => {}
            (name, ..) => return unsupported(line, format!("setsockopt '{name}' here")),
        }
        Ok(Ok(0))
    }

    pub(super) fn getsockopt(&mut self, line: u32, call: &Call, fd: i64) -> Result<Answer, Stop> {
        let name = call.args.get(2).and_then(Expr::word).unwrap_or_default();
        let wanted = call.args.get(3);
        let options = self.sockets.get(fd).expect("invariant: the caller looked it up").options.clone();
        let (keep, host) = (options.keepalive, self.stack.host.setup.sysctls.clone());
        let (value, word) = match name {
            "SO_ERROR" => match self.stack.error.take() {
                None => (0, "0"),
                Some(error) => (errno(error), error),
            },
            "SO_SNDBUF" => {
                let live = self.stack.conn.as_ref().and_then(|c| c.send_buffer());
                (live.unwrap_or(self.stack.host.send_limit(&options).bytes) as i64, "")
            }
            "TCP_NODELAY" => (options.nodelay as i64, ""),
            "TCP_CORK" => (options.cork as i64, ""),
            "TCP_INQ" => (options.inq as i64, ""),
            "SO_ZEROCOPY" => (options.zerocopy as i64, ""),
            "TCP_MAXSEG" => match &self.stack.conn {
                Some(conn) if conn.is_established() => (conn.info().smss as i64, ""),
                _ => (options.max_segment.unwrap_or(UNKNOWN_MSS) as i64, ""),
            },
            "TCP_NOTSENT_LOWAT" => (options.notsent_lowat.unwrap_or(0) as i64, ""),
            "SO_KEEPALIVE" => (keep.on as i64, ""),
            "TCP_KEEPIDLE" => (keep.idle.unwrap_or(host.tcp_keepalive_time) as i64, ""),
            "TCP_KEEPINTVL" => (keep.interval.unwrap_or(host.tcp_keepalive_intvl) as i64, ""),
            "TCP_KEEPCNT" => (keep.probes.unwrap_or(host.tcp_keepalive_probes) as i64, ""),
            name => return unsupported(line, format!("getsockopt '{name}'")),
        };
        let agrees = match wanted {
            Some(Expr::List(items)) => match items.as_slice() {
                [Expr::Ellipsis] => true,
                [Expr::Word(w)] if w == word => true,
                [e] => number_of(line, e)? == value,
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

    pub(super) fn ioctl(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let conn = self.stack.conn.as_ref();
        let (is, what) = match call.args.get(1).and_then(Expr::word) {
            Some("SIOCOUTQ") => (conn.map_or(0, |c| c.written() - c.acked()), "bytes are not acknowledged"),
            Some("SIOCOUTQNSD") => (conn.map_or(0, |c| c.info().unsent), "bytes are not sent"),
            _ => (conn.map_or(0, |c| c.readable()), "bytes wait"),
        };
        match call.args.get(2).map(|e| value(line, e)).transpose()? {
            Some(wanted) if wanted == is as i64 => Ok(Ok(0)),
            _ => fail(line, call, format!("{is} {what}")),
        }
    }
}
