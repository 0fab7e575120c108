//! The device of `linux/modules/ackclock_relay.c`, which stores the hosts' packets and delivers them on request.

use std::io::Result;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{check, set_offload, text, ETHTOOL_STSO};

/// A packet sent by a host.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Sent {
    /// Send time, CLOCK_MONOTONIC, ns.
    pub t: u64,
    /// Name of the packet in the kernel.
    pub packet: u64,
    /// Length of the IP packet, bytes.
    pub len: u32,
    /// Number of the sending host.
    pub host: u16,
    /// Number of segments in the packet.
    pub segments: u16,
    /// Payload of a full segment, if there are several, bytes.
    pub segment: u16,
    /// Whether a packet was delivered to the host earlier in the same nanosecond.
    pub after: u8,
    head: [u8; HEAD],
}

impl Sent {
    /// First bytes of the packet: longer than the headers of any packet here.
    pub fn head(&self) -> &[u8] {
        &self.head[..HEAD.min(self.len as usize)]
    }
}

/// Decision on a packet.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Verdict {
    /// Arrival time at the other host of the pair, CLOCK_MONOTONIC, ns; a time in the past means now.
    pub t: u64,
    /// Name of the packet in the kernel.
    pub packet: u64,
    /// Rank among packets of the same nanosecond: the smallest is delivered first.
    pub order: u32,
    /// Delivered, delivered with CE, or dropped.
    pub what: Fate,
}

/// Fate of a packet.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Fate {
    Delivered,
    Marked,
    Lost,
}

const HEAD: usize = 101;
/// Maximum number of packets per system call.
const BATCH: usize = 512;

#[repr(C)]
struct NewHost {
    name: [u8; libc::IFNAMSIZ],
    host: u32,
}

#[repr(C)]
struct Lookahead {
    ns: u64,
    host: u32,
    unused: u32,
}

#[repr(C)]
struct Line {
    rate: u64,
    host: u32,
    framing: u32,
}

/// The open device of the relay.
pub struct Device {
    fd: OwnedFd,
    inbox: Box<[Sent]>,
}

impl Device {
    /// Open the device; it has no hosts yet.
    pub fn new() -> Result<Device> {
        let path = text("/dev/ackclock-relay");
        let fd =
            check(unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }, "open the relay")?;
        let empty: Sent = unsafe { zeroed() };
        Ok(Device { fd: unsafe { OwnedFd::from_raw_fd(fd) }, inbox: vec![empty; BATCH].into() })
    }

    /// Descriptor that is readable when the lookahead of the oldest packet has passed.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn control(&self, what: u64, argument: *mut libc::c_void, name: &str) -> Result<()> {
        check(unsafe { libc::ioctl(self.fd(), what as _, argument) }, name).map(drop)
    }

    /// Create a network device in the namespace of the calling thread. Consecutive hosts form pairs.
    pub fn new_host(&self, name: &str) -> Result<()> {
        let mut new = NewHost { name: [0; libc::IFNAMSIZ], host: 0 };
        new.name[..name.len()].copy_from_slice(name.as_bytes());
        self.control(request(3, 1, size_of::<NewHost>()), std::ptr::from_mut(&mut new).cast(), "relay: host")
    }

    /// Set the lookahead of a host: its packets may stay unread for this long, ns.
    pub fn look_ahead(&self, host: usize, ns: u64) -> Result<()> {
        let mut wanted = Lookahead { ns, host: host as u32, unused: 0 };
        let at = std::ptr::from_mut(&mut wanted).cast();
        self.control(request(1, 2, size_of::<Lookahead>()), at, "relay: lookahead")
    }

    /// Let a host's device transmit one packet after another at this rate, bit/s; `framing` bytes are charged for each
    /// segment.
    pub fn set_line(&self, host: usize, rate: u64, framing: u32) -> Result<()> {
        let mut line = Line { rate, host: host as u32, framing };
        self.control(request(1, 3, size_of::<Line>()), std::ptr::from_mut(&mut line).cast(), "relay: line")
    }

    /// Make the deliveries that are due, then read the sent packets, oldest first; returns false if none are left.
    pub fn take(&mut self, into: &mut Vec<Sent>) -> Result<bool> {
        let room = size_of_val(&*self.inbox);
        let n = unsafe { libc::read(self.fd(), self.inbox.as_mut_ptr().cast(), room) };
        let n = check(n as libc::c_int, "read from the relay")? as usize / size_of::<Sent>();
        into.extend_from_slice(&self.inbox[..n]);
        Ok(n == BATCH)
    }

    /// Report the fates of packets.
    pub fn put(&self, verdicts: &[Verdict]) -> Result<()> {
        for some in verdicts.chunks(BATCH) {
            let n = unsafe { libc::write(self.fd(), some.as_ptr().cast(), size_of_val(some)) };
            check(n as libc::c_int, "write to the relay")?;
        }
        Ok(())
    }
}

/// Let a device take packets of several segments, with their checksums unfinished.
pub fn offloads(name: &str) -> Result<()> {
    [ETHTOOL_SSG, ETHTOOL_STXCSUM, ETHTOOL_STSO]
        .iter()
        .try_for_each(|&command| set_offload(name, command, true))
}

const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_SSG: u32 = 0x19;

/// Request number of an ioctl of the relay (`_IOC`).
fn request(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | u64::from(b'a') << 8 | number
}
