//! Common part of user-defined controllers in all languages: the conversion of hooks into calls, the window as they see
//! it (real numbers, infinity for values that are not set), how often ACKs are reported, and the validation of return
//! values.
//!
//! Windows are in segments, times in seconds, rates in bytes per second. A [`Bridge`] makes the calls:
//! `crates/python/src/controller.rs` for Python, `crates/wasm/src/controller.rs` for the web page.
//!
//! Length: an adapter, and a conversion for each type of the contract.

use std::sync::Mutex;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::{AckSample, Arrival, CongestionControl, Custom, Hook, HookRow, Needs, HOOKS, MAX_VARS};
use crate::window::Window;

/// Window above which a value is treated as a controller error, segments.
pub const ABSURD: f64 = (1_u32 << 30) as f64;

/// Window, threshold and pacing rate as a hook reads and sets them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnWindow {
    /// Congestion window, segments. Fractions are kept; the sender uses the integer part.
    pub cwnd: f64,
    /// Slow-start threshold, segments; infinite until it is first set.
    pub ssthresh: f64,
    /// Pacing rate, bytes/s; infinite if none is set.
    pub pacing_rate: f64,
    /// Segments acknowledged since cwnd last grew (linear growth).
    pub cwnd_cnt: f64,
    /// cwnd at the last reduction, segments.
    pub prior_cwnd: u32,
    /// Maximum of cwnd, segments.
    pub cwnd_clamp: u32,
}

impl Default for OwnWindow {
    fn default() -> OwnWindow {
        let (ssthresh, pacing_rate) = (f64::INFINITY, f64::INFINITY);
        OwnWindow { cwnd: 0.0, ssthresh, pacing_rate, cwnd_cnt: 0.0, prior_cwnd: 0, cwnd_clamp: u32::MAX }
    }
}

impl OwnWindow {
    /// Adopt the values changed by the sender; fractions of unchanged ones are kept.
    pub fn follow(&mut self, window: &Window) {
        if whole(self.cwnd) != window.cwnd {
            self.cwnd = f64::from(window.cwnd);
        }
        if limit(self.ssthresh) != window.ssthresh {
            self.ssthresh = match window.ssthresh {
                Window::INFINITE.. => f64::INFINITY,
                ssthresh => f64::from(ssthresh),
            };
        }
        if rate(self.pacing_rate) != window.pacing_rate {
            self.pacing_rate = match window.pacing_rate {
                Window::UNPACED => f64::INFINITY,
                bytes => bytes as f64,
            };
        }
        self.cwnd_cnt = f64::from(window.cwnd_cnt);
        self.prior_cwnd = window.prior_cwnd;
        self.cwnd_clamp = window.cwnd_clamp;
    }

    /// Write the values set by the hook to `window`, if they are valid.
    pub fn hand_back(&self, window: &mut Window) -> Result<(), String> {
        within("cwnd", self.cwnd, 1.0, ABSURD)?;
        if self.ssthresh != f64::INFINITY {
            within("ssthresh", self.ssthresh, 1.0, f64::from(Window::INFINITE))?;
        }
        if self.pacing_rate != f64::INFINITY {
            within("pacing_rate", self.pacing_rate, 1.0, 1e15)?;
        }
        within("cwnd_cnt", self.cwnd_cnt, 0.0, f64::from(u32::MAX))?;
        window.cwnd_cnt = self.cwnd_cnt as u32;
        window.cwnd = whole(self.cwnd).min(window.cwnd_clamp);
        window.ssthresh = limit(self.ssthresh);
        window.pacing_rate = rate(self.pacing_rate);
        Ok(())
    }
}

fn whole(cwnd: f64) -> u32 {
    cwnd as u32
}

fn limit(ssthresh: f64) -> u32 {
    (ssthresh as u32).min(Window::INFINITE)
}

fn rate(pacing_rate: f64) -> u64 {
    if pacing_rate == f64::INFINITY {
        Window::UNPACED
    } else {
        pacing_rate as u64
    }
}

/// Return a hook's value if it lies between `low` and `high`.
pub fn within(what: &str, value: f64, low: f64, high: f64) -> Result<f64, String> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(format!("{what} is {value}; allowed: {low} to {high}"))
}

/// Hook argument other than the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A time or a duration, s; infinite if there is none.
    Seconds(f64),
    /// A count.
    Whole(u64),
    /// A flag.
    Flag(bool),
    /// A congestion state.
    State(CaState),
}

