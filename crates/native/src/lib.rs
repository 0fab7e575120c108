//! A user's controller in a shared library, behind the engine's contract, as `crates/python/src/controller.rs` is for Python. The interface is
//! `ackclock_controller.h`: the contract's hooks in C, so that the library may be written in any language. The first failure is reported
//! and ends the run.

#![allow(unsafe_code, reason = "the border to C: functions of a library, and memory that it writes")]

pub mod abi;
mod library;

use std::ffi::{c_int, c_void, CStr};
use std::sync::Arc;

use ackclock_cc::controller::own::{variables, ABSURD};
use ackclock_cc::controller::{Custom, Maker, Needs};
use ackclock_cc::{AckSample, Arrival, CongestionControl, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use abi::{CAck, CHost, CRate, CWindow, NONE};
pub use library::Library;

/// Told of the first failure: hook, time, what it was.
pub type Report = Arc<dyn Fn(&'static str, Time, String) + Send + Sync>;

/// Makes controllers of the library.
pub fn maker(library: &Library, report: &Report) -> Maker {
    let (library, report) = (*library, report.clone());
    Maker::new(move || Box::new(NativeController::new(&library, &report)) as Custom)
}

/// A controller whose hooks are functions of a library.
pub struct NativeController {
    library: Library,
    /// Null: none, or none after a failure.
    cc: *mut c_void,
    run: Box<Run>,
    needs: Needs,
    report: Report,
}

/// What the library may ask.
struct Run {
    stream: Stream,
    now: Time,
}

// SAFETY: the interface has calls of one connection follow each other, on whatever thread.
unsafe impl Send for NativeController {}

unsafe extern "C" fn random(run: *mut c_void) -> u64 {
    // SAFETY: that of the connection that asks, which outlives it.
    unsafe { (*run.cast::<Run>()).stream.next_u64() }
}

unsafe extern "C" fn now(run: *mut c_void) -> u64 {
    // SAFETY: as above.
    unsafe { (*run.cast::<Run>()).now.0 }
}

impl NativeController {
    /// A controller for a connection; if it cannot be made, the failure is noted and the controller does nothing.
    pub fn new(library: &Library, report: &Report) -> NativeController {
        let hooks = &library.hooks;
        let needs = |bit: u32| hooks.needs & bit != 0;
        let mut made = NativeController {
            library: *library,
            cc: std::ptr::null_mut(),
            run: Box::new(Run { stream: Stream::new(0, library.name), now: Time::ZERO }),
            needs: Needs {
                control: needs(abi::NEEDS_CONTROL),
                rate: needs(abi::NEEDS_RATE),
                pacing: needs(abi::NEEDS_PACING),
                exact_ecn: needs(abi::NEEDS_EXACT_ECN),
                l4s: needs(abi::NEEDS_L4S),
                reduces: needs(abi::NEEDS_REDUCES),
                own_start: needs(abi::NEEDS_OWN_START),
                seed: true,
                buffer_windows: hooks.buffer_windows.min(100) as u8,
                ..Needs::default()
            },
            report: report.clone(),
        };
        let names = library.variables.split(',').filter(|name| !name.is_empty()).map(str::to_string);
        match variables(names.collect()) {
            Ok(names) => made.needs.vars = names,
            Err(said) => {
                made.fail("open", said);
                return made;
            }
        }
        let run: *mut Run = &mut *made.run;
        let host = CHost { run: run.cast(), random, now };
        // SAFETY: the library keeps what the host is, not where this structure lies.
        made.cc = hooks.open.map_or(std::ptr::null_mut(), |open| unsafe { open(&host) });
        if made.cc.is_null() {
            made.fail("open", "it has no memory".to_string());
        }
        made
    }

    #[cold]
    fn fail(&mut self, hook: &'static str, said: String) {
        self.close();
        (self.report)(hook, self.run.now, said);
    }

    fn close(&mut self) {
        let cc = std::mem::replace(&mut self.cc, std::ptr::null_mut());
        if let (Some(close), false) = (self.library.hooks.close, cc.is_null()) {
            // SAFETY: an open controller, closed once.
            unsafe { close(cc) }
        }
    }

    /// Whether the hook went well; if not, why is noted.
    fn went(&mut self, hook: &'static str, status: c_int) -> bool {
        if status == 0 {
            return true;
        }
        let text = self.library.hooks.said.map_or(std::ptr::null(), |said| {
            // SAFETY: an open controller.
            unsafe { said(self.cc) }
        });
        let said = match text.is_null() {
            true => "it does not say what".to_string(),
            // SAFETY: a text that ends with a zero, read before another hook is called.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        self.fail(hook, said);
        false
    }

    /// Call a hook with the window, and take over what it set.
    #[inline]
    fn call(
        &mut self,
        hook: &'static str,
        window: &mut Window,
        call: impl FnOnce(*mut c_void, *mut CWindow) -> c_int,
    ) {
        if self.cc.is_null() {
            return;
        }
        let mut given = given(window);
        let status = call(self.cc, &mut given);
        if !self.went(hook, status) {
            return;
        }
        if !(1..=ABSURD as u32).contains(&given.cwnd) {
            return self.fail(hook, format!("cwnd is {}; allowed: 1 to {ABSURD}", given.cwnd));
        }
        if given.ssthresh == 0 || given.pacing_rate == 0 {
            let what = if given.ssthresh == 0 { "ssthresh" } else { "the pacing rate" };
            return self.fail(hook, format!("{what} is 0; allowed: 1 or more"));
        }
        window.cwnd = given.cwnd;
        window.ssthresh = given.ssthresh.min(Window::INFINITE);
        window.cwnd_cnt = given.cwnd_cnt;
        window.cwnd_clamp = given.cwnd_clamp;
        window.pacing_rate = given.pacing_rate;
    }

    /// Call one that answers with a window.
    fn answer(
        &mut self,
        hook: &'static str,
        window: &Window,
        call: impl FnOnce(*mut c_void, *const CWindow, *mut u32) -> c_int,
    ) -> Option<u32> {
        if self.cc.is_null() {
            return None;
        }
        let (given, mut answer) = (given(window), 0);
        let status = call(self.cc, &given, &mut answer);
        if !self.went(hook, status) {
            return None;
        }
        if answer == 0 || answer > Window::INFINITE {
            self.fail(hook, format!("it answers {answer}; allowed: 1 to {}", Window::INFINITE));
            return None;
        }
        Some(answer)
    }
}

impl Drop for NativeController {
    fn drop(&mut self) {
        self.close();
    }
}

impl CongestionControl for NativeController {
    fn on_syn_acked(&mut self, rtt: Span) {
        let Some(hook) = self.library.hooks.on_syn_acked.filter(|_| !self.cc.is_null()) else { return };
        // SAFETY: an open controller.
        let status = unsafe { hook(self.cc, rtt.0) };
        self.went("on_syn_acked", status);
    }

    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        self.run.now = now;
        let Some(hook) = self.library.hooks.on_start else { return };
        // SAFETY: an open controller, and a window to write.
        self.call("on_start", window, |cc, w| unsafe { hook(cc, w, now.0, srtt.0, smss) });
    }

    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        self.run.now = ack.now;
        let Some(hook) = self.library.hooks.on_sample else { return };
        let ack = heard(&AckSample::from(*ack));
        // SAFETY: an open controller, a window to write, an ACK to read.
        self.call("on_sample", window, |cc, w| unsafe { hook(cc, w, &ack) });
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let Some(hook) = self.library.hooks.on_ack else { return };
        let ack = heard(ack);
        // SAFETY: as above.
        self.call("on_ack", window, |cc, w| unsafe { hook(cc, w, &ack) });
    }

    fn reduces(&mut self) -> bool {
        let Some(hook) = self.library.hooks.reduces.filter(|_| !self.cc.is_null()) else { return false };
        let mut asked = 0;
        // SAFETY: an open controller, and a number to write.
        let status = unsafe { hook(self.cc, &mut asked) };
        self.went("reduces", status) && asked != 0
    }

    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32 {
        let Some(hook) = self.library.hooks.ssthresh else { return window.cwnd };
        // SAFETY: an open controller, a window to read, a number to write.
        let call = |cc, w, to| unsafe { hook(cc, w, in_flight, 0, to) };
        self.answer("ssthresh", window, call).unwrap_or(window.cwnd)
    }

    fn ssthresh_for_mark(&mut self, window: &Window, in_flight: u32) -> u32 {
        let Some(hook) = self.library.hooks.ssthresh else { return window.cwnd };
        // SAFETY: as above.
        let call = |cc, w, to| unsafe { hook(cc, w, in_flight, 1, to) };
        self.answer("ssthresh", window, call).unwrap_or(window.cwnd)
    }

    fn on_timer(&mut self, now: Time) {
        self.run.now = now;
    }

    fn on_rto(&mut self, window: &mut Window, now: Time) {
        self.run.now = now;
        let Some(hook) = self.library.hooks.on_rto else { return };
        // SAFETY: an open controller, and a window to write; so in the hooks below.
        self.call("on_rto", window, |cc, w| unsafe { hook(cc, w, now.0) });
    }

    fn on_state(&mut self, window: &mut Window, state: CaState, now: Time) {
        let Some(hook) = self.library.hooks.on_state else { return };
        self.call("on_state", window, |cc, w| unsafe { hook(cc, w, state as u32, now.0) });
    }

    fn on_recovered(&mut self, window: &mut Window, now: Time) {
        let Some(hook) = self.library.hooks.on_recovered else { return };
        self.call("on_recovered", window, |cc, w| unsafe { hook(cc, w, now.0) });
    }

    fn on_ecn(&mut self, window: &mut Window, ack: &Arrival) -> bool {
        let Some(hook) = self.library.hooks.on_ecn else { return true };
        let (ack, mut reacts) = (heard(&AckSample::from(*ack)), 1);
        self.call("on_ecn", window, |cc, w| unsafe { hook(cc, w, &ack, &mut reacts) });
        reacts != 0
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        let before = window.cwnd.max(window.prior_cwnd);
        let Some(hook) = self.library.hooks.undo_cwnd else { return before };
        self.answer("undo_cwnd", window, |cc, w, to| unsafe { hook(cc, w, to) }).unwrap_or(before)
    }

    fn on_tx_start(&mut self, window: &mut Window, now: Time, idle: Span, snd_nxt: u64) {
        let Some(hook) = self.library.hooks.on_tx_start else { return };
        self.call("on_tx_start", window, |cc, w| unsafe { hook(cc, w, now.0, idle.0, snd_nxt) });
    }

    fn on_restart(&mut self, window: &mut Window, snd_nxt: u64) {
        let Some(hook) = self.library.hooks.on_restart else { return };
        self.call("on_restart", window, |cc, w| unsafe { hook(cc, w, snd_nxt) });
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        let Some(hook) = self.library.hooks.on_control else { return };
        let ack = heard(ack);
        self.call("on_control", window, |cc, w| unsafe { hook(cc, w, &ack) });
    }

    fn on_totals(&mut self, delivered: u64, lost: u64, delivered_time: Time) {
        let Some(hook) = self.library.hooks.on_totals.filter(|_| !self.cc.is_null()) else { return };
        // SAFETY: an open controller.
        let status = unsafe { hook(self.cc, delivered, lost, delivered_time.0) };
        self.went("on_totals", status);
    }

    fn holds_back(&self) -> bool {
        let Some(hook) = self.library.hooks.holds_back.filter(|_| !self.cc.is_null()) else { return false };
        let mut held = 0;
        // SAFETY: an open controller, and a number to write. A failure shows at the next hook, which may report it.
        unsafe { hook(self.cc, &mut held) == 0 && held != 0 }
    }

    fn vars(&self, values: &mut [f64]) {
        if let Some(hook) = self.library.hooks.variables_of.filter(|_| !self.cc.is_null()) {
            let mut known = [f64::NAN; ackclock_cc::controller::MAX_VARS];
            // SAFETY: an open controller, and room for as many numbers as it may have names.
            if unsafe { hook(self.cc, known.as_mut_ptr()) } == 0 {
                for (value, known) in values.iter_mut().zip(known).filter(|(_, known)| !known.is_nan()) {
                    *value = known;
                }
            }
        }
    }

    fn seed(&mut self, seed: u64) {
        self.run.stream = Stream::new(seed, self.library.name);
    }
}

#[inline]
fn given(window: &Window) -> CWindow {
    CWindow {
        cwnd: window.cwnd,
        ssthresh: window.ssthresh,
        cwnd_cnt: window.cwnd_cnt,
        cwnd_clamp: window.cwnd_clamp,
        prior_cwnd: window.prior_cwnd,
        reserved: 0,
        pacing_rate: window.pacing_rate,
    }
}

#[inline]
fn heard(ack: &AckSample) -> CAck {
    let bit = |flag: bool, bit: u32| if flag { bit } else { 0 };
    let mut flags = bit(ack.cwnd_limited, abi::ACK_CWND_LIMITED)
        | bit(ack.paced, abi::ACK_PACED)
        | bit(ack.ece, abi::ACK_ECE)
        | bit(ack.is_dup, abi::ACK_DUP)
        | bit(ack.slow_path, abi::ACK_SLOW_PATH);
    let mut rate = CRate::default();
    if let Some(r) = &ack.rate {
        flags |= abi::ACK_RATE
            | bit(r.is_app_limited, abi::RATE_APP_LIMITED)
            | bit(r.is_retrans, abi::RATE_RETRANS)
            | bit(r.is_ack_delayed, abi::RATE_ACK_DELAYED);
        rate = CRate {
            interval: r.interval.0,
            send_elapsed: r.send_elapsed.0,
            ack_elapsed: r.ack_elapsed.0,
            prior_delivered: r.prior_delivered,
            prior_time: r.prior_time.0,
            total_delivered: r.total_delivered,
            total_lost: r.total_lost,
            delivered: r.delivered,
            delivered_ce: r.delivered_ce,
            lost: r.lost,
            tx_in_flight: r.tx_in_flight,
        };
    }
    CAck {
        now: ack.now.0,
        rtt: ack.rtt.map_or(NONE, |rtt| rtt.0),
        srtt: ack.srtt.0,
        min_rtt: ack.min_rtt.0,
        departs_in: ack.departs_in.0,
        acked_bytes: ack.acked_bytes,
        snd_una: ack.snd_una,
        snd_nxt: ack.snd_nxt,
        delivered: ack.delivered,
        delivered_ce: ack.delivered_ce,
        since_sent: ack.since_sent,
        covered: ack.covered,
        sacked: ack.sacked,
        prior_in_flight: ack.prior_in_flight,
        in_flight: ack.in_flight,
        smss: ack.smss,
        acked: ack.acked,
        newly_lost: ack.newly_lost,
        state: ack.ca_state as u32,
        flags,
        rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(std::mem::size_of::<CWindow>(), 32);
        assert_eq!(std::mem::size_of::<CRate>(), 72);
        assert_eq!(std::mem::size_of::<CAck>(), 184);
        assert_eq!(std::mem::size_of::<abi::CController>(), 8 + 23 * 8);
    }

    #[test]
    fn what_is_no_library_is_refused_in_a_line() {
        let refused = Library::load("/nowhere/lib.so", "").err().expect("refused");
        assert!(refused.starts_with("found a"), "{refused}");
        assert!(!refused.contains('\n'));
    }
}
