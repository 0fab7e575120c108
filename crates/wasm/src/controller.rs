//! A user's controller written in JavaScript, behind the engine's contract: the bridge needed by `own.rs`. Numbers
//! are passed in [`SLOTS`]; `web/hooks.js` defines the arguments and results of the hooks.

#![allow(unsafe_code, reason = "the page's functions, and memory that it writes")]

use std::sync::{Arc, Mutex};

use ackclock_cc::controller::own::{seconds, variables, Bridge, Every, Own, OwnWindow, Said, Told, Value};
use ackclock_cc::controller::{Custom, Hook, Maker, Needs, FIELDS};
use ackclock_cc::{AckSample, RateSample};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

extern "C" {
    /// Create an instance of a class and return its number. A negative number is a failure, see [`told`]. The slots
    /// then contain the instance's needs.
    fn make(class: u32, slots: *mut f64) -> i32;
    /// Call a hook of an instance. A nonzero result is a failure, see [`told`].
    fn hook(instance: i32, hook: u32, slots: *mut f64) -> i32;
    /// Copy an instance with its state. Results are as for [`make`].
    fn copy(instance: i32, slots: *mut f64) -> i32;
    /// Write the instance's variables to the slots.
    fn variables_of(instance: i32, slots: *mut f64);
    /// Release an instance that is no longer needed.
    fn release(instance: i32);
}

/// First error of a controller.
pub struct Failure {
    class: String,
    hook: &'static str,
    time: Time,
    said: String,
}

impl Failure {
    /// Description of the error in one line, as in Python.
    pub fn told(&self) -> String {
        format!("controller {}, {} at {:.6} s: {}", self.class, self.hook, self.time.as_secs(), self.said)
    }
}

/// Storage for the first failure of a run's controllers.
pub type Slot = Arc<Mutex<Option<Failure>>>;

/// Return a factory for controllers of the page's `class`, which record failures in `slot`.
pub fn maker(name: &str, class: u32, slot: &Slot) -> Maker {
    let (name, slot) = (name.to_string(), slot.clone());
    Maker::new(move || Box::new(made(&name, class, &slot)) as Custom)
}

/// Object in the page's worker with hooks as methods.
pub struct JsBridge {
    /// Object number; negative if there is none.
    instance: i32,
    class: String,
    /// Bit mask of the hooks that have a method; zero after a failure.
    has: u32,
    slot: Slot,
}

/// Create a controller. If that fails, the failure is recorded and this controller and all later ones do nothing.
fn made(name: &str, class: u32, slot: &Slot) -> Own<JsBridge> {
    let mut bridge = JsBridge { instance: -1, class: name.to_string(), has: 0, slot: slot.clone() };
    if failed(slot) {
        return Own::new(bridge, Said::default());
    }
    let mut slots = [0.0; SLOTS];
    // SAFETY: the page writes within the slots.
    bridge.instance = unsafe { make(class, slots.as_mut_ptr()) };
    let said = bridge.learn(&slots).unwrap_or_else(|said| {
        bridge.fail("constructor", Time::ZERO, said);
        Said::default()
    });
    Own::new(bridge, said)
}

impl JsBridge {
    /// Read the properties reported by a new instance.
    fn learn(&mut self, slots: &[f64; SLOTS]) -> Result<Said, String> {
        if self.instance < 0 {
            return Err(told(slots));
        }
        let every = match slots[1] as u32 {
            0 => Every::Round,
            1 => Every::Ack,
            n => Every::Acks(n),
        };
        let names = told(&slots[3 + Needs::NUMBERS..]);
        let vars = match names.is_empty() {
            true => &[],
            false => variables(names.split(',').map(str::to_string).collect())?,
        };
        self.has = slots[0] as u32;
        Ok(Said { every, needs: Needs { vars, ..wanted(slots) } })
    }
}

