//! The structures of `ackclock_controller.h`, field by field.

#![allow(missing_docs, reason = "the header says what each is")]

use std::ffi::{c_char, c_int, c_void};

/// Version of the interface.
pub const ABI: u32 = 2;
/// No RTT, no time.
pub const NONE: u64 = u64::MAX;

pub const NEEDS_CONTROL: u32 = 1;
pub const NEEDS_RATE: u32 = 2;
pub const NEEDS_PACING: u32 = 4;
pub const NEEDS_EXACT_ECN: u32 = 8;
pub const NEEDS_L4S: u32 = 16;
pub const NEEDS_REDUCES: u32 = 32;
pub const NEEDS_OWN_START: u32 = 64;

pub const ACK_CWND_LIMITED: u32 = 1;
pub const ACK_PACED: u32 = 2;
pub const ACK_ECE: u32 = 4;
pub const ACK_DUP: u32 = 8;
pub const ACK_SLOW_PATH: u32 = 16;
pub const ACK_RATE: u32 = 32;
pub const RATE_APP_LIMITED: u32 = 64;
pub const RATE_RETRANS: u32 = 128;
pub const RATE_ACK_DELAYED: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CWindow {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub cwnd_cnt: u32,
    pub cwnd_clamp: u32,
    pub prior_cwnd: u32,
    pub reserved: u32,
    pub pacing_rate: u64,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CRate {
    pub interval: u64,
    pub send_elapsed: u64,
    pub ack_elapsed: u64,
    pub prior_delivered: u64,
    pub prior_time: u64,
    pub total_delivered: u64,
    pub total_lost: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub tx_in_flight: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CAck {
    pub now: u64,
    pub rtt: u64,
    pub srtt: u64,
    pub min_rtt: u64,
    pub departs_in: u64,
    pub acked_bytes: u64,
    pub snd_una: u64,
    pub snd_nxt: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub since_sent: u32,
    pub covered: u32,
    pub sacked: u32,
    pub prior_in_flight: u32,
    pub in_flight: u32,
    pub smss: u32,
    pub acked: u32,
    pub newly_lost: u32,
    pub state: u32,
    pub flags: u32,
    pub rate: CRate,
}

#[repr(C)]
pub struct CHost {
    pub run: *mut c_void,
    pub random: unsafe extern "C" fn(*mut c_void) -> u64,
    pub now: unsafe extern "C" fn(*mut c_void) -> u64,
}

type Said = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type WithWindow = unsafe extern "C" fn(*mut c_void, *mut CWindow, u64) -> c_int;
type WithAck = unsafe extern "C" fn(*mut c_void, *mut CWindow, *const CAck) -> c_int;
type Asked = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;

/// Hooks that are null stand as `None`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CController {
    pub abi: u32,
    pub needs: u32,
    pub name: *const c_char,
    pub variables: *const c_char,
    pub buffer_windows: u32,
    pub reserved: u32,
    pub open: Option<unsafe extern "C" fn(*const CHost) -> *mut c_void>,
    pub close: Option<unsafe extern "C" fn(*mut c_void)>,
    pub said: Option<Said>,
    pub on_syn_acked: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    pub on_start: Option<unsafe extern "C" fn(*mut c_void, *mut CWindow, u64, u64, u32) -> c_int>,
    pub on_sample: Option<WithAck>,
    pub on_ack: Option<WithAck>,
    pub reduces: Option<Asked>,
    pub ssthresh: Option<unsafe extern "C" fn(*mut c_void, *const CWindow, u32, c_int, *mut u32) -> c_int>,
    pub on_rto: Option<WithWindow>,
    pub on_state: Option<unsafe extern "C" fn(*mut c_void, *mut CWindow, u32, u64) -> c_int>,
    pub on_recovered: Option<WithWindow>,
    pub on_ecn: Option<unsafe extern "C" fn(*mut c_void, *mut CWindow, *const CAck, *mut c_int) -> c_int>,
    pub undo_cwnd: Option<unsafe extern "C" fn(*mut c_void, *const CWindow, *mut u32) -> c_int>,
    pub on_tx_start: Option<unsafe extern "C" fn(*mut c_void, *mut CWindow, u64, u64, u64) -> c_int>,
    pub on_restart: Option<WithWindow>,
    pub on_control: Option<WithAck>,
    pub on_totals: Option<unsafe extern "C" fn(*mut c_void, u64, u64, u64) -> c_int>,
    pub holds_back: Option<Asked>,
    pub variables_of: Option<unsafe extern "C" fn(*mut c_void, *mut f64) -> c_int>,
}

/// The function that a library exports.
pub type Entry = unsafe extern "C" fn(*const c_char, *mut c_char, usize) -> *const CController;
