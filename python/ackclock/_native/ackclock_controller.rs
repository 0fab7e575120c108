//! A congestion controller in a file of Rust, for `ackclock run --controller mine.rs`.
//!
//! SPDX-License-Identifier: MIT OR Apache-2.0
//!
//! Implement [`Controller`] and end the file with `ackclock_controller::export!(Mine);`. This crate is compiled beside the file; it is
//! the interface of `include/ackclock_controller.h`, in safe words. A panic ends the run with its message.
//!
//! Units: windows and counts in segments, times in ns from the start of the run, rates in bytes per second, offsets in bytes of the
//! stream (the first byte is 1).

use std::any::Any;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::OnceLock;

/// Version of the interface.
pub const ABI: u32 = 2;

/// What a controller needs of the connection around it; [`Controller::NEEDS`] has them or'ed together.
pub mod needs {
    /// `on_control` is called in place of `on_ack` and the recovery rule.
    pub const CONTROL: u32 = 1;
    /// Delivery rates: `Ack::rate` and `Ack::since_sent`.
    pub const RATE: u32 = 2;
    /// The sender paces by `Window::pacing_rate`.
    pub const PACING: u32 = 4;
    /// Each mark is echoed exactly (RFC 8257).
    pub const EXACT_ECN: u32 = 8;
    /// Accurate ECN (RFC 9768), and packets with ECT(1) (RFC 9331).
    pub const L4S: u32 = 16;
    /// Its start is not the slow start of RFC 5681.
    pub const OWN_START: u32 = 64;
}

/// The window, which hooks may set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold; [`Window::INFINITE`] until the first reduction.
    pub ssthresh: u32,
    /// Segments acknowledged since cwnd last grew.
    pub cwnd_cnt: u32,
    /// cwnd never grows beyond.
    pub cwnd_clamp: u32,
    /// At the last reduction.
    pub prior_cwnd: u32,
    reserved: u32,
    /// [`Window::UNPACED`]: none.
    pub pacing_rate: u64,
}

impl Window {
    /// ssthresh before the first reduction.
    pub const INFINITE: u32 = 0x7fff_ffff;
    /// No pacing rate.
    pub const UNPACED: u64 = u64::MAX;

    /// RFC 5681 §3.1: below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: one segment per segment acknowledged, up to ssthresh. What is left for linear growth.
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

    /// Slow start and one segment per round trip, where the window was the limit (RFC 5681 §3.1).
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

/// A sample of the delivery rate, over the flight of the newest segment that an ACK covers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Rate {
    /// 0: not valid.
    pub interval: u64,
    pub send_elapsed: u64,
    pub ack_elapsed: u64,
    pub prior_delivered: u64,
    pub prior_time: u64,
    /// Of the connection.
    pub total_delivered: u64,
    pub total_lost: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub tx_in_flight: u32,
}

/// An ACK.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Ack {
    pub now: u64,
    rtt: u64,
    /// 0: no sample yet.
    pub srtt: u64,
    min_rtt: u64,
    pub departs_in: u64,
    pub acked_bytes: u64,
    pub snd_una: u64,
    pub snd_nxt: u64,
    /// Segments that it delivered.
    pub delivered: u32,
    /// Of these, marked.
    pub delivered_ce: u32,
    /// Delivered since the newest segment covered was sent.
    pub since_sent: u32,
    /// Segments that the cumulative ACK covers.
    pub covered: u32,
    /// SACKed above it.
    pub sacked: u32,
    pub prior_in_flight: u32,
    pub in_flight: u32,
    /// Payload of a full segment, bytes.
    pub smss: u32,
    /// Segments that count for growth.
    pub acked: u32,
    pub newly_lost: u32,
    state: u32,
    flags: u32,
    rate: Rate,
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
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
    /// RTT of the newest segment covered, if none of them was sent again.
    pub fn rtt(&self) -> Option<u64> {
        (self.rtt != u64::MAX).then_some(self.rtt)
    }
    /// The least RTT so far.
    pub fn min_rtt(&self) -> Option<u64> {
        (self.min_rtt != u64::MAX).then_some(self.min_rtt)
    }
    /// The sample of the delivery rate, with [`needs::RATE`].
    pub fn rate(&self) -> Option<&Rate> {
        self.has(32).then_some(&self.rate)
    }
    /// The connection's state.
    pub fn state(&self) -> State {
        State::of(self.state)
    }
    /// The window limited the sender since the last ACK.
    pub fn cwnd_limited(&self) -> bool {
        self.has(1)
    }
    /// It echoes a mark.
    pub fn is_ece(&self) -> bool {
        self.has(4)
    }
    /// It is a duplicate ACK (RFC 5681).
    pub fn is_duplicate(&self) -> bool {
        self.has(8)
    }
    /// The flight of the rate's sample was limited by the application.
    pub fn is_app_limited(&self) -> bool {
        self.has(64)
    }
}

