//! Makes a script's socket calls as system calls: evaluates the argument expressions, and compares the results with the
//! script's expectations.

use std::collections::BTreeMap;

use ackclock_core::Span;
use ackclock_script::ast::{Call, Expr};
use ackclock_script::runner::constant::value;
use ackclock_script::runner::control::{check_message, Control};
use ackclock_script::runner::{fail, unsupported, Answer, Stop, START};
use ackclock_script::shape;

use super::wire::{HOST4, HOST6, PEER4, PEER6};
use crate::sys::raw::{self, Arg, Returned};

/// Port that a socket of the kernel binds or connects to.
pub const PORT: u16 = 8080;
/// Maximum size of one write, bytes; a larger one is probably a typo.
const MAX_BYTES: i64 = 64 << 20;
/// Size of the buffer for control messages, bytes.
const CONTROL: usize = 1024;
/// Socket options whose effect a script cannot observe; they are accepted and ignored.
const IGNORED: &[&str] = &["SO_BINDTODEVICE", "SO_RCVTIMEO", "SO_SNDTIMEO"];

/// Map from the script's descriptors to the kernel's.
pub type Descriptors = BTreeMap<i64, i64>;

/// A prepared system call.
#[derive(Debug)]
pub struct Request {
    pub number: i64,
    pub args: Vec<Arg>,
}

/// Machine state needed by a call.
pub struct Context<'a> {
    pub fds: &'a mut Descriptors,
    pub v6: bool,
    /// Wall-clock time at the start of the script, ns.
    pub wall: u64,
    /// Tolerance for times.
    pub tolerance: Span,
}

/// Sizes of the pieces of `[{..., n}, ...]`, bytes.
fn pieces(e: &Expr) -> Option<Vec<usize>> {
    let Expr::List(items) = e else { return None };
    let piece = |item: &Expr| match item {
        Expr::Braces(piece) => piece.get(1)?.number().filter(|n| (0..=MAX_BYTES).contains(n)),
        _ => None,
    };
    items.iter().map(|item| piece(item).map(|n| n as usize)).collect()
}

/// Data fields of an epoll event.
const DATA: [&str; 4] = ["fd", "ptr", "u32", "u64"];

