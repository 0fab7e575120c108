//! A user's controller written in JavaScript, behind the engine's contract, as `crates/python/src/controller.rs` is for Python: same hooks, same
//! units, same checks. Numbers cross by [`SLOTS`]; what a hook is called with and what it answered is for `web/hooks.js` to say.

#![allow(unsafe_code, reason = "the page's functions, and memory that it writes")]

use std::sync::{Arc, Mutex};

use ackclock_cc::controller::own::{variables, within, Every, Hook, OwnWindow, Pending, ABSURD};
use ackclock_cc::controller::{Custom, Maker, Needs};
use ackclock_cc::{AckSample, Arrival, CongestionControl, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

extern "C" {
    /// Make an instance of a class: its number. Below 0: it cannot be made, see [`told`]. The slots say what it needs.
    fn make(class: u32, slots: *mut f64) -> i32;
    /// Call a hook of an instance. Other than 0: it failed, see [`told`].
    fn hook(instance: i32, hook: u32, slots: *mut f64) -> i32;
    /// The instance's variables.
    fn variables_of(instance: i32, slots: *mut f64);
    /// An instance is not needed any more.
    fn release(instance: i32);
}

/// What went wrong first.
pub struct Failure {
    class: String,
    hook: &'static str,
    time: Time,
    said: String,
}

impl Failure {
    /// In a line, as in Python.
    pub fn told(&self) -> String {
        format!("controller {}, {} at {:.6} s: {}", self.class, self.hook, self.time.as_secs(), self.said)
    }
}

/// Where the controllers of one run leave their first failure.
pub type Slot = Arc<Mutex<Option<Failure>>>;

/// Makes controllers of the page's `class`, which leave failures in `slot`.
pub fn maker(name: &str, class: u32, slot: &Slot) -> Maker {
    let (name, slot) = (name.to_string(), slot.clone());
    Maker::new(move || Box::new(JsController::new(&name, class, &slot)) as Custom)
}

/// A controller whose hooks are methods of an object in the page's worker.
pub struct JsController {
    /// Below 0: none, or none after a failure.
    instance: i32,
    class: String,
    window: OwnWindow,
    /// By hook: whether there is such a method.
    has: u32,
    every: Every,
    /// Of `on_sample`; of `on_ack` or `on_control`.
    pending: [Pending; 2],
    needs: Needs,
    slot: Slot,
    now: Time,
}

impl JsController {
    /// An instance; if it cannot be made, the failure is noted and the controller does nothing. Nor does one that comes after a failure.
    pub fn new(name: &str, class: u32, slot: &Slot) -> JsController {
        let mut made = JsController {
            instance: -1,
            class: name.to_string(),
            window: OwnWindow::default(),
            has: 0,
            every: Every::Ack,
            pending: Default::default(),
            needs: Needs::default(),
            slot: slot.clone(),
            now: Time::ZERO,
        };
        if failed(slot) {
            return made;
        }
        let mut slots = [0.0; SLOTS];
        // SAFETY: the page writes within the slots.
        made.instance = unsafe { make(class, slots.as_mut_ptr()) };
        if let Err(said) = made.learn(&slots) {
            made.fail("constructor", said);
        }
        made
    }

    fn learn(&mut self, slots: &[f64; SLOTS]) -> Result<(), String> {
        if self.instance < 0 {
            return Err(told(slots));
        }
        self.has = slots[0] as u32;
        self.every = match slots[1] as u32 {
            0 => Every::Round,
            1 => Every::Ack,
            n => Every::Acks(n),
        };
        let names = told(&slots[4..]);
        self.needs = Needs {
            control: self.knows(Hook::Control),
            rate: slots[2] as u32 & 1 != 0,
            pacing: slots[2] as u32 & 2 != 0,
            exact_ecn: slots[2] as u32 & 4 != 0,
            l4s: slots[2] as u32 & 8 != 0,
            vars: match names.is_empty() {
                true => &[],
                false => variables(names.split(',').map(str::to_string).collect())?,
            },
            ..Needs::default()
        };
        Ok(())
    }

    fn knows(&self, hook: Hook) -> bool {
        self.has & 1 << hook as u32 != 0
    }

    #[cold]
    fn fail(&mut self, hook: &'static str, said: String) {
        self.has = 0;
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(Failure { class: self.class.clone(), hook, time: self.now, said });
        }
    }

    /// Call a hook with the window and what `fill` puts behind it; what it returned. None after a failure, or if there is no such hook.
    fn call(
        &mut self,
        asked: Hook,
        window: &mut Window,
        now: Time,
        fill: impl FnOnce(&mut [f64; SLOTS]),
        allowed: impl FnOnce(f64) -> Result<f64, String>,
    ) -> Option<f64> {
        if !self.knows(asked) {
            return None;
        }
        self.now = now;
        self.window.follow(window);
        let mut slots = [0.0; SLOTS];
        let own = &self.window;
        slots[..4].copy_from_slice(&[own.cwnd, own.ssthresh, own.pacing_rate, f64::from(own.prior_cwnd)]);
        fill(&mut slots);
        // SAFETY: the page writes within the slots.
        let status = unsafe { hook(self.instance, asked as u32, slots.as_mut_ptr()) };
        let outcome = match status {
            0 => {
                [self.window.cwnd, self.window.ssthresh, self.window.pacing_rate] =
                    [slots[0], slots[1], slots[2]];
                let back = self.window.hand_back(window);
                back.and_then(|()| allowed(slots[RETURNED])).map_err(|said| format!("RangeError: {said}"))
            }
            _ => Err(told(&slots)),
        };
        match outcome {
            Ok(value) => Some(value),
            Err(said) => {
                self.fail(asked.name(), said);
                None
            }
        }
    }

    /// Call `on_sample`, `on_ack` or `on_control`, as often as the class wants to be told.
    fn tell(&mut self, hook: Hook, window: &mut Window, ack: &AckSample) {
        if !self.knows(hook) {
            return;
        }
        match self.every {
            Every::Ack => self.call(hook, window, ack.now, |slots| fill_ack(slots, ack), Ok),
            every => {
                let Some(sum) = self.pending[matches!(hook, Hook::Sample) as usize].add(ack, every) else {
                    return;
                };
                self.call(hook, window, ack.now, |slots| fill_ack(slots, &sum), Ok)
            }
        };
    }

    fn call_with(&mut self, hook: Hook, window: &mut Window, now: Time, values: &[f64]) {
        self.call(hook, window, now, |slots| slots[FIRST..FIRST + values.len()].copy_from_slice(values), Ok);
    }
}

