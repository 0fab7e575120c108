//! A congestion controller in a Rust file, for `ackclock run --controller mine.rs`.
//!
//! SPDX-License-Identifier: MIT OR Apache-2.0
//!
//! Implement [`Controller`], which is defined in `ackclock_contract.rs` together with the arguments of its hooks, and end the file with
//! `ackclock_controller::export!(Mine);`. This crate is compiled together with the file. It wraps the interface of `include/ackclock_controller.h` in
//! safe code. A panic ends the run with its message.
//!
//! Units: windows and counts in segments, times in ns from the start of the run, rates in bytes per second, offsets in bytes of the
//! stream (the first byte is 1).

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::OnceLock;

include!("ackclock_contract.rs");

/// The congestion window and related state; hooks may set all fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; [`Window::INFINITE`] until the first reduction.
    pub ssthresh: u32,
    /// Segments acknowledged since cwnd last grew.
    pub cwnd_cnt: u32,
    /// Upper bound of `cwnd`, segments.
    pub cwnd_clamp: u32,
    /// `cwnd` at the last reduction, segments.
    pub prior_cwnd: u32,
    reserved: u32,
    /// Pacing rate, bytes/s; [`Window::UNPACED`] if there is none.
    pub pacing_rate: u64,
}

impl Window {
    /// `ssthresh` before the first reduction.
    pub const INFINITE: u32 = 0x7fff_ffff;
    /// No pacing rate.
    pub const UNPACED: u64 = u64::MAX;

    /// Whether `cwnd` is below `ssthresh` (RFC 5681 §3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: one segment per segment acknowledged, up to ssthresh. Returns the acknowledged segments
    /// left for linear growth.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.cwnd_clamp);
        left
    }

    /// Linear growth: one segment per `w` segments acknowledged.
    pub fn additive_increase(&mut self, w: u32, acked: u32) {
        let w = w.max(1);
        if self.cwnd_cnt >= w {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        self.cwnd += self.cwnd_cnt / w;
        self.cwnd_cnt %= w;
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }

    /// Slow start, then one segment per round trip, while the window limits the sender (RFC 5681 §3.1).
    pub fn grow_as_reno(&mut self, ack: &Ack) {
        if !ack.cwnd_limited() {
            return;
        }
        let acked = if self.in_slow_start() { self.slow_start(ack.acked) } else { ack.acked };
        if acked > 0 {
            self.additive_increase(self.cwnd, acked);
        }
    }
}

/// Congestion states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum State {
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

impl State {
    fn of(number: u32) -> State {
        [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss][number.min(4) as usize]
    }
}

impl Ack {
    /// Congestion state before this ACK.
    pub fn state(&self) -> State {
        self.ca_state()
    }
    /// Whether the ACK echoes a congestion mark (ECE).
    pub fn is_ece(&self) -> bool {
        self.ece()
    }
    /// Whether the ACK is a duplicate (RFC 5681).
    pub fn is_duplicate(&self) -> bool {
        self.is_dup()
    }
    /// Whether the application limited the flight from which the delivery rate was sampled.
    pub fn is_app_limited(&self) -> bool {
        self.rate().is_some_and(Rate::is_app_limited)
    }
}

thread_local! {
    /// Host of the connection whose hook is running.
    static HOST: Cell<Option<Host>> = const { Cell::new(None) };
}

/// Random numbers of the connection, reproducible with the run's seed.
#[derive(Clone, Copy, Debug)]
pub struct Random(());

impl Random {
    /// Return 64 random bits. Callable only within a hook.
    pub fn next(&mut self) -> u64 {
        let host = HOST.get().expect("a hook that runs");
        // SAFETY: the simulator keeps it as long as the connection.
        unsafe { (host.random)(host.run) }
    }
}

/// `congestion_control_options` of the flow.
pub struct Options(Vec<(String, f64)>);

impl Options {
    /// Return the number of this name, or the default. True is 1, false 0.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        self.0.iter().find(|(known, _)| known == name).map_or(default, |&(_, value)| value)
    }
}

/// Services of the simulator for one connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // controllers in Rust receive the time as an argument of their hooks
pub struct Host {
    run: *mut c_void,
    random: unsafe extern "C" fn(*mut c_void) -> u64,
    now: unsafe extern "C" fn(*mut c_void) -> u64,
}

struct Made<C> {
    /// The controller; `None` if its constructor panicked.
    cc: Option<C>,
    host: Host,
    said: CString,
}

// SAFETY: all of it is constant.
unsafe impl Send for Hooks {}
// SAFETY: the same.
unsafe impl Sync for Hooks {}

static OPTIONS: OnceLock<Options> = OnceLock::new();
static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Return the message of a panic.
fn line(panic: &(dyn Any + Send)) -> CString {
    let said = panic.downcast_ref::<&str>().map(|said| said.to_string());
    let said =
        said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_string());
    CString::new(said.replace('\0', " ")).unwrap_or_default()
}