impl Value {
    /// Return the value as a number: 0 or 1 for a flag, the index of a state.
    pub fn number(self) -> f64 {
        match self {
            Value::Seconds(x) => x,
            Value::Whole(n) => n as f64,
            Value::Flag(flag) => f64::from(u8::from(flag)),
            Value::State(state) => f64::from(state as u8),
        }
    }
}

/// Return a duration in seconds; infinity for `Span::MAX`.
pub fn seconds(span: Span) -> f64 {
    match span {
        Span::MAX => f64::INFINITY,
        span => span.as_secs(),
    }
}

/// Hook arguments.
#[derive(Default)]
pub struct Told {
    /// Whether the hook receives the window, which the bridge stores.
    pub window: bool,
    /// The ACK, for hooks that receive one.
    pub ack: Option<AckSample>,
    values: [Option<Value>; 5],
}

impl Told {
    /// Further arguments, in order.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.values.iter().map_while(|value| *value)
    }

    fn push(&mut self, value: Value) {
        *self.values.iter_mut().find(|value| value.is_none()).expect("invariant: five at most") = Some(value);
    }
}

/// A hook argument: its conversion and, for the window, the conversion back.
trait Argument {
    fn tell(&self, told: &mut Told, own: &mut OwnWindow);
    /// Time of the event; zero if the argument has none.
    fn now(&self) -> Time {
        Time::ZERO
    }
    fn take(self, _own: &OwnWindow) -> Result<(), String>
    where
        Self: Sized,
    {
        Ok(())
    }
}

impl Argument for &mut Window {
    fn tell(&self, told: &mut Told, own: &mut OwnWindow) {
        told.window = true;
        own.follow(self);
    }
    fn take(self, own: &OwnWindow) -> Result<(), String> {
        own.hand_back(self)
    }
}

impl Argument for &Window {
    fn tell(&self, told: &mut Told, own: &mut OwnWindow) {
        told.window = true;
        own.follow(self);
    }
    fn take(self, own: &OwnWindow) -> Result<(), String> {
        own.hand_back(&mut self.clone())
    }
}

impl Argument for Time {
    fn now(&self) -> Time {
        *self
    }
    fn tell(&self, told: &mut Told, _: &mut OwnWindow) {
        told.push(Value::Seconds(self.as_secs()));
    }
}

impl Argument for &Arrival {
    fn now(&self) -> Time {
        self.now
    }
    fn tell(&self, told: &mut Told, own: &mut OwnWindow) {
        (&AckSample::from(**self)).tell(told, own);
    }
}

impl Argument for &AckSample {
    fn now(&self) -> Time {
        self.now
    }
    fn tell(&self, told: &mut Told, _: &mut OwnWindow) {
        told.ack = Some(**self);
    }
}

macro_rules! plain_arguments {
    ($($type:ty: $value:ident => $told:expr;)*) => {
        $(impl Argument for $type {
            fn tell(&self, told: &mut Told, _: &mut OwnWindow) {
                let $value = *self;
                told.push($told);
            }
        })*
    };
}

plain_arguments! {
    Span: span => Value::Seconds(seconds(span));
    u32: n => Value::Whole(u64::from(n));
    u64: n => Value::Whole(n);
    bool: flag => Value::Flag(flag);
    CaState: state => Value::State(state);
}

/// Return value of a hook, converted from a number.
trait Answer: Sized {
    /// Convert the return value. `sets`: the controller sets the window itself, so its target may be infinite.
    fn from(value: f64, hook: Hook, sets: bool) -> Result<Self, String>;
}

impl Answer for bool {
    fn from(value: f64, _: Hook, _: bool) -> Result<bool, String> {
        Ok(value != 0.0)
    }
}

impl Answer for u32 {
    fn from(value: f64, hook: Hook, sets: bool) -> Result<u32, String> {
        match hook {
            Hook::undo_cwnd => within("the window", value, 1.0, ABSURD).map(|cwnd| cwnd as u32),
            _ if sets && value == f64::INFINITY => Ok(Window::INFINITE),
            _ => within("the target window", value, 0.0, ABSURD).map(|target| (target as u32).max(2)),
        }
    }
}

/// Interface for calling the hooks of a controller in another language.
pub trait Bridge: Send {
    /// Error raised by a call.
    type Error: Send;