impl Drop for JsController {
    fn drop(&mut self) {
        if self.instance >= 0 {
            // SAFETY: numbers only.
            unsafe { release(self.instance) }
        }
    }
}

impl CongestionControl for JsController {
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        self.call_with(Hook::Start, window, now, &[now.as_secs(), seconds(srtt), f64::from(smss)]);
    }

    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        self.now = ack.now;
        self.tell(Hook::Sample, window, &AckSample::from(*ack));
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.tell(Hook::Ack, window, ack);
    }

    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32 {
        let mut copy = *window;
        let fill = |slots: &mut [f64; SLOTS]| slots[FIRST] = f64::from(in_flight);
        let allowed = |value| within("the target window", value, 0.0, ABSURD);
        let given = self.call(Hook::CongestionEvent, &mut copy, self.now, fill, allowed);
        given.map_or(window.cwnd / 2, |ssthresh| ssthresh as u32).max(2)
    }

    fn on_rto(&mut self, window: &mut Window, now: Time) {
        self.call_with(Hook::Rto, window, now, &[now.as_secs()]);
    }

    fn on_state(&mut self, window: &mut Window, state: CaState, now: Time) {
        self.call_with(Hook::State, window, now, &[f64::from(state as u8), now.as_secs()]);
    }

    fn on_recovered(&mut self, window: &mut Window, now: Time) {
        self.call_with(Hook::Recovered, window, now, &[now.as_secs()]);
    }

    fn on_ecn(&mut self, window: &mut Window, ack: &Arrival) -> bool {
        let ack = AckSample::from(*ack);
        self.call(Hook::Ecn, window, ack.now, |slots| fill_ack(slots, &ack), Ok)
            .is_none_or(|says| says != 0.0)
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        let mut copy = *window;
        let allowed = |value| within("the window", value, 1.0, ABSURD);
        let given = self.call(Hook::Undo, &mut copy, self.now, |_| (), allowed);
        given.map_or(window.cwnd.max(window.prior_cwnd), |cwnd| cwnd as u32)
    }

    fn on_tx_start(&mut self, window: &mut Window, now: Time, idle: Span, _snd_nxt: u64) {
        self.call_with(Hook::TxStart, window, now, &[now.as_secs(), seconds(idle)]);
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.tell(Hook::Control, window, ack);
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn vars(&self, values: &mut [f64]) {
        if self.has == 0 {
            return;
        }
        let mut slots = [f64::NAN; SLOTS];
        // SAFETY: the page writes within the slots.
        unsafe { variables_of(self.instance, slots.as_mut_ptr()) };
        for (value, known) in values.iter_mut().zip(slots).take(self.needs.vars.len()) {
            if !known.is_nan() {
                *value = known;
            }
        }
    }
}