/// Random numbers of the connection: the same in every run with the same seed.
pub struct Random(Host);

impl Random {
    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        // SAFETY: the simulator keeps it as long as the connection.
        unsafe { (self.0.random)(self.0.run) }
    }
}

/// `congestion_control_options` of the flow.
pub struct Options(Vec<(String, f64)>);

impl Options {
    /// The number of this name, or the default. True is 1, false 0.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        self.0.iter().find(|(known, _)| known == name).map_or(default, |&(_, value)| value)
    }
}

/// A congestion controller. One is made for each connection.
pub trait Controller: Sized {
    /// See [`needs`].
    const NEEDS: u32 = 0;
    /// Names of the options; another is refused.
    const OPTIONS: &'static [&'static str] = &[];

    /// For a connection.
    fn new(options: &Options, random: Random) -> Self;

    /// The handshake is over, with this RTT (0: no sample).
    fn on_start(&mut self, _window: &mut Window, _now: u64, _srtt: u64, _smss: u32) {}

    /// Every ACK, before losses are looked for.
    fn on_sample(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// An ACK outside recovery: grow.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        window.grow_as_reno(ack);
    }

    /// A congestion event: the window that recovery goes to, at least 2. `marked`: by ECN.
    fn ssthresh(&mut self, window: &Window, in_flight: u32, marked: bool) -> u32;

    /// A timeout, after `ssthresh`.
    fn on_rto(&mut self, _window: &mut Window, _now: u64) {}

    /// The state changes; at every timeout to [`State::Loss`].
    fn on_state(&mut self, _window: &mut Window, _state: State, _now: u64) {}

    /// A reduction is undone: the window then.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        window.cwnd.max(window.prior_cwnd)
    }

    /// With [`needs::CONTROL`]: every ACK; it alone sets the window.
    fn on_control(&mut self, _window: &mut Window, _ack: &Ack) {}
}

/// What the simulator does for a connection.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code)] // every hook of a controller in Rust that needs the time is told
pub struct Host {
    run: *mut c_void,
    random: unsafe extern "C" fn(*mut c_void) -> u64,
    now: unsafe extern "C" fn(*mut c_void) -> u64,
}

struct Made<C> {
    /// None: it could not be made.
    cc: Option<C>,
    said: CString,
}

type With = unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int;

/// `struct ackclock_controller`.
#[repr(C)]
pub struct Hooks {
    abi: u32,
    needs: u32,
    name: *const c_char,
    variables: *const c_char,
    buffer_windows: u32,
    reserved: u32,
    open: unsafe extern "C" fn(*const Host) -> *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
    said: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    on_syn_acked: *const c_void,
    on_start: unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32) -> c_int,
    on_sample: With,
    on_ack: With,
    reduces: *const c_void,
    ssthresh: unsafe extern "C" fn(*mut c_void, *const Window, u32, c_int, *mut u32) -> c_int,
    on_rto: unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int,
    on_state: unsafe extern "C" fn(*mut c_void, *mut Window, u32, u64) -> c_int,
    on_recovered: *const c_void,
    on_ecn: *const c_void,
    undo_cwnd: unsafe extern "C" fn(*mut c_void, *const Window, *mut u32) -> c_int,
    on_tx_start: *const c_void,
    on_restart: *const c_void,
    on_control: With,
    on_totals: *const c_void,
    holds_back: *const c_void,
    variables_of: *const c_void,
}

// SAFETY: all of it is constant.
unsafe impl Send for Hooks {}
// SAFETY: the same.
unsafe impl Sync for Hooks {}

static OPTIONS: OnceLock<Options> = OnceLock::new();
static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// What a panic says.
fn line(panic: &(dyn Any + Send)) -> CString {
    let said = panic.downcast_ref::<&str>().map(|said| said.to_string());
    let said =
        said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_string());
    CString::new(said.replace('\0', " ")).unwrap_or_default()
}

