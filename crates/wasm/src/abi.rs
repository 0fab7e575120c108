//! Functions that the page calls. Numbers cross as they are, texts as an address and a length in linear memory, seeds as BigInt.
//!
//! A panic ends the instance: the page takes a new one.

#![allow(
    unsafe_code,
    reason = "the borders of a module: exported names, and memory that the page has written"
)]

use std::cell::RefCell;

use crate::controller::{self, Slot};
use crate::lab::{Asks, Lab, Watch};

extern "C" {
    /// Report the finished share of the run; a result other than 0: stop.
    fn tell(part: f64) -> u32;
    /// Why the instance ends.
    fn fail(address: *const u8, length: usize);
}

thread_local! {
    static LAB: RefCell<Lab> = RefCell::default();
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
    static FAILED: Slot = Slot::default();
}

/// Error of a controller since [`forget`].
fn failure() -> Option<String> {
    FAILED.with(|slot| slot.lock().ok()?.as_ref().map(controller::Failure::told))
}

fn forget() {
    FAILED.with(|slot| slot.lock().map(|mut slot| *slot = None).unwrap_or_default());
}

fn answer(made: &serde_json::Value) -> usize {
    ANSWER.with_borrow_mut(|answer| {
        *answer = made.to_string();
        answer.len()
    })
}

/// Bytes that the page fills; the caller frees them.
///
/// # Safety
///
/// `address` is of [`room`], with the same length, and is taken once.
unsafe fn take(address: *mut u8, length: usize) -> Vec<u8> {
    Vec::from_raw_parts(address, length, length)
}

/// Once, before all else.
#[no_mangle]
pub extern "C" fn begin() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the page reads the text before this returns.
        unsafe { fail(text.as_ptr(), text.len()) }
    }));
}

/// Room for this many bytes.
#[no_mangle]
pub extern "C" fn room(length: usize) -> *mut u8 {
    let mut bytes = std::mem::ManuallyDrop::new(vec![0_u8; length].into_boxed_slice());
    bytes.as_mut_ptr()
}

/// A file that scenarios may name; takes both rooms.
///
/// # Safety
///
/// Both are rooms that were made with these lengths.
#[no_mangle]
pub unsafe extern "C" fn add_file(name: *mut u8, name_length: usize, data: *mut u8, data_length: usize) {
    let name = String::from_utf8_lossy(&take(name, name_length)).into_owned();
    LAB.with_borrow_mut(|lab| lab.add_file(name, take(data, data_length)));
}

/// The page's class number `class` is a controller of this name; takes the room.
///
/// # Safety
///
/// The room was made with this length.
#[no_mangle]
pub unsafe extern "C" fn add_controller(name: *mut u8, length: usize, class: u32) {
    let name = String::from_utf8_lossy(&take(name, length)).into_owned();
    let maker = FAILED.with(|slot| controller::maker(&name, class, slot));
    LAB.with_borrow_mut(|lab| lab.add_controller(name, maker));
}

/// Put a controller through the test of conformance; takes the room. Returns the length of the answer.
///
/// # Safety
///
/// The room was made with this length.
#[no_mangle]
pub unsafe extern "C" fn conform(name: *mut u8, length: usize) -> usize {
    let name = take(name, length);
    forget();
    answer(&LAB.with_borrow(|lab| lab.conform(&String::from_utf8_lossy(&name), &failure)))
}

/// Read a scenario; takes the room. Returns the length of the answer.
///
/// # Safety
///
/// The room was made with this length.
#[no_mangle]
pub unsafe extern "C" fn read(text: *mut u8, length: usize) -> usize {
    let text = take(text, length);
    answer(&LAB.with_borrow_mut(|lab| lab.read(&String::from_utf8_lossy(&text))))
}

/// Run it; `watch`: 0 nothing, 1 figures, 2 all of what they are made from. Returns the length of the answer, whose columns stay until the next run.
#[no_mangle]
pub extern "C" fn run(seed: u64, watch: u32, memory: f64) -> usize {
    // SAFETY: `tell` takes a number and touches no memory of ours.
    let told = |part| unsafe { tell(part) != 0 };
    let asks = Asks { tell: &told, failure: &failure };
    let watch = match watch {
        0 => Watch::Nothing,
        1 => Watch::Figures,
        _ => Watch::Whole,
    };
    forget();
    answer(&LAB.with_borrow_mut(|lab| lab.run(seed, watch, memory as u64, &asks)))
}

/// Where its packets are from a time on, s, until there are `most` legs. Returns the length of the answer; columns as of [`run`].
#[no_mangle]
pub extern "C" fn film(seed: u64, from_s: f64, most: usize, memory: f64) -> usize {
    // SAFETY: as in `run`.
    let told = |part| unsafe { tell(part) != 0 };
    let asks = Asks { tell: &told, failure: &failure };
    forget();
    answer(&LAB.with_borrow_mut(|lab| lab.film(seed, from_s, most, memory as u64, &asks)))
}

/// Address of the answer.
#[no_mangle]
pub extern "C" fn answered() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}
