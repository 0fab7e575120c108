//! Arbitrary system calls with buffers allocated here, for packet scripts.

use std::io::Result;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{check, name_into, text};

/// Argument of a system call.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A number, a descriptor, or a null pointer.
    Number(i64),
    /// Memory read or written by the kernel.
    Bytes(Vec<u8>),
    /// `struct iovec`: one entry per length, each with a separate buffer.
    Pieces(Vec<usize>),
    /// `struct msghdr`: lengths of its pieces, and space for control messages.
    Message(Vec<usize>, usize),
}

/// Result of a call, with its buffers after the call.
#[derive(Debug)]
pub struct Returned {
    /// Return value: non-negative, or a negated error number.
    pub value: i64,
    /// Buffers of the arguments that have one.
    pub bytes: Vec<Vec<u8>>,
    /// Flags of a `struct msghdr`.
    pub flags: i32,
}

/// Make a system call. Where the kernel expects a buffer's length, the caller must pass at most the length of that
/// buffer.
pub fn call(number: i64, args: &[Arg]) -> Returned {
    let mut memory: Vec<Vec<u8>> = Vec::new();
    let mut vectors: Vec<Vec<libc::iovec>> = Vec::new();
    let mut messages: Vec<Box<libc::msghdr>> = Vec::new();
    let mut words = [0i64; 6];
    for (word, arg) in words.iter_mut().zip(args) {
        *word = match arg {
            Arg::Number(n) => *n,
            Arg::Bytes(bytes) => {
                memory.push(bytes.clone());
                memory.last_mut().map_or(0, |m| m.as_mut_ptr() as i64)
            }
            Arg::Pieces(lengths) => {
                vectors.push(pieces(lengths, &mut memory));
                vectors.last_mut().map_or(0, |v| v.as_mut_ptr() as i64)
            }
            Arg::Message(lengths, control) => {
                vectors.push(pieces(lengths, &mut memory));
                let vector = vectors.last_mut().expect("invariant: pushed above");
                memory.push(vec![0; *control]);
                let room = memory.last_mut().expect("invariant: pushed above");
                let mut message: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
                message.msg_iov = vector.as_mut_ptr();
                message.msg_iovlen = vector.len() as _;
                message.msg_control =
                    if *control == 0 { std::ptr::null_mut() } else { room.as_mut_ptr().cast() };
                message.msg_controllen = *control as _;
                messages.push(message);
                messages.last_mut().map_or(0, |m| std::ptr::from_mut(&mut **m) as i64)
            }
        };
    }
    let [a, b, c, d, e, f] = words;
    let value = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    let value = if value < 0 {
        -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        value
    };
    let mut flags = 0;
    for message in &messages {
        flags = message.msg_flags;
        if let Some(control) = memory.last_mut() {
            control.truncate(message.msg_controllen);
        }
    }
    Returned { value, bytes: memory, flags }
}

fn pieces(lengths: &[usize], memory: &mut Vec<Vec<u8>>) -> Vec<libc::iovec> {
    let piece = |&len: &usize| {
        memory.push(vec![0; len]);
        let base = memory.last_mut().map_or(std::ptr::null_mut(), |m| m.as_mut_ptr());
        libc::iovec { iov_base: base.cast(), iov_len: len }
    };
    lengths.iter().map(piece).collect()
}

/// Control messages in a buffer: level, type, data.
pub fn control_messages(buffer: &[u8]) -> Vec<(i32, i32, &[u8])> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let mut found = Vec::new();
    let mut rest = buffer;
    while rest.len() >= HEADER {
        let word =
            |at: usize| i32::from_ne_bytes(rest[at..at + 4].try_into().expect("invariant: four bytes"));
        let len = u64::from_ne_bytes(rest[..8].try_into().expect("invariant: eight bytes")) as usize;
        if len < HEADER || len > rest.len() {
            break;
        }
        found.push((word(8), word(12), &rest[HEADER..len]));
        rest = rest.get(len.next_multiple_of(8)..).unwrap_or(&[]);
    }
    found
}

/// Give the calling thread priority over all others until it blocks.
pub fn go_first() -> Result<()> {
    let first = libc::sched_param { sched_priority: 1 };
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) }, "sched_setscheduler").map(drop)
}

/// Create an event counter that wakes another thread.
pub fn bell() -> Result<OwnedFd> {
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }, "eventfd")?;
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Create a TUN device with an offload header on each packet (`struct virtio_net_hdr`, 10 bytes).
pub fn tun_with_offloads(name: &str) -> Result<OwnedFd> {
    let path = text("/dev/net/tun");
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let fd = check(unsafe { libc::open(path.as_ptr(), flags) }, "open /dev/net/tun")?;
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    name_into(&mut request, name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &request) }, "TUNSETIFF")?;
    Ok(fd)
}

const TUNSETOFFLOAD: u64 = 0x4004_54d0;

/// Set whether the device accepts packets of several segments.
pub fn set_tso(tun: RawFd, on: bool) -> Result<()> {
    const CHECKSUMS: u64 = 1;
    const TSO: u64 = 2 | 4 | 8; // TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN
    let offloads = if on { CHECKSUMS | TSO } else { 0 };
    check(unsafe { libc::ioctl(tun, TUNSETOFFLOAD as _, offloads) }, "TUNSETOFFLOAD").map(drop)
}