/// Call a hook; what panics is told.
unsafe fn called<C>(made: *mut c_void, hook: impl FnOnce(&mut C)) -> c_int {
    // SAFETY: `open` made it, and calls for one connection come one after the other.
    let made = unsafe { &mut *made.cast::<Made<C>>() };
    let Some(cc) = &mut made.cc else { return 1 };
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
    let random = Random(unsafe { *host });
    let made = match catch_unwind(AssertUnwindSafe(|| C::new(options, random))) {
        Ok(cc) => Made { cc: Some(cc), said: CString::default() },
        Err(panic) => Made { cc: None, said: line(&*panic) },
    };
    Box::into_raw(Box::new(made)).cast()
}

unsafe extern "C" fn close<C: Controller>(made: *mut c_void) {
    drop(unsafe { Box::from_raw(made.cast::<Made<C>>()) });
}

unsafe extern "C" fn said<C: Controller>(made: *mut c_void) -> *const c_char {
    unsafe { (*made.cast::<Made<C>>()).said.as_ptr() }
}

unsafe extern "C" fn on_start<C: Controller>(
    cc: *mut c_void,
    w: *mut Window,
    now: u64,
    srtt: u64,
    smss: u32,
) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_start(&mut *w, now, srtt, smss)) }
}

unsafe extern "C" fn on_sample<C: Controller>(cc: *mut c_void, w: *mut Window, ack: *const Ack) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_sample(&mut *w, &*ack)) }
}

unsafe extern "C" fn on_ack<C: Controller>(cc: *mut c_void, w: *mut Window, ack: *const Ack) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_ack(&mut *w, &*ack)) }
}

unsafe extern "C" fn on_control<C: Controller>(cc: *mut c_void, w: *mut Window, ack: *const Ack) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_control(&mut *w, &*ack)) }
}

unsafe extern "C" fn ssthresh<C: Controller>(
    cc: *mut c_void,
    w: *const Window,
    in_flight: u32,
    marked: c_int,
    target: *mut u32,
) -> c_int {
    unsafe { called::<C>(cc, |cc| *target = cc.ssthresh(&*w, in_flight, marked != 0)) }
}

unsafe extern "C" fn on_rto<C: Controller>(cc: *mut c_void, w: *mut Window, now: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_rto(&mut *w, now)) }
}

unsafe extern "C" fn on_state<C: Controller>(cc: *mut c_void, w: *mut Window, state: u32, now: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_state(&mut *w, State::of(state), now)) }
}

unsafe extern "C" fn undo_cwnd<C: Controller>(cc: *mut c_void, w: *const Window, cwnd: *mut u32) -> c_int {
    unsafe { called::<C>(cc, |cc| *cwnd = cc.undo_cwnd(&*w)) }
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

/// What `export!` makes the library's entry do.
///
/// # Safety
///
/// `lines` ends with a zero, and `why` has room for `room` bytes.
#[doc(hidden)]
pub unsafe fn entry<C: Controller>(lines: *const c_char, why: *mut c_char, room: usize) -> *const Hooks {
    std::panic::set_hook(Box::new(|_| ())); // the simulator says it
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
    HOOKS.get_or_init(|| Hooks {
        abi: ABI,
        needs: C::NEEDS,
        name: c"rust".as_ptr(),
        variables: std::ptr::null(),
        buffer_windows: 0,
        reserved: 0,
        open: open::<C>,
        close: close::<C>,
        said: said::<C>,
        on_syn_acked: std::ptr::null(),
        on_start: on_start::<C>,
        on_sample: on_sample::<C>,
        on_ack: on_ack::<C>,
        reduces: std::ptr::null(),
        ssthresh: ssthresh::<C>,
        on_rto: on_rto::<C>,
        on_state: on_state::<C>,
        on_recovered: std::ptr::null(),
        on_ecn: std::ptr::null(),
        undo_cwnd: undo_cwnd::<C>,
        on_tx_start: std::ptr::null(),
        on_restart: std::ptr::null(),
        on_control: on_control::<C>,
        on_totals: std::ptr::null(),
        holds_back: std::ptr::null(),
        variables_of: std::ptr::null(),
    })
}

/// Make a type the library's controller.
#[macro_export]
macro_rules! export {
    ($controller:ty) => {
        /// The entry of the library.
        ///
        /// # Safety
        ///
        /// As ackclock_controller.h says.
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