impl Context<'_> {
    fn fd(&self, line: u32, e: Option<&Expr>) -> Result<Arg, Stop> {
        let Some(n) = e.and_then(Expr::number) else { return unsupported(line, "this descriptor") };
        Ok(Arg::Number(self.fds.get(&n).copied().unwrap_or(-1)))
    }

    fn address(&self, ours: bool) -> Vec<u8> {
        let mut a: Vec<u8> = Vec::new();
        let family = if self.v6 { libc::AF_INET6 } else { libc::AF_INET };
        a.extend((family as u16).to_ne_bytes());
        a.extend(PORT.to_be_bytes());
        if self.v6 {
            a.extend([0; 4]);
            a.extend(if ours { HOST6 } else { PEER6 });
        } else {
            a.extend(if ours { HOST4 } else { PEER4 });
        }
        a.resize(if self.v6 { 28 } else { 16 }, 0);
        a
    }

    /// Return the system call for a call of the script; `None` for a call that is ignored and succeeds.
    #[allow(clippy::too_many_lines, reason = "one arm for each call")]
    pub fn request(&self, line: u32, call: &Call) -> Result<Option<Request>, Stop> {
        let arg = |n: usize| call.args.get(n);
        let number = |n: usize, default: i64| arg(n).map_or(Ok(default), |e| value(line, e));
        let fd = || self.fd(line, arg(0));
        let null = |n: usize| arg(n).and_then(Expr::word) == Some("NULL");
        let request = |number: i64, args: Vec<Arg>| Ok(Some(Request { number, args }));
        let bytes = |n: usize| match arg(n).and_then(Expr::number).filter(|n| (0..=MAX_BYTES).contains(n)) {
            Some(bytes) => Ok(bytes),
            None => unsupported(line, format!("'{}' of this many bytes", call.name)),
        };
        match call.name.as_str() {
            "socket" => {
                let family = if self.v6 { libc::AF_INET6 } else { libc::AF_INET };
                let kind = number(1, 1)?;
                if kind & 15 != i64::from(libc::SOCK_STREAM) {
                    return unsupported(line, "a socket that is not TCP");
                }
                let protocol = i64::from(libc::IPPROTO_TCP);
                if number(2, 0)? != protocol && number(2, 0)? != 0 {
                    return unsupported(line, "a socket that is not TCP");
                }
                request(
                    libc::SYS_socket,
                    vec![Arg::Number(family.into()), Arg::Number(kind), Arg::Number(protocol)],
                )
            }
            "bind" | "connect" => {
                let binds = call.name == "bind";
                let a = self.address(binds);
                let len = Arg::Number(a.len() as i64);
                request(
                    if binds { libc::SYS_bind } else { libc::SYS_connect },
                    vec![fd()?, Arg::Bytes(a), len],
                )
            }
            "listen" => request(libc::SYS_listen, vec![fd()?, Arg::Number(number(1, 1)?)]),
            "accept" | "accept4" => {
                let flags = Arg::Number(number(3, 0)?);
                request(libc::SYS_accept4, vec![fd()?, Arg::Number(0), Arg::Number(0), flags])
            }
            "close" => request(libc::SYS_close, vec![fd()?]),
            "shutdown" => request(libc::SYS_shutdown, vec![fd()?, Arg::Number(number(1, 0)?)]),
            "write" | "send" | "sendto" | "read" | "recv" | "recvfrom" => {
                let n = bytes(2)?;
                let buffer = if null(1) { Arg::Number(0) } else { Arg::Bytes(vec![0; n as usize]) };
                let mut args = vec![fd()?, buffer, Arg::Number(n)];
                let (plain, with_flags) = match call.name.as_str() {
                    "write" | "send" | "sendto" => (libc::SYS_write, libc::SYS_sendto),
                    _ => (libc::SYS_read, libc::SYS_recvfrom),
                };
                if matches!(call.name.as_str(), "write" | "read") {
                    return request(plain, args);
                }
                let flags = number(3, 0)?;
                args.push(Arg::Number(flags));
                if call.name == "sendto" && flags & i64::from(libc::MSG_FASTOPEN) != 0 {
                    let a = self.address(false);
                    let len = Arg::Number(a.len() as i64);
                    args.extend([Arg::Bytes(a), len]);
                } else {
                    args.extend([Arg::Number(0), Arg::Number(0)]);
                }
                request(with_flags, args)
            }
            "writev" | "readv" => {
                let Some(pieces) = arg(1).and_then(pieces) else { return unsupported(line, "these pieces") };
                let count = Arg::Number(pieces.len() as i64);
                let which = if call.name == "writev" { libc::SYS_writev } else { libc::SYS_readv };
                request(which, vec![fd()?, Arg::Pieces(pieces), count])
            }
            "sendmsg" | "recvmsg" => {
                let Some(Expr::Braces(fields)) = arg(1) else { return unsupported(line, "this message") };
                let sends = call.name == "sendmsg";
                let control = shape::field(fields, "msg_control");
                if sends && control.is_some_and(|c| *c != Expr::List(Vec::new())) {
                    return unsupported(line, "a control message to send");
                }
                let flags = number(2, 0)?;
                let found = shape::field(fields, "msg_iov").map(pieces);
                let lengths = match found {
                    Some(Some(lengths)) => lengths,
                    _ if flags & i64::from(libc::MSG_ERRQUEUE) != 0 => Vec::new(),
                    _ => return unsupported(line, "a message without a number of bytes"),
                };
                let (which, room) = if sends { (libc::SYS_sendmsg, 0) } else { (libc::SYS_recvmsg, CONTROL) };
                request(which, vec![fd()?, Arg::Message(lengths, room), Arg::Number(flags)])
            }
            "setsockopt" => self.set_option(line, call),
            "getsockopt" => {
                let args = vec![fd()?, Arg::Number(number(1, 0)?), Arg::Number(number(2, 0)?)];
                let memory = [Arg::Bytes(vec![0; 4]), Arg::Bytes(4u32.to_ne_bytes().to_vec())];
                request(libc::SYS_getsockopt, args.into_iter().chain(memory).collect())
            }
            "fcntl" => {
                let flags = number(2, 0)?;
                request(libc::SYS_fcntl, vec![fd()?, Arg::Number(number(1, 0)?), Arg::Number(flags)])
            }
            "ioctl" => {
                let what = Arg::Number(number(1, 0)?);
                request(libc::SYS_ioctl, vec![fd()?, what, Arg::Bytes(vec![0; 4])])
            }
            "open" => {
                let Some(Expr::Text(parts)) = arg(0) else {
                    return unsupported(line, "an open without a path");
                };
                let path: Vec<u8> = parts.concat().into_bytes().into_iter().chain([0]).collect();
                if !path.starts_with(b"/tmp/") {
                    return unsupported(line, "a file that the set-up did not write");
                }
                let here = Arg::Number(libc::AT_FDCWD.into());
                request(libc::SYS_openat, vec![here, Arg::Bytes(path), Arg::Number(0)])
            }
            "pipe" => request(libc::SYS_pipe2, vec![Arg::Bytes(vec![0; 8]), Arg::Number(0)]),
            "sendfile" => {
                let offset = match null(2) {
                    true => Arg::Number(0),
                    false => Arg::Bytes(number(2, 0)?.to_ne_bytes().to_vec()),
                };
                let count = Arg::Number(bytes(3)?);
                request(libc::SYS_sendfile, vec![fd()?, self.fd(line, arg(1))?, offset, count])
            }
            "splice" => {
                let to = self.fd(line, arg(2))?;
                let args = vec![fd()?, Arg::Number(0), to, Arg::Number(0), Arg::Number(bytes(4)?)];
                let flags = Arg::Number(number(5, 0)?);
                request(libc::SYS_splice, args.into_iter().chain([flags]).collect())
            }
            "poll" => {
                let Some(Expr::List(items)) = arg(0) else {
                    return unsupported(line, "a poll without a list");
                };
                let mut memory = Vec::new();
                for item in items {
                    let Expr::Braces(fields) = item else { return unsupported(line, "this pollfd") };
                    let Arg::Number(fd) = self.fd(line, shape::field(fields, "fd"))? else { continue };
                    let events = shape::field(fields, "events").map_or(Ok(0), |e| value(line, e))?;
                    memory.extend((fd as i32).to_ne_bytes());
                    memory.extend((events as u16).to_ne_bytes());
                    memory.extend([0; 2]);
                }
                let count = Arg::Number(items.len() as i64);
                request(libc::SYS_poll, vec![Arg::Bytes(memory), count, Arg::Number(number(2, -1)?)])
            }
            "epoll_create" | "epoll_create1" => request(libc::SYS_epoll_create1, vec![Arg::Number(0)]),
            "epoll_ctl" => {
                let mut memory = vec![0; 12];
                if let Some(Expr::Braces(fields)) = arg(3) {
                    let data = DATA.iter().find_map(|n| shape::field(fields, n));
                    let events = shape::field(fields, "events").map_or(Ok(0), |e| value(line, e))?;
                    let data = data.map_or(Ok(0), |e| value(line, e))?;
                    memory[..4].copy_from_slice(&(events as u32).to_ne_bytes());
                    memory[4..].copy_from_slice(&data.to_ne_bytes());
                }
                let what = Arg::Number(number(1, 0)?);
                request(libc::SYS_epoll_ctl, vec![fd()?, what, self.fd(line, arg(2))?, Arg::Bytes(memory)])
            }
            "epoll_wait" => {
                let most = number(2, 1)?.clamp(0, 1024);
                let memory = Arg::Bytes(vec![0; 12 * most.max(1) as usize]);
                let timeout = Arg::Number(number(3, -1)?);
                request(libc::SYS_epoll_wait, vec![fd()?, memory, Arg::Number(most), timeout])
            }
            name => unsupported(line, format!("call '{name}'")),
        }
    }

    fn set_option(&self, line: u32, call: &Call) -> Result<Option<Request>, Stop> {
        let name = call.args.get(2).and_then(Expr::word).unwrap_or_default();
        if IGNORED.contains(&name) {
            return Ok(None);
        }
        let level = call.args.get(1).map_or(Ok(0), |e| value(line, e))?;
        let option = call.args.get(2).map_or(Ok(0), |e| value(line, e))?;
        let memory = match call.args.get(3) {
            Some(Expr::Text(parts)) => parts.concat().into_bytes(),
            Some(Expr::List(items)) if matches!(items.as_slice(), [Expr::Text(_)]) => match &items[0] {
                Expr::Text(parts) => parts.concat().into_bytes(),
                _ => Vec::new(),
            },
            Some(Expr::Braces(fields)) if name == "SO_LINGER" => {
                let of = |a, b| shape::field(fields, a).or(shape::field(fields, b)).and_then(Expr::number);
                let pair = [of("onoff", "l_onoff"), of("linger", "l_linger")];
                pair.into_iter().flat_map(|n| (n.unwrap_or(0) as i32).to_ne_bytes()).collect()
            }
            Some(e) => (value(line, e)? as u32).to_ne_bytes().to_vec(),
            None => return unsupported(line, "an option without a value"),
        };
        let len = Arg::Number(memory.len() as i64);
        let fd = self.fd(line, call.args.first())?;
        let args = vec![fd, Arg::Number(level), Arg::Number(option), Arg::Bytes(memory), len];
        Ok(Some(Request { number: libc::SYS_setsockopt, args }))
    }

    /// Result of a call; buffers that the kernel filled in are compared here.
    pub fn conclude(&mut self, line: u32, call: &Call, done: &Returned) -> Result<Answer, Stop> {
        if done.value < 0 {
            return Ok(Err(errno(-done.value as i32)));
        }
        let arg = |n: usize| call.args.get(n);
        let word = |bytes: &[u8], at: usize| {
            i32::from_ne_bytes(bytes[at..at + 4].try_into().expect("invariant: four bytes"))
        };
        match call.name.as_str() {
            "socket" | "open" | "accept" | "accept4" | "epoll_create" | "epoll_create1" => {
                let Some(fd) = call.result.number().filter(|n| *n >= 0) else { return Ok(Ok(done.value)) };
                self.fds.insert(fd, done.value);
                return Ok(Ok(fd));
            }
            "pipe" => {
                let Some(Expr::List(ends)) = arg(0) else { return unsupported(line, "this pipe") };
                for (n, end) in ends.iter().take(2).enumerate() {
                    self.fds.insert(value(line, end)?, word(&done.bytes[0], 4 * n).into());
                }
            }
            "close" => {
                if let Some(fd) = arg(0).and_then(Expr::number) {
                    self.fds.remove(&fd);
                }
            }
            "getsockopt" => {
                let is = i64::from(word(&done.bytes[0], 0));
                let name = arg(2).and_then(Expr::word).unwrap_or("it");
                let agrees = match arg(3) {
                    Some(Expr::List(items)) => match items.as_slice() {
                        [Expr::Ellipsis] => true,
                        [Expr::Word(w)] if errno(is as i32) == w => true,
                        [e] => value(line, e)? as i32 == is as i32,
                        _ => false,
                    },
                    Some(Expr::Ellipsis) => true,
                    _ => false,
                };
                if !agrees {
                    let error = if name == "SO_ERROR" && is != 0 { errno(is as i32) } else { "" };
                    return fail(line, call, format!("{name} is {is} {error}"));
                }
            }
            "ioctl" => {
                let is = i64::from(word(&done.bytes[0], 0));
                match arg(2).map(|e| value(line, e)).transpose()? {
                    Some(wanted) if wanted == is => {}
                    _ => return fail(line, call, format!("it is {is}")),
                }
            }
            "poll" => {
                let Some(Expr::List(items)) = arg(0) else {
                    return unsupported(line, "a poll without a list");
                };
                for (n, item) in items.iter().enumerate() {
                    let Expr::Braces(fields) = item else { continue };
                    let is = i64::from(word(&done.bytes[0], 8 * n + 4) as u32 >> 16);
                    match shape::field(fields, "revents") {
                        None | Some(Expr::Ellipsis) => {}
                        Some(e) if value(line, e)? == is => {}
                        Some(_) => return fail(line, call, format!("revents is {is:#x}")),
                    }
                }
            }
            "epoll_wait" => {
                let wanted = match arg(1) {
                    Some(Expr::List(items)) => items.as_slice(),
                    Some(one) => std::slice::from_ref(one),
                    None => &[],
                };
                let found = done.bytes[0].chunks_exact(12).take(done.value as usize);
                for (event, wanted) in found.zip(wanted) {
                    let Expr::Braces(fields) = wanted else { continue };
                    let events = i64::from(word(event, 0) as u32);
                    let data = i64::from_ne_bytes(event[4..].try_into().expect("invariant: eight bytes"));
                    let named = DATA.iter().find_map(|n| shape::field(fields, n));
                    for (name, wanted, is) in
                        [("events", shape::field(fields, "events"), events), ("data", named, data)]
                    {
                        match wanted {
                            None | Some(Expr::Ellipsis) => {}
                            Some(e) if value(line, e)? == is => {}
                            Some(_) => return fail(line, call, format!("{name} is {is:#x}")),
                        }
                    }
                }
            }
            "recvmsg" => {
                let Some(Expr::Braces(message)) = arg(1) else { return unsupported(line, "this message") };
                let controls = self.controls(done.bytes.last().map_or(&[], Vec::as_slice));
                check_message(line, call, message, done.flags.into(), &controls, self.tolerance)?;
            }
            _ => {}
        }
        Ok(Ok(done.value))
    }

    fn controls(&self, buffer: &[u8]) -> Vec<Control> {
        let number = |data: &[u8], at: usize, size: usize| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(data.get(at..at + size).unwrap_or(&[0; 8][..size]));
            i64::from_ne_bytes(word)
        };
        let known = raw::control_messages(buffer).into_iter().filter_map(|(level, kind, data)| {
            Some(match (level, kind) {
                (libc::SOL_TCP, TCP_CM_INQ) => Control::Waiting(number(data, 0, 4)),
                (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
                    let wall = number(data, 0, 8) as u64 * 1_000_000_000 + number(data, 8, 8) as u64;
                    Control::Stamp(START + Span(wall.saturating_sub(self.wall)))
                }
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => Control::Error([
                    number(data, 0, 4),
                    number(data, 4, 1),
                    number(data, 5, 1),
                    number(data, 6, 1),
                    number(data, 8, 4),
                    number(data, 12, 4),
                ]),
                _ => return None,
            })
        });
        known.collect()
    }
}

const TCP_CM_INQ: i32 = 36;

/// Name of an error number (`asm-generic/errno.h`).
pub fn errno(number: i32) -> &'static str {
    const NAMES: &[(i32, &str)] = &[
        (0, "0"),
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EINTR, "EINTR"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EINVAL, "EINVAL"),
        (libc::EMFILE, "EMFILE"),
        (libc::EPIPE, "EPIPE"),
        (libc::ENOMSG, "ENOMSG"),
        (libc::EDESTADDRREQ, "EDESTADDRREQ"),
        (libc::EMSGSIZE, "EMSGSIZE"),
        (libc::ENOPROTOOPT, "ENOPROTOOPT"),
        (libc::EPROTO, "EPROTO"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::ENETDOWN, "ENETDOWN"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ECONNABORTED, "ECONNABORTED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ENOBUFS, "ENOBUFS"),
        (libc::EISCONN, "EISCONN"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::EHOSTDOWN, "EHOSTDOWN"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::EALREADY, "EALREADY"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::ENONET, "ENONET"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map_or("an error without a name here", |(_, name)| name)
}
