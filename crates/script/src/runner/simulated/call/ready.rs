//! `poll` and `epoll`: events for which a descriptor is ready (Linux `tcp_poll`), and the end of a wait.

use ackclock_core::{Span, Time};

use super::Answer;
use crate::ast::{Call, Expr};
use crate::runner::constant::{int, value};
use crate::runner::simulated::socket::Kind;
use crate::runner::simulated::Simulated;
use crate::runner::{fail, unsupported, Stop};
use crate::shape;

const IN: i64 = 0x1 | 0x40;
const OUT: i64 = 0x4 | 0x100;
const ERR: i64 = 0x8;
const HUP: i64 = 0x10;
const RDHUP: i64 = 0x2000;
const ONESHOT: i64 = 1 << 30;
const EDGE: i64 = 1 << 31;
/// Events reported by poll even if not requested.
const UNASKED: i64 = ERR | HUP;
/// Events that can be requested; the other bits control how they are reported.
const EVENTS: i64 = 0xffff;

/// Socket state for edge triggering: any change is an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Moment {
    received: u64,
    noticed: u64,
    state: u8,
    writable: bool,
    wakes: u64,
}

/// One descriptor of an epoll instance.
#[derive(Debug)]
struct Watch {
    fd: i64,
    events: i64,
    data: i64,
    /// State at the last report, for edge triggering.
    seen: Option<Moment>,
    armed: bool,
}

/// An epoll descriptor.
#[derive(Debug, Default)]
pub struct Epoll {
    pub fd: i64,
    watches: Vec<Watch>,
}