/// Whether there is a failure.
pub fn failed(slot: &Slot) -> bool {
    slot.lock().is_ok_and(|failure| failure.is_some())
}

/// Of a text, the first two slots tell address and length; the page made room for it.
fn told(slots: &[f64]) -> String {
    let (address, length) = (slots[0] as usize as *mut u8, slots[1] as usize);
    if length == 0 {
        return String::new();
    }
    // SAFETY: a room of this length, taken once.
    let bytes = unsafe { Vec::from_raw_parts(address, length, length) };
    String::from_utf8_lossy(&bytes).into_owned()
}

fn seconds(span: Span) -> f64 {
    if span == Span::MAX {
        f64::INFINITY
    } else {
        span.as_secs()
    }
}

/// The ACK in the order of `ACK` and `RATE` in `web/hooks.js`; NaN where Python has None.
fn fill_ack(slots: &mut [f64; SLOTS], ack: &AckSample) {
    let flag = |flag: bool| f64::from(u8::from(flag));
    let values = [
        ack.now.as_secs(),
        f64::from(ack.acked),
        f64::from(ack.delivered),
        ack.acked_bytes as f64,
        f64::from(ack.newly_lost),
        ack.rtt.map_or(f64::NAN, seconds),
        seconds(ack.srtt),
        seconds(ack.min_rtt),
        f64::from(ack.prior_in_flight),
        f64::from(ack.in_flight),
        ack.snd_una as f64,
        ack.snd_nxt as f64,
        flag(ack.cwnd_limited),
        flag(ack.paced),
        f64::from(ack.smss),
        flag(ack.ece),
        f64::from(ack.delivered_ce),
        f64::from(ack.ca_state as u8),
        flag(ack.is_dup),
        flag(ack.rate.is_some()),
    ];
    slots[FIRST..FIRST + values.len()].copy_from_slice(&values);
    if let Some(rate) = &ack.rate {
        let values = [
            f64::from(rate.delivered),
            seconds(rate.interval),
            seconds(rate.send_elapsed),
            seconds(rate.ack_elapsed),
            rate.prior_delivered as f64,
            rate.prior_time.as_secs(),
            rate.total_delivered as f64,
            f64::from(rate.delivered_ce),
            f64::from(rate.lost),
            f64::from(rate.tx_in_flight),
            flag(rate.is_app_limited),
            flag(rate.is_retrans),
            flag(rate.is_ack_delayed),
        ];
        slots[BEHIND..BEHIND + values.len()].copy_from_slice(&values);
    }
}

/// Numbers that cross with a call: cwnd, ssthresh, pacing rate, cwnd at the last reduction; what the hook returned; what it is told.
const SLOTS: usize = 40;
const RETURNED: usize = 4;
const FIRST: usize = 5;
/// Of the rate sample.
const BEHIND: usize = FIRST + 20;