/// Call a hook. A panic is stored as the error message, and the result is 1.
unsafe fn called<C>(made: *mut c_void, hook: impl FnOnce(&mut C)) -> c_int {
    // SAFETY: `open` made it, and calls for one connection come one after the other.
    let made = unsafe { &mut *made.cast::<Made<C>>() };
    let Some(cc) = &mut made.cc else { return 1 };
    HOST.set(Some(made.host));
    match catch_unwind(AssertUnwindSafe(|| hook(cc))) {
        Ok(()) => 0,
        Err(panic) => {
            made.said = line(&*panic);
            1
        }
    }
}

unsafe extern "C" fn open<C: Controller>(host: *const Host) -> *mut c_void {
    let options = OPTIONS.get_or_init(|| Options(Vec::new()));
    // SAFETY: the simulator lends it for this call.
    let host = unsafe { *host };
    HOST.set(Some(host));
    let (cc, said) = match catch_unwind(AssertUnwindSafe(|| C::new(options, Random(())))) {
        Ok(cc) => (Some(cc), CString::default()),
        Err(panic) => (None, line(&*panic)),
    };
    Box::into_raw(Box::new(Made { cc, host, said })).cast()
}

unsafe extern "C" fn copy<C: Controller>(made: *mut c_void, host: *const Host) -> *mut c_void {
    // SAFETY: `open` made the one, the simulator lends the other.
    let (made, host) = unsafe { (&mut *made.cast::<Made<C>>(), *host) };
    let Some(cc) = &made.cc else { return std::ptr::null_mut() };
    match catch_unwind(AssertUnwindSafe(|| cc.copy())) {
        Ok(Some(cc)) => Box::into_raw(Box::new(Made { cc: Some(cc), host, said: CString::default() })).cast(),
        Ok(None) => {
            made.said = c"found state outside of the structure, and no copy of its own".into();
            std::ptr::null_mut()
        }
        Err(panic) => {
            made.said = line(&*panic);
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn variables_of<C: Controller>(cc: *mut c_void, values: *mut f64) -> c_int {
    unsafe {
        called::<C>(cc, |cc| cc.variables(std::slice::from_raw_parts_mut(values, C::VARIABLES.len().min(8))))
    }
}

unsafe extern "C" fn close<C: Controller>(made: *mut c_void) {
    drop(unsafe { Box::from_raw(made.cast::<Made<C>>()) });
}

unsafe extern "C" fn said<C: Controller>(made: *mut c_void) -> *const c_char {
    unsafe { (*made.cast::<Made<C>>()).said.as_ptr() }
}

fn read<C: Controller>(lines: &str) -> Result<Options, String> {
    let mut read = Vec::new();
    for (name, value) in lines.lines().filter_map(|line| line.split_once('=')) {
        if !C::OPTIONS.contains(&name) {
            return Err(match C::OPTIONS {
                [] => format!("found option {name}; allowed: none"),
                known => format!("found option {name}; allowed: {}", known.join(", ")),
            });
        }
        let value = match value {
            "true" => Ok(1.0),
            "false" => Ok(0.0),
            number => number.parse(),
        };
        read.push((name.to_string(), value.map_err(|_| format!("option {name}: found no number"))?));
    }
    Ok(Options(read))
}

/// Body of the entry point that `export!` defines in the library.
///
/// # Safety
///
/// `lines` is terminated by a zero byte, and `why` points to `room` writable bytes.
#[doc(hidden)]
pub unsafe fn entry<C: Controller>(lines: *const c_char, why: *mut c_char, room: usize) -> *const Hooks {
    std::panic::set_hook(Box::new(|_| ())); // the simulator reports panics
    let lines = unsafe { CStr::from_ptr(lines) }.to_string_lossy();
    match read::<C>(&lines) {
        Ok(options) => _ = OPTIONS.set(options),
        Err(said) => {
            let said = said.as_bytes();
            let length = said.len().min(room.saturating_sub(1));
            unsafe {
                std::ptr::copy_nonoverlapping(said.as_ptr().cast(), why, length);
                *why.add(length) = 0;
            }
            return std::ptr::null();
        }
    }
    HOOKS.get_or_init(Hooks::of::<C>)
}

/// Return the names, separated by commas, as a C string that is never freed; null if there are none.
fn listed(names: &[&str]) -> *const c_char {
    match names {
        [] => std::ptr::null(),
        names => CString::new(names.join(",")).unwrap_or_default().into_raw(),
    }
}

/// Export a type as the library's controller.
#[macro_export]
macro_rules! export {
    ($controller:ty) => {
        /// Entry point of the library.
        ///
        /// # Safety
        ///
        /// See the requirements in ackclock_controller.h.
        #[no_mangle]
        pub unsafe extern "C" fn ackclock_controller(
            options: *const std::ffi::c_char,
            why: *mut std::ffi::c_char,
            room: usize,
        ) -> *const $crate::Hooks {
            unsafe { $crate::entry::<$controller>(options, why, room) }
        }
    };
}