impl Simulated<'_> {
    /// Return the events for which a socket is ready.
    fn ready(&self, fd: i64) -> Option<i64> {
        let socket = self.sockets.find(fd)?;
        if socket.kind == Kind::Listener {
            return Some(if self.acceptable() { IN } else { 0 });
        }
        let conn = self.stack.conn.as_ref().filter(|_| socket.kind == Kind::Connection);
        let Some(conn) = conn else { return Some(OUT | HUP) };
        let info = conn.info();
        let (connecting, closed) = (info.tcp_state == 2, info.tcp_state == 7);
        let deaf = self.sockets.deaf || conn.peer_closed() || closed;
        let mute = self.sockets.shut || closed;
        let mut mask = 0;
        if closed || (deaf && mute) {
            mask |= HUP;
        }
        if deaf {
            mask |= IN | RDHUP;
        }
        if !connecting && conn.readable() > 0 {
            mask |= IN;
        }
        if !connecting && (mute || self.writable(fd)) {
            mask |= OUT;
        }
        if self.stack.error.is_some() || self.sockets.notices.any() {
            mask |= ERR;
        }
        Some(mask)
    }

    /// Whether a socket is writable: a third of the send buffer is free, and less than half of `notsent_lowat` is
    /// unsent (Linux `sk_stream_is_writeable`).
    fn writable(&self, fd: i64) -> bool {
        let Some(conn) = &self.stack.conn else { return false };
        conn.has_room() && 2 * conn.info().unsent < self.notsent_lowat(fd)
    }

    /// TCP_NOTSENT_LOWAT of a socket; the host's value if the socket's is zero.
    pub(super) fn notsent_lowat(&self, fd: i64) -> u64 {
        let own = self.sockets.find(fd).and_then(|s| s.options.notsent_lowat).filter(|bytes| *bytes > 0);
        own.unwrap_or(self.stack.host.setup.sysctls.tcp_notsent_lowat)
    }

    fn moment(&self, fd: i64) -> Moment {
        let conn = self.stack.conn.as_ref();
        Moment {
            received: conn.map_or(0, |c| c.received()),
            noticed: self.sockets.notices.pushed,
            state: conn.map_or(0, |c| c.info().tcp_state),
            writable: self.writable(fd),
            wakes: conn.map_or(0, |c| c.wakes()),
        }
    }

    /// Return the end time of a wait that began with the call; `None` if only an event ends it. `timeout` is
    /// in ms, negative for none.
    fn wait_ends(&mut self, timeout: i64) -> Option<Time> {
        let began = self.call_began;
        let end = (timeout >= 0).then(|| began + Span::from_ms(timeout as u64));
        self.wake = end.unwrap_or(Time::NEVER);
        end
    }

    pub(super) fn poll_descriptors(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        let Some(Expr::List(items)) = call.args.first() else {
            return unsupported(line, "a poll without a list");
        };
        let timeout = call.args.get(2).map_or(Ok(-1), |e| int(line, e))?;
        let mut found = Vec::new();
        for item in items {
            let Expr::Braces(fields) = item else { return unsupported(line, "this pollfd") };
            let of = |name| shape::field(fields, name).map_or(Ok(0), |e| value(line, e));
            let (fd, events) = (of("fd")?, of("events")?);
            let Some(mask) = self.ready(fd) else { return unsupported(line, "a poll of this descriptor") };
            found.push((mask & (events | UNASKED), shape::field(fields, "revents")));
        }
        let count = found.iter().filter(|(mask, _)| *mask != 0).count();
        let over = self.wait_ends(timeout).is_some_and(|end| end <= self.stack.now);
        if count == 0 && !over {
            return Ok(None);
        }
        for (mask, wanted) in found {
            match wanted {
                None | Some(Expr::Ellipsis) => {}
                Some(e) if value(line, e)? == mask => {}
                Some(_) => return fail(line, call, format!("revents is {mask:#x}")),
            }
        }
        Ok(Some(Ok(count as i64)))
    }

    pub(super) fn epoll_create(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let Some(fd) = call.result.number().filter(|n| *n >= 0) else {
            return unsupported(line, "an epoll that cannot be created");
        };
        self.sockets.epolls.retain(|e| e.fd != fd);
        self.sockets.epolls.push(Epoll { fd, watches: Vec::new() });
        Ok(Ok(fd))
    }

    pub(super) fn epoll_ctl(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let number = |n: usize| call.args.get(n).map_or(Ok(-1), |e| value(line, e));
        let (own, what, fd) = (number(0)?, number(1)?, number(2)?);
        if self.sockets.get(fd).is_none() {
            return Ok(Err("EBADF"));
        }
        let (events, data) = match call.args.get(3) {
            Some(Expr::Braces(fields)) => {
                let data = ["fd", "ptr", "u32", "u64"].iter().find_map(|n| shape::field(fields, n));
                let events = shape::field(fields, "events").map_or(Ok(0), |e| value(line, e))?;
                (events, data.map_or(Ok(0), |e| value(line, e))?)
            }
            _ => (0, 0),
        };
        let Some(epoll) = self.sockets.epolls.iter_mut().find(|e| e.fd == own) else {
            return Ok(Err("EBADF"));
        };
        let known = epoll.watches.iter().position(|w| w.fd == fd);
        let watch = Watch { fd, events, data, seen: None, armed: true };
        match (what, known) {
            (1, Some(_)) => return Ok(Err("EEXIST")),
            (1, None) => epoll.watches.push(watch),
            (2, Some(n)) => drop(epoll.watches.remove(n)),
            (3, Some(n)) => epoll.watches[n] = watch,
            (2 | 3, None) => return Ok(Err("ENOENT")),
            _ => return Ok(Err("EINVAL")),
        }
        Ok(Ok(0))
    }

    pub(super) fn epoll_wait(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        let own = call.args.first().map_or(Ok(-1), |e| value(line, e))?;
        let most = call.args.get(2).map_or(Ok(1), |e| value(line, e))?;
        let timeout = call.args.get(3).map_or(Ok(-1), |e| int(line, e))?;
        let Some(at) = self.sockets.epolls.iter().position(|e| e.fd == own) else {
            return Ok(Some(Err("EBADF")));
        };
        let mut found = Vec::new();
        for (n, watch) in self.sockets.epolls[at].watches.iter().enumerate() {
            let mask = self.ready(watch.fd).unwrap_or(0) & (watch.events & EVENTS | UNASKED);
            let moment = self.moment(watch.fd);
            let seen = watch.events & EDGE != 0 && watch.seen == Some(moment);
            if mask != 0 && watch.armed && !seen && (found.len() as i64) < most {
                found.push((n, mask, watch.data, moment));
            }
        }
        let over = self.wait_ends(timeout).is_some_and(|end| end <= self.stack.now);
        if found.is_empty() && !over {
            return Ok(None);
        }
        let wanted = match call.args.get(1) {
            Some(Expr::List(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for ((_, mask, data, _), wanted) in found.iter().zip(wanted) {
            let Expr::Braces(fields) = wanted else { continue };
            let named = ["fd", "ptr", "u32", "u64"].iter().find_map(|n| shape::field(fields, n));
            for (name, wanted, is) in
                [("events", shape::field(fields, "events"), *mask), ("data", named, *data)]
            {
                match wanted {
                    None | Some(Expr::Ellipsis) => {}
                    Some(e) if value(line, e)? == is => {}
                    Some(_) => return fail(line, call, format!("{name} is {is:#x}")),
                }
            }
        }
        for (n, _, _, moment) in &found {
            let watch = &mut self.sockets.epolls[at].watches[*n];
            watch.seen = Some(*moment);
            watch.armed = watch.events & ONESHOT == 0;
        }
        Ok(Some(Ok(found.len() as i64)))
    }
}
