//! Wrapped system calls: all unsafe code of this program. Errors name the call.
#![allow(unsafe_code, reason = "system calls; every other module is free of it")]

mod now;

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

mod inbox;
pub mod process;
pub mod raw;
pub mod relay;

pub use inbox::Inbox;
pub use now::*;

fn check(value: libc::c_int, what: &str) -> Result<libc::c_int> {
    if value >= 0 {
        return Ok(value);
    }
    let error = Error::last_os_error();
    Err(Error::new(error.kind(), format!("{what}: {error}")))
}

fn text(s: &str) -> CString {
    CString::new(s).expect("invariant: no zero byte in names of ours")
}

/// Mount a filesystem of type `kind` at `target`.
pub fn mount(kind: &str, target: &str) -> Result<()> {
    let (kind_c, target_c) = (text(kind), text(target));
    let done =
        unsafe { libc::mount(kind_c.as_ptr(), target_c.as_ptr(), kind_c.as_ptr(), 0, std::ptr::null()) };
    check(done, &format!("mount {kind}")).map(drop)
}

/// Unmount the last mount at `target`.
pub fn unmount(target: &str) -> Result<()> {
    let target_c = text(target);
    check(unsafe { libc::umount2(target_c.as_ptr(), 0) }, &format!("unmount {target}")).map(drop)
}

/// Flush files and power the machine off.
pub fn power_off() -> ! {
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    unreachable!("invariant: reboot does not return to PID 1")
}

/// Make this thread's timers expire at their exact nanosecond instead of up to 50 us later.
pub fn exact_timers() -> Result<()> {
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) }, "prctl").map(drop)
}

thread_local! {
    /// Namespace of this thread, if it was entered through these functions.
    static INSIDE: Cell<RawFd> = const { Cell::new(-1) };
}

/// Create a network namespace and move the calling thread into it.
pub fn new_namespace() -> Result<OwnedFd> {
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }, "unshare")?;
    let path = text("/proc/thread-self/ns/net");
    let fd = check(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }, "namespace")?;
    INSIDE.set(fd);
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Move the calling thread into a network namespace, unless it is there already.
pub fn enter(namespace: RawFd) -> Result<()> {
    if INSIDE.get() != namespace {
        check(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) }, "setns")?;
        INSIDE.set(namespace);
    }
    Ok(())
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut t: libc::timespec = unsafe { zeroed() };
    unsafe { libc::clock_gettime(id, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CLOCK_MONOTONIC, ns. Reading it takes no virtual time.
pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, ns. Reading it takes no virtual time.
pub fn realtime() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Sleep until CLOCK_MONOTONIC shows `ns`. The minimum timer slack is 1 ns, and the kernel always uses it.
pub fn sleep_until(ns: u64) {
    let t = timespec(ns.saturating_sub(1));
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut());
    }
}

/// Create a timer on CLOCK_MONOTONIC.
pub fn timer() -> Result<OwnedFd> {
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
    Ok(unsafe { OwnedFd::from_raw_fd(check(fd, "timerfd")?) })
}

/// Arm a timer for time `ns`; an unread expiry is discarded.
pub fn arm(timer: RawFd, ns: u64) -> Result<()> {
    let value = libc::itimerspec { it_interval: timespec(0), it_value: timespec(ns) };
    let done = unsafe { libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &value, std::ptr::null_mut()) };
    check(done, "timerfd_settime").map(drop)
}

/// A set of descriptors to wait for.
pub struct Poll(OwnedFd);

impl Poll {
    /// Create an empty set.
    pub fn new() -> Result<Poll> {
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll")?;
        Ok(Poll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Add `fd` to the set; it is reported as `token` when it is readable.
    pub fn add(&self, fd: RawFd, token: u64) -> Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        let done = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        check(done, "epoll_ctl").map(drop)
    }

    /// Descriptor of the set itself, readable while a member is.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Wait, then return the tokens of readable descriptors.
    pub fn wait(&self, tokens: &mut Vec<u64>) -> Result<()> {
        let mut events: [libc::epoll_event; 16] = unsafe { zeroed() };
        let n = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 16, -1) };
        let n = check(n, "epoll_wait")?;
        tokens.clear();
        tokens.extend(events[..n as usize].iter().map(|e| e.u64));
        Ok(())
    }
}

