//! Functions called by the page. Numbers are passed directly, strings as an address and a length in linear memory,
//! seeds as BigInt.
//!
//! A panic ends the instance, and the page creates a new one.

#![allow(
    unsafe_code,
    reason = "the borders of a module: exported names, and memory that the page has written"
)]

use std::cell::RefCell;

use crate::controller::{self, Slot};
use crate::lab::{Asks, Lab, Watch};

extern "C" {
    /// Report the fraction of the run completed. A nonzero result stops the run.
    fn tell(part: f64) -> u32;
    /// Report why the instance ends.
    fn fail(address: *const u8, length: usize);
}

thread_local! {
    static LAB: RefCell<Lab> = RefCell::default();
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
    static FAILED: Slot = Slot::default();
}

/// First error of a controller since [`forget`].
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

/// Take the bytes filled by the page.
///
/// # Safety
///
/// `address` was returned by [`room`] for the same length, and is taken only once.
unsafe fn take(address: *mut u8, length: usize) -> Vec<u8> {
    Vec::from_raw_parts(address, length, length)
}

/// Install the panic hook. Must be called once, before any other function.
#[no_mangle]
pub extern "C" fn begin() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the page reads the text before this returns.
        unsafe { fail(text.as_ptr(), text.len()) }
    }));
}

/// Allocate memory of this many bytes for the page to fill.
#[no_mangle]
pub extern "C" fn room(length: usize) -> *mut u8 {
    let mut bytes = std::mem::ManuallyDrop::new(vec![0_u8; length].into_boxed_slice());
    bytes.as_mut_ptr()
}

/// Add a file that scenarios may refer to. Takes ownership of both buffers.
///
/// # Safety
///
/// Both addresses were returned by [`room`] for these lengths.
#[no_mangle]
pub unsafe extern "C" fn add_file(name: *mut u8, name_length: usize, data: *mut u8, data_length: usize) {
    let name = String::from_utf8_lossy(&take(name, name_length)).into_owned();
    LAB.with_borrow_mut(|lab| lab.add_file(name, take(data, data_length)));
}

/// Add the page's class number `class` as a controller with this name. Takes ownership of the buffer.
///
/// # Safety
///
/// The address was returned by [`room`] for this length.
#[no_mangle]
pub unsafe extern "C" fn add_controller(name: *mut u8, length: usize, class: u32) {
    let name = String::from_utf8_lossy(&take(name, length)).into_owned();
    let maker = FAILED.with(|slot| controller::maker(&name, class, slot));
    LAB.with_borrow_mut(|lab| lab.add_controller(name, maker));
}

/// Run the conformance test on a controller. Takes ownership of the buffer and returns the length of the reply.
///
/// # Safety
///
/// The address was returned by [`room`] for this length.
#[no_mangle]
pub unsafe extern "C" fn conform(name: *mut u8, length: usize) -> usize {
    let name = take(name, length);
    forget();
    answer(&LAB.with_borrow(|lab| lab.conform(&String::from_utf8_lossy(&name), &failure)))
}

/// Read a scenario. Takes ownership of the buffer and returns the length of the reply.
///
/// # Safety
///
/// The address was returned by [`room`] for this length.
#[no_mangle]
pub unsafe extern "C" fn read(text: *mut u8, length: usize) -> usize {
    let text = take(text, length);
    answer(&LAB.with_borrow_mut(|lab| lab.read(&String::from_utf8_lossy(&text))))
}

/// Run the scenario read last. `watch`: 0 adds no records, 1 adds those drawn in figures, 2 adds the figures'
/// records in full. Returns the length of the reply; its columns remain valid until the next run.
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

/// Record the packets on the links from `from_s` (s) on, up to `most` legs. Returns the length of the reply; its
/// columns are as for [`run`].
#[no_mangle]
pub extern "C" fn film(seed: u64, from_s: f64, most: usize, memory: f64) -> usize {
    // SAFETY: as in `run`.
    let told = |part| unsafe { tell(part) != 0 };
    let asks = Asks { tell: &told, failure: &failure };
    forget();
    answer(&LAB.with_borrow_mut(|lab| lab.film(seed, from_s, most, memory as u64, &asks)))
}

/// Address of the last reply.
#[no_mangle]
pub extern "C" fn answered() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}
