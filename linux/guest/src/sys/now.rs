//! System calls that never block.

use std::io::{Error, Result};
use std::mem::zeroed;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::{address, check, get_option, set_option, Poll, ADDRESS_LEN};

/// Data or the end of the stream can be read.
pub const READABLE: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
/// The socket accepts data.
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;
/// The peer has closed, or the connection has ended.
pub const CLOSED: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP) as u32;
/// The connection may have failed.
pub const BROKEN: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

/// Maximum number of events taken per call.
const MOST: usize = 256;

impl Poll {
    /// Watch `fd` for every event, edge-triggered: each change is reported once.
    pub fn watch(&self, fd: RawFd, token: u64) -> Result<()> {
        let events = READABLE | WRITABLE | libc::EPOLLET as u32;
        let mut event = libc::epoll_event { events, u64: token };
        let done = unsafe { libc::epoll_ctl(self.fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        check(done, "epoll_ctl").map(drop)
    }

    /// Take the pending events with their tokens; true if there may be more.
    pub fn ready(&self, found: &mut Vec<(u64, u32)>) -> Result<bool> {
        let mut events: [libc::epoll_event; MOST] = unsafe { zeroed() };
        let n = unsafe { libc::epoll_wait(self.fd(), events.as_mut_ptr(), MOST as i32, 0) };
        let n = check(n, "epoll_wait")?;
        found.extend(events[..n as usize].iter().map(|e| (e.u64, e.events)));
        Ok(n as usize == MOST)
    }
}

/// Start to connect.
pub fn connect_now(fd: RawFd, ip: [u8; 4], port: u16) -> Result<()> {
    let a = address(ip, port);
    let done = unsafe { libc::connect(fd, std::ptr::from_ref(&a).cast(), ADDRESS_LEN) };
    if done < 0 && Error::last_os_error().raw_os_error() == Some(libc::EINPROGRESS) {
        return Ok(());
    }
    check(done, "connect").map(drop)
}

/// Accept a pending connection, with its peer's address; `None` if there is none.
pub fn accept_now(fd: RawFd) -> Result<Option<(OwnedFd, [u8; 4], u16)>> {
    let mut a = address([0; 4], 0);
    let mut len = ADDRESS_LEN;
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let fd = unsafe { libc::accept4(fd, std::ptr::from_mut(&mut a).cast(), &mut len, flags) };
    if fd < 0 && Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
        return Ok(None);
    }
    let fd = unsafe { OwnedFd::from_raw_fd(check(fd, "accept")?) };
    Ok(Some((fd, a.sin_addr.s_addr.to_ne_bytes(), u16::from_be(a.sin_port))))
}

/// Send as much as the socket accepts; `None` if it accepts nothing.
pub fn send_now(fd: RawFd, bytes: &[u8]) -> Result<Option<usize>> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    none_if_it_would_wait(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Receive and discard at most `most` bytes of the available data inside the kernel; `None` if there is none, 0 at the
/// end of the stream.
pub fn swallow_now(fd: RawFd, most: u64) -> Result<Option<usize>> {
    swallow_some(fd, most, libc::MSG_DONTWAIT)
}

/// Receive like [`swallow_now`], but wait for data; 0 at the end of the stream.
pub fn swallow_available(fd: RawFd, most: u64) -> Result<usize> {
    swallow_some(fd, most, 0).map(|n| n.unwrap_or(0))
}

fn swallow_some(fd: RawFd, most: u64, flags: i32) -> Result<Option<usize>> {
    let most = most.min(1 << 30) as usize;
    none_if_it_would_wait(unsafe { libc::recv(fd, std::ptr::null_mut(), most, libc::MSG_TRUNC | flags) })
}

fn none_if_it_would_wait(n: isize) -> Result<Option<usize>> {
    if n >= 0 {
        return Ok(Some(n as usize));
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(None),
        _ => Err(error),
    }
}

/// Shut down the sending side: a FIN follows the data already written.
pub fn shut(fd: RawFd) {
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// Wait until the FIN, and with it all data, is acknowledged; false if the connection failed. A blocking read or write
/// does not return at that instant, but the kernel wakes the socket's waiters, and an edge-triggered poll reports that:
/// a socket that was shut down is always writable.
pub fn until_fin_is_acknowledged(fd: RawFd) -> Result<bool> {
    let poll = Poll::new()?;
    poll.watch(fd, 0)?;
    loop {
        match tcp_state(fd)? {
            CLOSE => return Ok(take_error(fd)? == 0),
            FIN_WAIT2 | TIME_WAIT => return Ok(true),
            _ => {}
        }
        let mut tokens = Vec::new();
        poll.wait(&mut tokens)?;
    }
}

/// Linux TCP states (`enum` in net/tcp_states.h); the state is the first byte of TCP_INFO.
const FIN_WAIT2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;

fn tcp_state(fd: RawFd) -> Result<u8> {
    let mut info = [0; 1];
    get_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(info[0])
}

/// Read and clear the pending error of a socket; 0 = none.
pub fn take_error(fd: RawFd) -> Result<i32> {
    let mut error = [0; 4];
    get_option(fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
    Ok(i32::from_ne_bytes(error))
}

/// Make close() send an RST.
pub fn abort_on_close(fd: RawFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // A socket that refuses the option closes with a FIN, which is just as good.
    let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
}
