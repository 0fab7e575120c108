//! Functions of `ackclock_stack.h` in Rust, on top of this crate's `Stack`.

use std::ffi::{c_char, c_int, CStr};
use std::ptr;

use crate::{Sample, Stack, State, CONTROLLERS};

#[repr(C)]
pub struct Table {
    abi: u32,
    header_bytes: u32,
    round_trips: u32,
    name: *const c_char,
    version: *const c_char,
    controllers: *const c_char,
    open: unsafe extern "C" fn(
        c_int,
        *const c_char,
        *const c_char,
        *const [u8; 32],
        u64,
        *mut c_char,
        usize,
    ) -> *mut Stack,
    datagram: unsafe extern "C" fn(*mut Stack, u64, u8, *const u8, usize),
    timer: unsafe extern "C" fn(*mut Stack, u64),
    transmit: unsafe extern "C" fn(*mut Stack, u64, *mut u8, usize, *mut u8) -> usize,
    deadline: unsafe extern "C" fn(*const Stack) -> u64,
    write: unsafe extern "C" fn(*mut Stack, u64, u64),
    finish: unsafe extern "C" fn(*mut Stack, u64),
    received: unsafe extern "C" fn(*const Stack) -> u64,
    peer_finished: unsafe extern "C" fn(*const Stack) -> c_int,
    state: unsafe extern "C" fn(*const Stack, *mut c_char, usize) -> c_int,
    sample: unsafe extern "C" fn(*const Stack, *mut Sample),
    close: unsafe extern "C" fn(*mut Stack),
}

unsafe impl Sync for Table {}

static TABLE: Table = Table {
    abi: 1,
    header_bytes: 20, // IPv4 header; only the TCP segment is passed on
    round_trips: 1,
    name: c"smoltcp".as_ptr(),
    version: c"0.14.0".as_ptr(),
    controllers: CONTROLLERS.as_ptr(),
    open,
    datagram,
    timer,
    transmit,
    deadline,
    write,
    finish,
    received,
    peer_finished,
    state,
    sample,
    close,
};

#[no_mangle]
pub extern "C" fn ackclock_stack() -> *const Table {
    &TABLE
}

/// Copy text into a buffer of `room` bytes, truncated and zero-terminated.
unsafe fn tell(text: &str, into: *mut c_char, room: usize) {
    if room > 0 {
        let len = text.len().min(room - 1);
        ptr::copy_nonoverlapping(text.as_ptr(), into.cast(), len);
        *into.add(len) = 0;
    }
}

unsafe extern "C" fn open(
    is_server: c_int,
    controller: *const c_char,
    options: *const c_char,
    seed: *const [u8; 32],
    now: u64,
    reason: *mut c_char,
    room: usize,
) -> *mut Stack {
    let [controller, options] = [controller, options].map(|text| CStr::from_ptr(text).to_string_lossy());
    match Stack::open(is_server != 0, &controller, &options, &*seed, now) {
        Ok(stack) => Box::into_raw(Box::new(stack)),
        Err(said) => {
            tell(&said, reason, room);
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn datagram(stack: *mut Stack, now: u64, _ecn: u8, bytes: *const u8, len: usize) {
    let bytes = if len == 0 { &[] } else { std::slice::from_raw_parts(bytes, len) };
    (*stack).datagram(now, bytes);
}

unsafe extern "C" fn timer(stack: *mut Stack, now: u64) {
    (*stack).timer(now);
}

unsafe extern "C" fn transmit(stack: *mut Stack, now: u64, into: *mut u8, room: usize, mark: *mut u8) -> usize {
    let Some(segment) = (*stack).transmit(now) else { return 0 };
    let bytes = &segment.bytes[crate::IP..];
    if bytes.len() > room {
        return 0; // cannot happen: the largest packet is 1,500 bytes
    }
    ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len());
    *mark = if segment.has_data { 4 } else { 0 };
    bytes.len()
}

unsafe extern "C" fn deadline(stack: *const Stack) -> u64 {
    (*stack).deadline()
}

unsafe extern "C" fn write(stack: *mut Stack, now: u64, bytes: u64) {
    (*stack).write(now, bytes);
}

unsafe extern "C" fn finish(stack: *mut Stack, now: u64) {
    (*stack).finish(now);
}

unsafe extern "C" fn received(stack: *const Stack) -> u64 {
    (*stack).received()
}

unsafe extern "C" fn peer_finished(stack: *const Stack) -> c_int {
    c_int::from((*stack).peer_finished())
}

unsafe extern "C" fn state(stack: *const Stack, reason: *mut c_char, room: usize) -> c_int {
    match (*stack).state() {
        State::Opening => 0,
        State::Open => 1,
        State::Closed => 2,
        State::Failed(why) => {
            tell(why, reason, room);
            3
        }
    }
}

unsafe extern "C" fn sample(stack: *const Stack, into: *mut Sample) {
    *into = (*stack).sample();
}

unsafe extern "C" fn close(stack: *mut Stack) {
    drop(Box::from_raw(stack));
}
