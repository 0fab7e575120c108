//! Datagrams from a socket, several per system call, each with its arrival time.

use std::io::{Error, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::RawFd;

use super::set_option;

/// Buffers for datagrams, of which only the first bytes are stored.
pub struct Inbox {
    heads: Box<[[u8; HEAD]; SLOTS]>,
    controls: Box<[Control; SLOTS]>,
    lengths: [u32; SLOTS],
    count: usize,
}

/// A received datagram.
pub struct Received<'a> {
    /// Arrival time, CLOCK_REALTIME, ns.
    pub t: u64,
    /// Length after the UDP header, bytes.
    pub len: usize,
    /// First bytes of the datagram.
    pub head: &'a [u8],
}

/// Bytes stored of each datagram: more than any of our headers.
const HEAD: usize = 64;
const SLOTS: usize = 32;

/// Space for one control message with a timestamp.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

impl Inbox {
    /// Create an empty inbox, and turn on timestamps for the socket.
    pub fn new(fd: RawFd) -> Result<Inbox> {
        set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        Ok(Inbox {
            heads: Box::new([[0; HEAD]; SLOTS]),
            controls: Box::new([Control([0; 64]); SLOTS]),
            lengths: [0; SLOTS],
            count: 0,
        })
    }

    /// Replace the contents by the available datagrams; with `wait`, block until there is at least one.
    pub fn fill(&mut self, fd: RawFd, wait: bool) -> Result<()> {
        let mut parts: [libc::iovec; SLOTS] = unsafe { zeroed() };
        let mut messages: [libc::mmsghdr; SLOTS] = unsafe { zeroed() };
        for i in 0..SLOTS {
            parts[i] = libc::iovec { iov_base: self.heads[i].as_mut_ptr().cast(), iov_len: HEAD };
            let header = &mut messages[i].msg_hdr;
            header.msg_iov = &mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // MSG_TRUNC: lengths are those of the full datagrams
        let flags = libc::MSG_TRUNC | if wait { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        let (at, room) = (messages.as_mut_ptr(), SLOTS as u32);
        let n = unsafe { libc::recvmmsg(fd, at, room, flags as _, std::ptr::null_mut()) };
        self.count = n.max(0) as usize;
        for (length, message) in self.lengths.iter_mut().zip(&messages[..self.count]) {
            *length = message.msg_len;
        }
        if n >= 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ECONNREFUSED) => Ok(()),
            _ => Err(Error::new(error.kind(), format!("receive: {error}"))),
        }
    }

    /// Datagrams in order of arrival.
    pub fn each(&self) -> impl Iterator<Item = Received<'_>> {
        (0..self.count).map(|i| {
            let len = self.lengths[i] as usize;
            Received { t: time(&self.controls[i]), len, head: &self.heads[i][..len.min(HEAD)] }
        })
    }
}

/// Timestamp in the control message, which is the first and only one.
fn time(control: &Control) -> u64 {
    let data = unsafe { libc::CMSG_LEN(0) } as usize;
    let word = |at: usize| {
        i64::from_ne_bytes(control.0[at..at + 8].try_into().expect("invariant: eight bytes")) as u64
    };
    word(data) * 1_000_000_000 + word(data + 8)
}