/// Read available data; `None` if there is none.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> Result<Option<usize>> {
    let n = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    if n >= 0 {
        return Ok(Some(n as usize));
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(None),
        _ => Err(Error::new(error.kind(), format!("read: {error}"))),
    }
}

/// Write `bytes` in one call, as one packet of a TUN device.
pub fn write(fd: RawFd, bytes: &[u8]) -> Result<()> {
    let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    check(n as libc::c_int, "write").map(drop)
}

/// Open a socket.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd> {
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) }, "socket")?;
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Set a socket option.
pub fn set_option<T>(fd: RawFd, level: i32, name: i32, value: &T) -> Result<()> {
    set_option_bytes(fd, level, name, std::ptr::from_ref(value).cast(), size_of::<T>())
}

/// Set a string-valued socket option.
pub fn set_option_text(fd: RawFd, level: i32, name: i32, value: &str) -> Result<()> {
    set_option_bytes(fd, level, name, value.as_ptr(), value.len())
}

fn set_option_bytes(fd: RawFd, level: i32, name: i32, value: *const u8, len: usize) -> Result<()> {
    let done = unsafe { libc::setsockopt(fd, level, name, value.cast(), len as u32) };
    check(done, &format!("setsockopt {level}/{name}")).map(drop)
}

/// Limit how long a blocking receive or send may take, ns.
pub fn set_timeout(fd: RawFd, sending: bool, ns: u64) -> Result<()> {
    let us = ns.div_ceil(1000).max(1) as i64;
    let value = libc::timeval { tv_sec: us / 1_000_000, tv_usec: us % 1_000_000 };
    set_option(fd, libc::SOL_SOCKET, if sending { libc::SO_SNDTIMEO } else { libc::SO_RCVTIMEO }, &value)
}

/// Read a socket option into `buffer`; returns its length.
pub fn get_option(fd: RawFd, level: i32, name: i32, buffer: &mut [u8]) -> Result<usize> {
    let mut len = buffer.len() as u32;
    let done = unsafe { libc::getsockopt(fd, level, name, buffer.as_mut_ptr().cast(), &mut len) };
    check(done, "getsockopt").map(|_| len as usize)
}

fn address(ip: [u8; 4], port: u16) -> libc::sockaddr_in {
    let mut a: libc::sockaddr_in = unsafe { zeroed() };
    a.sin_family = libc::AF_INET as u16;
    a.sin_port = port.to_be();
    a.sin_addr.s_addr = u32::from_ne_bytes(ip);
    a
}

const ADDRESS_LEN: u32 = size_of::<libc::sockaddr_in>() as u32;

/// Bind to an address.
pub fn bind(fd: RawFd, ip: [u8; 4], port: u16) -> Result<()> {
    let a = address(ip, port);
    check(unsafe { libc::bind(fd, std::ptr::from_ref(&a).cast(), ADDRESS_LEN) }, "bind").map(drop)
}

/// Connect, blocking until the connection is established or fails.
pub fn connect(fd: RawFd, ip: [u8; 4], port: u16) -> Result<()> {
    let a = address(ip, port);
    check(unsafe { libc::connect(fd, std::ptr::from_ref(&a).cast(), ADDRESS_LEN) }, "connect").map(drop)
}

/// Listen on a bound socket.
pub fn listen(fd: RawFd) -> Result<()> {
    check(unsafe { libc::listen(fd, 4096) }, "listen").map(drop)
}

/// Accept a connection, blocking until there is one.
pub fn accept(fd: RawFd) -> Result<OwnedFd> {
    let fd = unsafe { libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC) };
    Ok(unsafe { OwnedFd::from_raw_fd(check(fd, "accept")?) })
}

/// Raise this process's limit on open files.
pub fn allow_files(count: u64) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: count, rlim_max: count };
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, "setrlimit").map(drop)
}

/// Send; returns the number of bytes accepted, which is less than requested, or 0, only after the timeout.
pub fn send(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    let n = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    none_at_timeout(n)
}