    /// Whether the controller implements the hook.
    fn has(&self, hook: Hook) -> bool;
    /// Call an implemented hook with this window. Flags are returned as 0 or 1; anything returned by a hook without a
    /// return value is ignored.
    fn call(&mut self, hook: Hook, window: &mut OwnWindow, told: &Told) -> Result<f64, Self::Error>;
    /// Create the error for an invalid return value.
    fn refused(&self, said: String) -> Self::Error;
    /// Record a controller error; the controller is not called again.
    fn fail(&mut self, hook: &'static str, now: Time, error: Self::Error);
    /// Write the values of the named variables into `values`; unknown ones are left unchanged.
    fn vars(&self, names: &[&str], values: &mut [f64]);
    /// Return a bridge to a copy of the controller.
    fn copied(&self) -> Result<Self, String>
    where
        Self: Sized;
}

/// Declarations made by a controller class.
#[derive(Clone, Copy, Default)]
pub struct Said {
    /// How often ACKs are passed to the controller.
    pub every: Every,
    /// Needs that are not declared by hooks.
    pub needs: Needs,
}

/// Adapter for a controller in another language.
#[derive(Clone)]
pub struct Own<B> {
    bridge: B,
    window: OwnWindow,
    every: Every,
    /// ACKs not yet reported: for `on_ack` or `on_control`, and for `on_sample`.
    pending: [Pending; 2],
    needs: Needs,
    now: Time,
}

impl<B: Bridge> Own<B> {
    /// Create an adapter around a bridge.
    pub fn new(bridge: B, said: Said) -> Own<B> {
        let needs = Needs {
            control: bridge.has(Hook::on_control),
            reduces: bridge.has(Hook::reduces),
            idle: bridge.has(Hook::on_idle),
            losses: bridge.has(Hook::on_lost),
            seed: bridge.has(Hook::seed),
            ..said.needs
        };
        let (window, pending) = (OwnWindow::default(), Default::default());
        Own { bridge, window, every: said.every, pending, needs, now: Time::ZERO }
    }

    /// Return whether the hook has to be called now, after combining its ACK with earlier unreported ones.
    fn due(&mut self, hook: Hook, told: &mut Told) -> bool {
        let Some(ack) = told.ack.filter(|_| self.every != Every::Ack) else { return true };
        let pending = match hook {
            Hook::on_sample => &mut self.pending[1],
            Hook::on_ack | Hook::on_control => &mut self.pending[0],
            _ => return true,
        };
        told.ack = pending.add(&ack, self.every);
        told.ack.is_some()
    }

    /// Call an implemented hook if it is due, and return its result.
    fn ask(&mut self, hook: Hook, mut told: Told) -> Option<f64> {
        if !self.due(hook, &mut told) {
            return None;
        }
        match self.bridge.call(hook, &mut self.window, &told) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.bridge.fail(hook.own(), self.now, error);
                None
            }
        }
    }

    fn counts<T>(&mut self, hook: Hook, what: Result<T, String>) -> Option<T> {
        match what {
            Ok(value) => Some(value),
            Err(said) => {
                let error = self.bridge.refused(said);
                self.bridge.fail(hook.own(), self.now, error);
                None
            }
        }
    }
}

macro_rules! bridged {
    (
        events { $(
            $(#[doc = $about:literal])+
            fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
            [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
        )* }
        itself { $($itself:tt)* }
    ) => {
        #[allow(unused_variables, clippy::needless_arbitrary_self_type, reason = "one form for all hooks")]
        impl<B: Bridge + 'static> CongestionControl for Own<B> {
            $(fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)? {
                $($me.now = $me.now.max($arg.now());)*
                if !$me.bridge.has(Hook::$hook) {
                    return $body;
                }
                #[allow(unused_mut, reason = "some hooks are told nothing")]
                let mut told = Told::default();
                $($arg.tell(&mut told, &mut $me.window);)*
                let answer = $me.ask(Hook::$hook, told);
                if answer.is_some() {
                    $(let taken = $arg.take(&$me.window);
                    $me.counts(Hook::$hook, taken);)*
                }
                $(answer
                    .and_then(|value| $me.counts(Hook::$hook, <$answer as Answer>::from(value, Hook::$hook, $me.needs.control)))
                    .unwrap_or_else(|| $body))?
            })*

            fn needs(&self) -> Needs {
                self.needs
            }

            fn vars(&self, values: &mut [f64]) {
                self.bridge.vars(self.needs.vars, values);
            }

            fn seed(&mut self, seed: u64) {
                if self.bridge.has(Hook::seed) {
                    let mut told = Told::default();
                    told.push(Value::Whole(seed));
                    self.ask(Hook::seed, told);
                }
            }

            fn copied(&self) -> Result<Custom, String> {
                let bridge = self.bridge.copied()?;
                let Own { window, every, pending, needs, now, .. } = *self;
                Ok(Box::new(Own { bridge, window, every, pending, needs, now }))
            }
        }
    };
}

