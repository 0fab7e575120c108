//! The functions of `c/ackclock_link.h`.

#![allow(unsafe_code, reason = "the border to C: exported names, and memory of the caller")]

use std::ffi::{c_char, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::{Ecn, Link, Packet};

/// `ack_packet` of the header.
#[repr(C)]
pub struct CPacket {
    id: u64,
    at_ns: u64,
    bytes: u32,
    flow: u32,
    ecn: u8,
    data: u8,
    lost: u8,
}

const NEVER: u64 = u64::MAX;
const MISUSED: i32 = -1;

impl CPacket {
    fn write(&mut self, at_ns: u64, packet: Packet, lost: u8) {
        let Packet { id, bytes, ecn, flow, data } = packet;
        *self = CPacket { id, at_ns, bytes, flow, ecn: ecn as u8, data: u8::from(data), lost };
    }
}

/// Create a link. Returns null on an error, whose description is written to `why`, truncated to `room` bytes including
/// the terminating zero.
///
/// # Safety
///
/// `text` must be zero-terminated. `why` must point to `room` bytes or be null.
#[no_mangle]
pub unsafe extern "C" fn ack_link_new(
    text: *const c_char,
    seed: u64,
    why: *mut c_char,
    room: usize,
) -> *mut Link {
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    let made = match text.to_str() {
        Ok(text) => Link::new(text, seed).map_err(|mistake| mistake.to_string()),
        Err(_) => Err("link: found no UTF-8; allowed: UTF-8".to_string()),
    };
    match made {
        Ok(link) => Box::into_raw(Box::new(link)),
        Err(said) => {
            if !why.is_null() && room > 0 {
                let bytes = said.len().min(room - 1);
                // SAFETY: `room` bytes are the caller's promise.
                unsafe {
                    std::ptr::copy_nonoverlapping(said.as_ptr().cast::<c_char>(), why, bytes);
                    why.add(bytes).write(0);
                }
            }
            std::ptr::null_mut()
        }
    }
}

/// See the header. Returns 0, the reason for the loss, or -1 if time goes back or the packet has no bytes.
///
/// # Safety
///
/// `link` must come from [`ack_link_new`] and `packet` must point to a packet.
#[no_mangle]
pub unsafe extern "C" fn ack_link_enqueue(link: *mut Link, now_ns: u64, packet: *const CPacket) -> i32 {
    // SAFETY: promised by the caller.
    let (link, packet) = unsafe { (&mut *link, &*packet) };
    let &CPacket { id, bytes, flow, data, .. } = packet;
    let packet = Packet { id, bytes, flow, ecn: Ecn::from_bits(packet.ecn), data: data != 0 };
    match catch_unwind(AssertUnwindSafe(|| link.enqueue(now_ns, packet))) {
        Ok(Ok(())) => 0,
        Ok(Err(lost)) => i32::from(lost as u8),
        Err(_) => MISUSED,
    }
}

/// See the header.
///
/// # Safety
///
/// `link` must come from [`ack_link_new`].
#[no_mangle]
pub unsafe extern "C" fn ack_link_next_event(link: *const Link) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { &*link }.next_event().unwrap_or(NEVER)
}

/// See the header. Returns 1 and the packet, 0 if there is none, or -1 if time goes back.
///
/// # Safety
///
/// `link` must come from [`ack_link_new`] and `packet` must point to memory for a packet.
#[no_mangle]
pub unsafe extern "C" fn ack_link_dequeue(link: *mut Link, now_ns: u64, packet: *mut CPacket) -> i32 {
    // SAFETY: promised by the caller.
    let (link, place) = unsafe { (&mut *link, &mut *packet) };
    match catch_unwind(AssertUnwindSafe(|| link.dequeue(now_ns))) {
        Ok(Some((at, packet))) => {
            place.write(at, packet, 0);
            1
        }
        Ok(None) => 0,
        Err(_) => MISUSED,
    }
}

/// See the header.
///
/// # Safety
///
/// `link` must come from [`ack_link_new`] and `packet` must point to memory for a packet.
#[no_mangle]
pub unsafe extern "C" fn ack_link_take_dropped(link: *mut Link, packet: *mut CPacket) -> i32 {
    // SAFETY: promised by the caller.
    let (link, place) = unsafe { (&mut *link, &mut *packet) };
    match link.take_dropped() {
        Some((packet, lost)) => {
            place.write(0, packet, lost as u8);
            1
        }
        None => 0,
    }
}

/// Free a link.
///
/// # Safety
///
/// `link` must come from [`ack_link_new`] and not have been freed, or be null.
#[no_mangle]
pub unsafe extern "C" fn ack_link_free(link: *mut Link) {
    if !link.is_null() {
        // SAFETY: promised by the caller.
        drop(unsafe { Box::from_raw(link) });
    }
}