/// Return the needs of a class, from its attributes.
macro_rules! wanted {
    (
        flags { $($(#[doc = $about:literal])+ $flag:ident [$bit:literal $(, $hook:ident)?];)* }
        numbers { $($(#[doc = $n_about:literal])+ $number:ident: $type:ty;)* }
    ) => {
        fn wanted(slots: &[f64; SLOTS]) -> Needs {
            let mut numbers = slots[3..].iter();
            let mut next = || numbers.next().copied().unwrap_or_default();
            Needs { $($number: next() as $type,)* ..Needs::of_bits(slots[2] as u32) }
        }
    };
}

ackclock_cc::needs!(wanted);

impl Bridge for JsBridge {
    type Error = String;

    fn has(&self, hook: Hook) -> bool {
        self.has & 1 << hook as u32 != 0
    }

    fn call(&mut self, asked: Hook, window: &mut OwnWindow, told_of: &Told) -> Result<f64, String> {
        let mut slots = [0.0; SLOTS];
        let OwnWindow { cwnd, ssthresh, pacing_rate, cwnd_cnt, prior_cwnd, cwnd_clamp } = *window;
        slots[..RETURNED].copy_from_slice(&[
            cwnd,
            ssthresh,
            pacing_rate,
            cwnd_cnt,
            f64::from(prior_cwnd),
            f64::from(cwnd_clamp),
        ]);
        match (&told_of.ack, asked) {
            (Some(ack), _) => fill_ack(&mut slots[FIRST..], ack),
            (None, Hook::seed) => {
                // a JavaScript number has only 53 bits
                let Some(Value::Whole(seed)) = told_of.values().next() else { return Ok(0.0) };
                slots[FIRST] = (seed >> 32) as f64;
                slots[FIRST + 1] = (seed as u32) as f64;
            }
            _ => {
                for (slot, value) in slots[FIRST..].iter_mut().zip(told_of.values()) {
                    *slot = value.number();
                }
            }
        }
        // SAFETY: the page writes within the slots.
        if unsafe { hook(self.instance, asked as u32, slots.as_mut_ptr()) } != 0 {
            return Err(told(&slots));
        }
        [window.cwnd, window.ssthresh, window.pacing_rate, window.cwnd_cnt] =
            [slots[0], slots[1], slots[2], slots[3]];
        Ok(slots[RETURNED])
    }

    fn refused(&self, said: String) -> String {
        format!("RangeError: {said}")
    }

    #[cold]
    fn fail(&mut self, hook: &'static str, time: Time, said: String) {
        self.has = 0;
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(Failure { class: self.class.clone(), hook, time, said });
        }
    }

    fn vars(&self, names: &[&str], values: &mut [f64]) {
        if self.has == 0 {
            return;
        }
        let mut slots = [f64::NAN; SLOTS];
        // SAFETY: the page writes within the slots.
        unsafe { variables_of(self.instance, slots.as_mut_ptr()) };
        for (value, known) in values.iter_mut().zip(slots).take(names.len()) {
            if !known.is_nan() {
                *value = known;
            }
        }
    }

    fn copied(&self) -> Result<JsBridge, String> {
        if self.has == 0 {
            return Err("found no controller that goes on".to_string());
        }
        let mut slots = [0.0; SLOTS];
        // SAFETY: the page writes within the slots.
        let instance = unsafe { copy(self.instance, slots.as_mut_ptr()) };
        let mut bridge = JsBridge { instance, class: self.class.clone(), has: 0, slot: self.slot.clone() };
        bridge.learn(&slots).map_err(|said| format!("found {said}"))?;
        Ok(bridge)
    }
}

impl Drop for JsBridge {
    fn drop(&mut self) {
        if self.instance >= 0 {
            // SAFETY: numbers only.
            unsafe { release(self.instance) }
        }
    }
}

/// Whether a failure has been recorded.
pub fn failed(slot: &Slot) -> bool {
    slot.lock().is_ok_and(|failure| failure.is_some())
}

/// Return the text at the address and length in the first two slots, allocated by the page with `room`.
fn told(slots: &[f64]) -> String {
    let (address, length) = (slots[0] as usize as *mut u8, slots[1] as usize);
    if length == 0 {
        return String::new();
    }
    // SAFETY: a room of this length, taken once.
    let bytes = unsafe { Vec::from_raw_parts(address, length, length) };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Contract value as a number; NaN where Python has None.
trait Number {
    fn number(&self) -> f64;
}

macro_rules! numbers {
    ($($type:ty: $value:ident => $number:expr;)*) => {
        $(impl Number for $type {
            fn number(&self) -> f64 {
                let $value = *self;
                $number
            }
        })*
    };
}

numbers! {
    u32: n => f64::from(n);
    u64: n => n as f64;
    bool: flag => f64::from(u8::from(flag));
    Time: time => time.as_secs();
    Span: span => seconds(span);
    Option<Span>: span => span.map_or(f64::NAN, seconds);
    CaState: state => f64::from(state as u8);
    Option<RateSample>: rate => f64::from(u8::from(rate.is_some()));
}

macro_rules! fills {
    (
        arrival { $($(#[doc = $about:literal])+ $field:ident: $type:ty [$over:ident, $linux:literal];)* }
        sample { $($(#[doc = $s_about:literal])+ $s_field:ident: $s_type:ty [$s_over:ident, $s_linux:literal];)* }
        rate { $($(#[doc = $r_about:literal])+ $r_field:ident: $r_type:ty [$r_over:ident, $r_linux:literal];)* }
    ) => {
        /// Write the ACK in the order of the contract, followed by the rate sample.
        fn fill_ack(slots: &mut [f64], ack: &AckSample) {
            let values = [$(ack.arrival.$field.number(),)* $(ack.$s_field.number(),)*];
            slots[..values.len()].copy_from_slice(&values);
            if let Some(rate) = &ack.rate {
                let behind = [$(rate.$r_field.number(),)*];
                slots[values.len()..values.len() + behind.len()].copy_from_slice(&behind);
            }
        }
    };
}

ackclock_cc::fields!(fills);

/// Number of slots passed with a call: the window, the hook's result, its arguments.
const SLOTS: usize = FIRST + FIELDS.len();
const RETURNED: usize = 6;
const FIRST: usize = RETURNED + 1;