/// Send a datagram. A datagram that cannot be sent (full queue, missing peer) is lost, as in a network.
pub fn send_datagram(fd: RawFd, bytes: &[u8]) -> Result<()> {
    let n = unsafe {
        libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    if n >= 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ECONNREFUSED) => Ok(()),
        _ => Err(Error::new(error.kind(), format!("send: {error}"))),
    }
}

/// Receive and discard `len` bytes inside the kernel, or fewer at the end of the stream or after the timeout.
pub fn swallow(fd: RawFd, len: usize) -> Result<usize> {
    let n = unsafe { libc::recv(fd, std::ptr::null_mut(), len, libc::MSG_TRUNC | libc::MSG_WAITALL) };
    none_at_timeout(n)
}

fn none_at_timeout(n: isize) -> Result<usize> {
    if n >= 0 {
        return Ok(n as usize);
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(0),
        _ => Err(error),
    }
}

/// Index of the interface called `name` in this namespace.
pub fn interface_index(name: &str) -> Result<u32> {
    let name_c = text(name);
    match unsafe { libc::if_nametoindex(name_c.as_ptr()) } {
        0 => Err(Error::other(format!("no interface {name}"))),
        n => Ok(n),
    }
}

/// Turn off aggregation by the device, and segmentation offload unless `tso`, so that every packet is one segment.
pub fn no_offloads(name: &str, tso: bool) -> Result<()> {
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
        if !tso || command == ETHTOOL_SGRO {
            set_offload(name, command, false)?;
        }
    }
    Ok(())
}

/// Set whether the kernel cuts packets into segments in software, in front of the device.
pub fn set_segmentation(name: &str, on: bool) -> Result<()> {
    set_offload(name, ETHTOOL_SGSO, on)
}

/// Set whether the kernel merges segments in software, behind the device.
pub fn set_aggregation(name: &str, on: bool) -> Result<()> {
    set_offload(name, ETHTOOL_SGRO, on)
}

/// Turn off segmentation offload: packets of several segments are cut before they reach the device.
pub fn no_segmentation_by_device(name: &str) -> Result<()> {
    set_offload(name, ETHTOOL_STSO, false)
}

fn set_offload(name: &str, command: u32, on: bool) -> Result<()> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let fd = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut value = Value { command, data: on.into() };
    let mut request: libc::ifreq = unsafe { zeroed() };
    name_into(&mut request, name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL, &request) }, "ethtool").map(drop)
}

const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;

fn name_into(request: &mut libc::ifreq, name: &str) {
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
}

/// Packet socket that captures every IP packet of an interface, truncated after its headers, into a ring shared with
/// the kernel, without a system call per packet.
pub struct Ring {
    fd: OwnedFd,
    memory: *const u8,
    block: usize,
}

/// A captured packet in the ring.
pub struct Seen<'a> {
    /// Time of capture, CLOCK_REALTIME, ns.
    pub t: u64,
    /// Number of the interface.
    pub device: u32,
    /// Whether the packet is outgoing.
    pub outgoing: bool,
    /// Length of the IP packet, bytes.
    pub len: u32,
    /// Captured first bytes of the packet.
    pub head: &'a [u8],
}

const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 16;
const KEPT: u32 = 160;
/// Timeout after which the kernel releases a partly filled block, ms: effectively never. The kernel's timer for it
/// would make other soft timers within its slack expire too, such as that of compressed SACKs.
const RETIRED_AFTER: u32 = 1 << 30;

