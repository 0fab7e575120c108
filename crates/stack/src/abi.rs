//! The types of `c/ackclock_stack.h`.

use std::ffi::{c_char, c_int};

pub const ABI: u32 = 1;
pub const NONE: u64 = u64::MAX;

/// One end of a connection, opaque outside the library.
#[repr(C)]
pub struct Raw {
    _private: [u8; 0],
}

/// `ack_sample` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub window: u64,
    pub in_flight: u64,
    pub ssthresh: u64,
    pub sent: u64,
    pub lost: u64,
    pub acks: u64,
    pub acked: u64,
    pub latest_rtt_ns: u64,
    pub srtt_ns: u64,
    pub min_rtt_ns: u64,
    pub pacing_bps: u64,
    pub mtu: u64,
}

impl Told {
    /// A report without any known value.
    pub const NOTHING: Told = Told {
        window: NONE,
        in_flight: NONE,
        ssthresh: NONE,
        sent: NONE,
        lost: NONE,
        acks: NONE,
        acked: NONE,
        latest_rtt_ns: NONE,
        srtt_ns: NONE,
        min_rtt_ns: NONE,
        pacing_bps: NONE,
        mtu: NONE,
    };
}

/// `ack_stack_v1` of the header. A null function is rejected when the library is loaded.
#[repr(C)]
pub struct Table {
    pub abi: u32,
    pub header_bytes: u32,
    pub round_trips: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub controllers: *const c_char,
    pub open: Option<Open>,
    pub datagram: Option<unsafe extern "C" fn(*mut Raw, u64, u8, *const u8, usize)>,
    pub timer: Option<unsafe extern "C" fn(*mut Raw, u64)>,
    pub transmit: Option<unsafe extern "C" fn(*mut Raw, u64, *mut u8, usize, *mut u8) -> usize>,
    pub deadline: Option<unsafe extern "C" fn(*const Raw) -> u64>,
    pub write: Option<unsafe extern "C" fn(*mut Raw, u64, u64)>,
    pub finish: Option<unsafe extern "C" fn(*mut Raw, u64)>,
    pub received: Option<unsafe extern "C" fn(*const Raw) -> u64>,
    pub peer_finished: Option<unsafe extern "C" fn(*const Raw) -> c_int>,
    pub state: Option<unsafe extern "C" fn(*const Raw, *mut c_char, usize) -> c_int>,
    pub sample: Option<unsafe extern "C" fn(*const Raw, *mut Told)>,
    pub close: Option<unsafe extern "C" fn(*mut Raw)>,
}

pub type Open =
    unsafe extern "C" fn(c_int, *const c_char, *const c_char, *const u8, u64, *mut c_char, usize) -> *mut Raw;