crate::hooks!(bridged);

/// Table rows of the hooks that a class may implement: all event hooks, `seed` and `copy`.
pub fn methods() -> impl Iterator<Item = &'static HookRow> {
    HOOKS.iter().filter(|row| row.is_event || matches!(row.hook, Hook::seed | Hook::copied))
}

/// Frequency of calls to the hooks that receive ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Every {
    /// On each ACK.
    #[default]
    Ack,
    /// Once for this many ACKs.
    Acks(u32),
    /// Once all data outstanding at the last call has been acknowledged.
    Round,
}

/// Combined ACKs that have not been reported to a hook yet.
#[derive(Clone, Copy, Default)]
pub struct Pending {
    sum: Option<AckSample>,
    acks: u32,
    round_end: u64,
}

impl Pending {
    /// Combine this ACK with the pending ones and return the result if the hook has to be called now.
    pub fn add(&mut self, ack: &AckSample, every: Every) -> Option<AckSample> {
        self.acks += 1;
        let sum = self.sum.map_or(*ack, |before| ack.over(&before));
        let due = match every {
            Every::Ack => true,
            Every::Acks(n) => self.acks >= n,
            Every::Round => ack.snd_una >= self.round_end,
        };
        if !due {
            self.sum = Some(sum);
            return None;
        }
        *self = Pending { sum: None, acks: 0, round_end: ack.snd_nxt };
        Some(sum)
    }
}

/// Return the names of a controller's variables with static lifetime, because traces refer to them.
pub fn variables(names: Vec<String>) -> Result<&'static [&'static str], String> {
    if names.len() > MAX_VARS
        || names.iter().any(|name| !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    {
        return Err(format!("variables: found {names:?}; allowed: at most {MAX_VARS} plain names"));
    }
    static KNOWN: Mutex<Vec<&'static [&'static str]>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().map_err(|_| "a thread died".to_string())?;
    if let Some(found) = known.iter().find(|list| list.iter().eq(names.iter())) {
        return Ok(found);
    }
    let list: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let list: &'static [&'static str] = list.leak();
    known.push(list);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_stay_until_the_sender_changes_the_window() {
        let mut window = Window::new(10);
        let mut own = OwnWindow::default();
        own.follow(&window);
        own.cwnd += 0.5;
        own.hand_back(&mut window).expect("a window");
        assert_eq!((window.cwnd, window.ssthresh), (10, Window::INFINITE));
        own.follow(&window);
        assert_eq!((own.cwnd, own.ssthresh, own.pacing_rate), (10.5, f64::INFINITY, f64::INFINITY));
        window.cwnd = 7;
        own.follow(&window);
        assert_eq!(own.cwnd, 7.0);
    }

    #[test]
    fn what_is_no_window_is_refused() {
        let mut window = Window::new(10);
        for cwnd in [f64::NAN, 0.9, -1.0, ABSURD + 1.0, f64::INFINITY] {
            let refused = OwnWindow { cwnd, ..OwnWindow::default() }.hand_back(&mut window);
            assert!(refused.expect_err("no window").ends_with("; allowed: 1 to 1073741824"));
        }
        assert_eq!(window, Window::new(10));
    }

    #[test]
    fn variables_are_at_most_eight_plain_names() {
        let names = |n: usize| (0..n).map(|i| format!("v_{i}")).collect::<Vec<_>>();
        let eight = variables(names(MAX_VARS)).expect("as many as there may be");
        assert_eq!((eight.len(), eight[7]), (8, "v_7"));
        assert!(std::ptr::eq(eight, variables(names(8)).expect("known")), "kept once");
        assert!(variables(names(MAX_VARS + 1))
            .expect_err("one too many")
            .ends_with("; allowed: at most 8 plain names"));
        assert!(variables(vec!["a b".into()]).is_err());
    }
}