impl Ring {
    /// Create a ring on the interface with this index (0: on all of them), in the namespace of the calling thread.
    pub fn new(interface: u32) -> Result<Ring> {
        let protocol = (libc::ETH_P_ALL as u16).to_be(); // with a single protocol the socket would see only arriving packets
        let fd = socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
        let raw = fd.as_raw_fd();
        let mut keep = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: KEPT }; // BPF_RET: accept the packet, truncated
        set_option(
            raw,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &libc::sock_fprog { len: 1, filter: &mut keep },
        )?;
        set_option(
            raw,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as i32),
        )?;
        let shape = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCKS * BLOCK / 2048) as u32,
            tp_retire_blk_tov: RETIRED_AFTER,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(raw, libc::SOL_PACKET, libc::PACKET_RX_RING, &shape)?;
        let (access, size) = (libc::PROT_READ | libc::PROT_WRITE, BLOCK * BLOCKS);
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, raw, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let mut a: libc::sockaddr_ll = unsafe { zeroed() };
        a.sll_family = libc::AF_PACKET as u16;
        a.sll_protocol = protocol;
        a.sll_ifindex = interface as i32;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        check(unsafe { libc::bind(raw, std::ptr::from_ref(&a).cast(), len) }, "bind packet socket")?;
        Ok(Ring { fd, memory: memory.cast_const().cast(), block: 0 })
    }

    /// Descriptor that is readable when a block is full.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Pass every packet of the released blocks to `each`.
    pub fn drain(&mut self, mut each: impl FnMut(Seen<'_>)) {
        loop {
            // A block belongs to this process while its status has this bit; clearing the bit returns it to the kernel.
            let block = unsafe { self.memory.add(self.block * BLOCK) };
            let header = unsafe { block.add(8).cast::<libc::tpacket_hdr_v1>().cast_mut() };
            if unsafe { (&raw const (*header).block_status).read_volatile() } & libc::TP_STATUS_USER == 0 {
                return;
            }
            self.read(&mut each);
            unsafe { (&raw mut (*header).block_status).write_volatile(libc::TP_STATUS_KERNEL) };
            self.block = (self.block + 1) % BLOCKS;
        }
    }

    /// Pass on the remaining blocks at the end, including the one being filled. With a single CPU the kernel is not
    /// filling it now.
    pub fn drain_all(&mut self, mut each: impl FnMut(Seen<'_>)) {
        self.drain(&mut each);
        self.read(&mut each);
    }

    /// Pass the packets of the current block to `each`.
    fn read(&self, each: &mut impl FnMut(Seen<'_>)) {
        let block = unsafe { self.memory.add(self.block * BLOCK) };
        let header = unsafe { &*block.add(8).cast::<libc::tpacket_hdr_v1>() };
        let mut at = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            let packet = unsafe { block.add(at) };
            let h = unsafe { &*packet.cast::<libc::tpacket3_hdr>() };
            let from = (size_of::<libc::tpacket3_hdr>() + 15) & !15;
            let source = unsafe { &*packet.add(from).cast::<libc::sockaddr_ll>() };
            let head =
                unsafe { std::slice::from_raw_parts(packet.add(h.tp_net as usize), h.tp_snaplen as usize) };
            each(Seen {
                t: h.tp_sec as u64 * 1_000_000_000 + h.tp_nsec as u64,
                device: source.sll_ifindex as u32,
                outgoing: source.sll_pkttype == libc::PACKET_OUTGOING,
                len: h.tp_len,
                head,
            });
            at += h.tp_next_offset as usize;
        }
    }

    /// Packets dropped because the ring was full.
    pub fn lost(&self) -> Result<u32> {
        let mut stats = [0u8; 12];
        get_option(self.fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
        Ok(u32::from_ne_bytes(stats[4..8].try_into().expect("invariant: four bytes")))
    }
}

/// Release string of the kernel.
pub fn release() -> String {
    let mut name: libc::utsname = unsafe { zeroed() };
    unsafe { libc::uname(&mut name) };
    unsafe { CStr::from_ptr(name.release.as_ptr()) }.to_string_lossy().into_owned()
}

fn port_of(fd: RawFd, ask: unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut u32) -> i32) -> Result<u16> {
    let mut a = address([0; 4], 0);
    let mut len = ADDRESS_LEN;
    check(unsafe { ask(fd, std::ptr::from_mut(&mut a).cast(), &mut len) }, "socket name")?;
    Ok(u16::from_be(a.sin_port))
}

/// Local port.
pub fn local_port(fd: RawFd) -> Result<u16> {
    port_of(fd, libc::getsockname)
}

/// Port of the peer.
pub fn peer_port(fd: RawFd) -> Result<u16> {
    port_of(fd, libc::getpeername)
}
