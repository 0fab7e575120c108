//! A user-defined controller in a shared library, like `crates/python/src/controller.rs` for Python. The interface,
//! `ackclock_controller.h`, declares the contract's hooks in C, so that the library may be written in any language. The
//! first failure is reported and ends the run.

#![allow(unsafe_code, reason = "the border to C: functions of a library, and memory that it writes")]

pub mod abi;
mod library;

use std::ffi::{c_int, c_void, CStr};
use std::sync::Arc;

use ackclock_cc::controller::own::{variables, ABSURD};
use ackclock_cc::controller::{Custom, Hook, Maker, Needs};
use ackclock_cc::{AckSample, Arrival, CongestionControl, Window};
use ackclock_core::calls;
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use abi::{Answer, Argument, CHost, CWindow};
pub use library::Library;

/// Callback for the first failure: hook, time, description.
pub type Report = Arc<dyn Fn(&'static str, Time, String) + Send + Sync>;

/// Factory for a library's controllers.
pub fn maker(library: &Library, report: &Report) -> Maker {
    let (library, report) = (*library, report.clone());
    Maker::new(move || Box::new(NativeController::new(&library, &report)) as Custom)
}

/// A controller with hooks implemented by a library.
pub struct NativeController {
    library: Library,
    /// Instance of the library; null if there is none, or after a failure.
    cc: *mut c_void,
    run: Box<Run>,
    needs: Needs,
    report: Report,
}

/// Run state that the library may query.
#[derive(Clone)]
struct Run {
    stream: Stream,
    now: Time,
}

// SAFETY: the interface serialises the calls of one connection, on any thread.
unsafe impl Send for NativeController {}

unsafe extern "C" fn random(run: *mut c_void) -> u64 {
    // SAFETY: it belongs to the calling connection, which outlives it.
    unsafe { (*run.cast::<Run>()).stream.next_u64() }
}

unsafe extern "C" fn now(run: *mut c_void) -> u64 {
    // SAFETY: as above.
    unsafe { (*run.cast::<Run>()).now.0 }
}

impl NativeController {
    /// Create a controller for a connection. If that fails, the failure is reported and the controller does nothing.
    pub fn new(library: &Library, report: &Report) -> NativeController {
        let hooks = &library.hooks;
        let mut made = NativeController {
            library: *library,
            cc: std::ptr::null_mut(),
            run: Box::new(Run { stream: Stream::new(0, library.name), now: Time::ZERO }),
            needs: Needs {
                seed: true,
                buffer_windows: hooks.buffer_windows.min(100) as u8,
                slow_packets: hooks.slow_packets,
                ..Needs::of_bits(hooks.needs)
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
        let host = made.host();
        // SAFETY: the library keeps the host's address, not that of this structure.
        made.cc = {
            let _call = calls::enter(library.name, "open", Time::ZERO);
            hooks.open.map_or(std::ptr::null_mut(), |open| unsafe { open(&host) })
        };
        if made.cc.is_null() {
            made.fail("open", "it has no memory".to_string());
        }
        made
    }

    fn host(&mut self) -> CHost {
        let run: *mut Run = &mut *self.run;
        CHost { run: run.cast(), random, now }
    }

    #[cold]
    fn fail(&mut self, hook: &'static str, said: String) {
        self.close();
        (self.report)(hook, self.run.now, said);
    }

    fn close(&mut self) {
        let cc = std::mem::replace(&mut self.cc, std::ptr::null_mut());
        if let (Some(close), false) = (self.library.hooks.close, cc.is_null()) {
            let _call = self.begins("close");
            // SAFETY: an open controller, closed once.
            unsafe { close(cc) }
        }
    }

    /// Mark the start of a call into the library, which lasts until the returned value is dropped.
    #[inline]
    fn begins(&self, hook: &'static str) -> calls::Call {
        calls::enter(self.library.name, hook, self.run.now)
    }

    /// Return the library's reason for a failed hook.
    fn said(&self) -> String {
        let text = self.library.hooks.said.map_or(std::ptr::null(), |said| {
            // SAFETY: an open controller.
            unsafe { said(self.cc) }
        });
        match text.is_null() {
            true => "it does not say what".to_string(),
            // SAFETY: a text that ends with a zero, read before another hook is called.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        }
    }

    /// Return whether the hook succeeded; report the failure otherwise.
    fn went(&mut self, hook: &'static str, status: c_int) -> bool {
        if status != 0 {
            let said = self.said();
            self.fail(hook, said);
        }
        status == 0
    }

    /// Return a value returned or set by a hook, if it is valid; report a failure otherwise.
    fn counts<T>(&mut self, hook: &'static str, what: Result<T, String>) -> Option<T> {
        what.map_err(|said| self.fail(hook, said)).ok()
    }
}

/// Argument through which a hook may return a value.
trait Back: Argument + Sized {
    fn back(self, _held: Self::Held) -> Result<(), String> {
        Ok(())
    }
}

impl Back for &mut Window {
    fn back(self, set: CWindow) -> Result<(), String> {
        if !(1..=ABSURD as u32).contains(&set.cwnd) {
            return Err(format!("cwnd is {}; allowed: 1 to {ABSURD}", set.cwnd));
        }
        if set.ssthresh == 0 || set.pacing_rate == 0 {
            let what = if set.ssthresh == 0 { "ssthresh" } else { "the pacing rate" };
            return Err(format!("{what} is 0; allowed: 1 or more"));
        }
        self.cwnd = set.cwnd;
        self.ssthresh = set.ssthresh.min(Window::INFINITE);
        self.cwnd_cnt = set.cwnd_cnt;
        self.cwnd_clamp = set.cwnd_clamp;
        self.pacing_rate = set.pacing_rate;
        Ok(())
    }
}

macro_rules! nothing_comes_back {
    ($($type:ty)*) => {
        $(impl Back for $type {})*
    };
}

nothing_comes_back!(&Window &Arrival &AckSample u32 u64 bool Time Span CaState);

/// An argument while its hook runs.
struct Lent<T: Argument> {
    given: T,
    held: T::Held,
}

impl<T: Back> Lent<T> {
    #[inline]
    fn new(given: T) -> Lent<T> {
        Lent { held: given.hold(), given }
    }
    #[inline]
    fn pass(&mut self) -> T::C {
        T::pass(&mut self.held)
    }
    #[inline]
    fn back(self) -> Result<(), String> {
        self.given.back(self.held)
    }
}

impl Drop for NativeController {
    fn drop(&mut self) {
        self.close();
    }
}

/// Argument that may carry the time of its event. Hooks without one use the time of the last ACK or timeout.
trait Timed {
    fn time(&self) -> Option<Time> {
        None
    }
}

impl Timed for Time {
    fn time(&self) -> Option<Time> {
        Some(*self)
    }
}

impl Timed for &Arrival {
    fn time(&self) -> Option<Time> {
        Some(self.now)
    }
}

impl Timed for &mut Window {}
impl Timed for Span {}
impl Timed for u32 {}

macro_rules! keep_time {
    (on_start $me:ident $($arg:ident)*) => { $(if let Some(now) = $arg.time() { $me.run.now = now })* };
    (on_sample $me:ident $($arg:ident)*) => { $(if let Some(now) = $arg.time() { $me.run.now = now })* };
    (on_timer $me:ident $($arg:ident)*) => { $(if let Some(now) = $arg.time() { $me.run.now = now })* };
    (on_rto $me:ident $($arg:ident)*) => { $(if let Some(now) = $arg.time() { $me.run.now = now })* };
    ($hook:ident $me:ident $($arg:ident)*) => {};
}

macro_rules! called {
    (
        events { $(
            $(#[doc = $about:literal])+
            fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
            [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
        )* }
        itself { $($itself:tt)* }
    ) => {
        #[allow(clippy::needless_arbitrary_self_type, reason = "one form for all hooks")]
        impl CongestionControl for NativeController {
            $(fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)? {
                keep_time!($hook $me $($arg)*);
                if let Some(hook) = $me.library.hooks.$hook.filter(|_| !$me.cc.is_null()) {
                    $(let mut $arg = Lent::new($arg);)*
                    $(let mut answer = <$answer as Answer>::start(Hook::$hook);)?
                    let call = $me.begins(stringify!($hook));
                    // SAFETY: an open controller; windows and answers to write and ACKs to read, which outlive the call.
                    let status = unsafe {
                        hook($me.cc $(, $arg.pass())* $(, &mut answer as *mut <$answer as Answer>::C)?)
                    };
                    drop(call);
                    if $me.went(stringify!($hook), status) {
                        $($me.counts(stringify!($hook), $arg.back());)*
                        $(if let Some(answer) = $me.counts(stringify!($hook), <$answer as Answer>::read(answer)) {
                            return answer;
                        })?
                    }
                    given_up!($(<$answer>::default())?);
                }
                $body
            })*

            fn needs(&self) -> Needs {
                self.needs
            }

            fn vars(&self, values: &mut [f64]) {
                if let Some(hook) = self.library.hooks.variables_of.filter(|_| !self.cc.is_null()) {
                    let _call = self.begins("variables");
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

            fn copied(&self) -> Result<Custom, String> {
                let Some(copy) = self.library.hooks.copy.filter(|_| !self.cc.is_null()) else {
                    return Err("found a library without copy".to_string());
                };
                let mut made = NativeController {
                    library: self.library,
                    cc: std::ptr::null_mut(),
                    run: self.run.clone(),
                    needs: self.needs,
                    report: self.report.clone(),
                };
                let host = made.host();
                let call = self.begins("copy");
                // SAFETY: an open controller; the library keeps the host's address, not that of this
                // structure.
                made.cc = unsafe { copy(self.cc, &host) };
                drop(call);
                match made.cc.is_null() {
                    true => Err(self.said()),
                    false => Ok(Box::new(made)),
                }
            }
        }
    };
}

/// A failure ends the run; until then the return values do not matter.
macro_rules! given_up {
    () => {
        return;
    };
    ($answer:expr) => {
        return $answer;
    };
}

ackclock_cc::hooks!(called);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_the_structures_without_a_gap_at_their_end() {
        let hooks = ackclock_cc::controller::HOOKS.iter().filter(|row| row.is_event).count();
        assert_eq!(std::mem::size_of::<CWindow>(), 32);
        assert_eq!(std::mem::size_of::<abi::CController>(), 8 + 3 * 8 + 8 + (5 + hooks) * 8);
    }

    #[test]
    fn what_is_no_library_is_refused_in_a_line() {
        let refused = Library::load("/nowhere/lib.so", "").err().expect("refused");
        assert!(refused.starts_with("found a"), "{refused}");
        assert!(!refused.contains('\n'));
    }
}
