//! A user's controller written in Python, behind the engine's contract: the bridge needed by `own.rs`. Each hook
//! takes the GIL, passes the window and the arguments listed in the contract's table, and checks the result. The
//! first failure is stored, reported once, and ends the run.

use std::sync::{Arc, Mutex};

use ackclock_cc::controller::own::{
    methods, seconds, variables, Bridge, Every, Own, OwnWindow, Said, Told, Value,
};
use ackclock_cc::controller::{Custom, Hook, Maker, Needs, HOOKS};
use ackclock_cc::{AckSample, RateSample};
use ackclock_core::calls;
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

use crate::native::PyLibrary;

/// First error of a controller.
pub struct Failure {
    pub class: String,
    pub hook: &'static str,
    pub time: Time,
    pub error: PyErr,
}

impl Failure {
    /// Description of the error in one line.
    pub fn told(&self) -> String {
        let seconds = self.time.as_secs();
        // An exception may raise another exception when its text is requested.
        let said = Python::attach(|py| {
            self.error.value(py).str().map_or_else(
                |_| "what it says cannot be printed".to_string(),
                |s| s.to_string_lossy().into_owned(),
            )
        });
        let kind =
            Python::attach(|py| self.error.get_type(py).name().map(|n| n.to_string()).unwrap_or_default());
        let kind = if kind == "Fault" { String::new() } else { format!("{kind}: ") };
        format!("controller {}, {} at {seconds:.6} s: {kind}{said}", self.class, self.hook)
    }
}

/// Storage for the first failure of a run's controllers.
pub type Slot = Arc<Mutex<Option<Failure>>>;

/// Whether a failure has been recorded.
pub fn failed(slot: &Slot) -> bool {
    slot.lock().is_ok_and(|failure| failure.is_some())
}

/// Return a factory for controllers of `class`, a Python class or a library, which record failures in `slot`.
pub fn maker(py: Python<'_>, class: &Py<PyAny>, slot: &Slot) -> Maker {
    if let Ok(library) = class.bind(py).cast::<PyLibrary>() {
        return library.get().maker(slot);
    }
    let (class, slot) = (class.clone_ref(py), slot.clone());
    Maker::new(move || Box::new(made(&class, &slot)) as Custom)
}

/// cwnd, ssthresh and pacing rate of one sender. A hook may set them.
#[pyclass(name = "Window", module = "ackclock")]
pub struct PyWindow(OwnWindow);

#[pymethods]
impl PyWindow {
    /// Congestion window, segments; fractions are kept, the sender uses the integer part.
    #[getter]
    fn cwnd(&self) -> f64 {
        self.0.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, cwnd: f64) {
        self.0.cwnd = cwnd;
    }

    /// Slow-start threshold, segments; infinite until it is first set.
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.0.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, ssthresh: f64) {
        self.0.ssthresh = ssthresh;
    }

    /// Pacing rate, bytes/s; infinite if none is set.
    #[getter]
    fn pacing_rate(&self) -> f64 {
        self.0.pacing_rate
    }

    #[setter]
    fn set_pacing_rate(&mut self, pacing_rate: f64) {
        self.0.pacing_rate = pacing_rate;
    }

    /// Segments acknowledged since cwnd last grew by one segment; 0 when a reduction begins.
    #[getter]
    fn cwnd_cnt(&self) -> f64 {
        self.0.cwnd_cnt
    }

    #[setter]
    fn set_cwnd_cnt(&mut self, cwnd_cnt: f64) {
        self.0.cwnd_cnt = cwnd_cnt;
    }

    /// Maximum of cwnd, segments.
    #[getter]
    fn cwnd_clamp(&self) -> u32 {
        self.0.cwnd_clamp
    }

    /// cwnd at the last reduction, segments.
    #[getter]
    fn prior_cwnd(&self) -> u32 {
        self.0.prior_cwnd
    }

    /// Whether cwnd is below ssthresh.
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.cwnd < self.0.ssthresh
    }
}

/// Python representation of a contract type.
trait Shown {
    type Python;
    fn shown(&self, py: Python<'_>) -> PyResult<Self::Python>;
}

macro_rules! shown {
    ($($type:ty as $python:ty: $value:ident => $shown:expr;)*) => {
        $(impl Shown for $type {
            type Python = $python;
            #[inline]
            fn shown(&self, _: Python<'_>) -> PyResult<$python> {
                let $value = *self;
                Ok($shown)
            }
        })*
    };
}

shown! {
    u32 as u32: n => n;
    u64 as u64: n => n;
    bool as bool: flag => flag;
    Time as f64: time => time.as_secs();
    Span as f64: span => seconds(span);
    Option<Span> as Option<f64>: span => span.map(seconds);
    CaState as &'static str: state => CaState::NAMES[state as usize];
}

impl Shown for Option<RateSample> {
    type Python = Option<Py<PyRate>>;
    fn shown(&self, py: Python<'_>) -> PyResult<Option<Py<PyRate>>> {
        self.as_ref().map(|rate| Py::new(py, PyRate::of(py, rate)?)).transpose()
    }
}

macro_rules! classes {
    (
        arrival { $($(#[doc = $about:literal])+ $field:ident: $type:ty [$over:ident, $linux:literal];)* }
        sample { $($(#[doc = $s_about:literal])+ $s_field:ident: $s_type:ty [$s_over:ident, $s_linux:literal];)* }
        rate { $($(#[doc = $r_about:literal])+ $r_field:ident: $r_type:ty [$r_over:ident, $r_linux:literal];)* }
    ) => {
        /// ACK contents; times in seconds.
        #[pyclass(name = "Ack", module = "ackclock", frozen, get_all)]
        pub struct PyAck {
            $($(#[doc = $about])+ $field: <$type as Shown>::Python,)*
            $($(#[doc = $s_about])+ $s_field: <$s_type as Shown>::Python,)*
        }

        /// Delivery rate sample; times in seconds, counts in segments.
        #[pyclass(name = "Rate", module = "ackclock", frozen, get_all)]
        pub struct PyRate { $($(#[doc = $r_about])+ $r_field: <$r_type as Shown>::Python,)* }

        impl PyAck {
            fn of(py: Python<'_>, ack: &AckSample) -> PyResult<PyAck> {
                Ok(PyAck {
                    $($field: ack.arrival.$field.shown(py)?,)*
                    $($s_field: ack.$s_field.shown(py)?,)*
                })
            }
        }

        impl PyRate {
            fn of(py: Python<'_>, rate: &RateSample) -> PyResult<PyRate> {
                Ok(PyRate { $($r_field: rate.$r_field.shown(py)?,)* })
            }
        }
    };
}

ackclock_cc::fields!(classes);

/// Methods of an object by hook, bound once. A lookup by name at each call would cost as much as the call itself.
type Methods = [Option<Py<PyAny>>; HOOKS.len()];

/// Original number of arguments of each hook that has since gained some. Older methods are called without the new
/// ones.
const AT_FIRST: &[(Hook, usize)] = &[(Hook::on_tx_start, 3)];

/// Python object whose methods are hooks.
pub struct PyBridge {
    object: Option<Py<PyAny>>,
    window: Option<Py<PyWindow>>,
    class: String,
    /// Time of the last ACK.
    last: Time,
    methods: Methods,
    /// Maximum number of arguments of each hook in [`AT_FIRST`].
    most: [usize; AT_FIRST.len()],
    slot: Slot,
}

/// Read the requested call frequency from a class.
fn every(value: &Bound<'_, PyAny>) -> PyResult<Every> {
    match value.extract::<u32>() {
        Ok(1) => Ok(Every::Ack),
        Ok(n) if n > 1 => Ok(Every::Acks(n)),
        _ if value.extract::<String>().is_ok_and(|text| text == "round") => Ok(Every::Round),
        _ => Err(PyTypeError::new_err(format!(
            "every is {}; allowed: a number of ACKs, 1 or more, or \"round\"",
            value.repr()?
        ))),
    }
}

/// Return the needs of a class, from its attributes: `wants_FLAG` for needs not implied by a hook, and numeric
/// needs by name.
macro_rules! wanted {
    (
        flags { $($(#[doc = $about:literal])+ $flag:ident [$bit:literal $(, $hook:ident)?];)* }
        numbers { $($(#[doc = $n_about:literal])+ $number:ident: $type:ty;)* }
    ) => {
        fn wanted(object: &Bound<'_, PyAny>) -> PyResult<Needs> {
            let mut needs = Needs::default();
            $(if concat!($(stringify!($hook))?).is_empty() {
                if let Some(value) = object.getattr_opt(concat!("wants_", stringify!($flag)))? {
                    needs.$flag = value.extract()?;
                }
            })*
            $(if let Some(value) = object.getattr_opt(stringify!($number))? {
                needs.$number = value.extract::<u64>().ok().and_then(|n| n.try_into().ok()).ok_or_else(|| {
                    let (name, most) = (stringify!($number), <$type>::MAX);
                    PyTypeError::new_err(format!("{name} is {value}; allowed: a whole number, 0 to {most}"))
                })?;
            })*
            Ok(needs)
        }
    };
}

ackclock_cc::needs!(wanted);

/// Create a controller of `class`. If that fails, the failure is recorded and this controller and all later ones do
/// nothing, because their hooks, too, might never return.
fn made(class: &Py<PyAny>, slot: &Slot) -> Own<PyBridge> {
    Python::attach(|py| {
        let name = class.getattr(py, "__name__").and_then(|name| name.extract(py));
        let mut bridge = PyBridge::none(name.unwrap_or_else(|_| "controller".to_string()), slot);
        if failed(slot) {
            return Own::new(bridge, Said::default());
        }
        let call = calls::enter(&bridge.class, "__init__", Time::ZERO);
        let said = class.bind(py).call0().and_then(|object| {
            let said = bridge.bind(&object)?;
            Ok(said)
        });
        drop(call);
        let said = said.unwrap_or_else(|error| {
            bridge.fail("__init__", Time::ZERO, error);
            Said::default()
        });
        Own::new(bridge, said)
    })
}

impl PyBridge {
    fn none(class: String, slot: &Slot) -> PyBridge {
        let methods = [const { None }; HOOKS.len()];
        PyBridge {
            object: None,
            window: None,
            class,
            last: Time::ZERO,
            methods,
            most: [usize::MAX; AT_FIRST.len()],
            slot: slot.clone(),
        }
    }

    /// Bind the methods of an object, and read its attributes.
    fn bind(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Said> {
        for row in methods() {
            let method = object.getattr_opt(row.own)?;
            // an attribute may have the name of a hook that is not an event
            let is_method = row.own.starts_with("on_") || method.as_ref().is_some_and(Bound::is_callable);
            self.methods[row.hook as usize] = method.filter(|_| is_method).map(Bound::unbind);
        }
        let has = |hook: Hook| self.methods[hook as usize].is_some();
        for hook in [Hook::on_ack, Hook::ssthresh] {
            if !(has(hook) || hook == Hook::on_ack && has(Hook::on_control)) {
                return Err(PyTypeError::new_err(format!("there is no method {}", hook.own())));
            }
        }
        for (most, (hook, at_first)) in self.most.iter_mut().zip(AT_FIRST) {
            if let Some(method) = &self.methods[*hook as usize] {
                *most = arguments(method.bind(object.py())).map_or(usize::MAX, |taken| taken.max(*at_first));
            }
        }
        let mut said = Said { needs: wanted(object)?, ..Said::default() };
        if let Some(every) = object.getattr_opt("every")? {
            said.every = self::every(&every)?;
        }
        if let Some(names) = object.getattr_opt("variables")? {
            said.needs.vars = variables(names.extract()?).map_err(PyValueError::new_err)?;
        }
        self.window = Some(Py::new(object.py(), PyWindow(OwnWindow::default()))?);
        self.object = Some(object.clone().unbind());
        Ok(said)
    }

    /// Return the arguments of a hook after the window.
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        hook: Hook,
        told: &Told,
        w: &Bound<'py, PyWindow>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut all: Vec<Bound<'py, PyAny>> = Vec::with_capacity(5);
        if told.window {
            all.push(w.clone().into_any());
        }
        for value in told.values() {
            all.push(match value {
                Value::Seconds(x) => PyFloat::new(py, x).into_any(),
                Value::Whole(n) => PyInt::new(py, n).into_any(),
                Value::Flag(flag) => PyBool::new(py, flag).to_owned().into_any(),
                Value::State(state) => CaState::NAMES[state as usize].into_pyobject(py)?.into_any(),
            });
        }
        if let Some(at) = AT_FIRST.iter().position(|(known, _)| *known == hook) {
            all.truncate(self.most[at]);
        }
        PyTuple::new(py, all)
    }
}

/// Return the number of arguments of a method written in Python; `None` if it takes any number or is not written in
/// Python.
fn arguments(method: &Bound<'_, PyAny>) -> Option<usize> {
    const TAKES_MORE: u32 = 0x04; // CO_VARARGS
    let code = method.getattr("__func__").ok()?.getattr("__code__").ok()?;
    let flags = code.getattr("co_flags").ok()?.extract::<u32>().ok()?;
    let count = code.getattr("co_argcount").ok()?.extract::<usize>().ok()?;
    (flags & TAKES_MORE == 0).then(|| count.saturating_sub(1))
}

/// Convert the result of a hook, if it has one.
fn answered(hook: Hook, returned: &Bound<'_, PyAny>) -> PyResult<f64> {
    let (answer, allowed) = match (hook.row().answer, hook) {
        ("bool", _) => (returned.extract::<bool>().map(|yes| f64::from(u8::from(yes))), "True, False"),
        ("u32", Hook::undo_cwnd) => (returned.extract::<f64>(), "a window in segments"),
        ("u32", _) => (returned.extract::<f64>(), "the target window in segments"),
        _ => return Ok(0.0),
    };
    answer.map_err(|_| PyTypeError::new_err(format!("returned {returned}; allowed: {allowed}")))
}

impl Bridge for PyBridge {
    type Error = PyErr;

    #[inline]
    fn has(&self, hook: Hook) -> bool {
        self.methods[hook as usize].is_some()
    }

    fn call(&mut self, hook: Hook, window: &mut OwnWindow, told: &Told) -> PyResult<f64> {
        let (Some(method), Some(shared)) = (&self.methods[hook as usize], &self.window) else {
            return Ok(0.0);
        };
        self.last = told.ack.as_ref().map_or(self.last, |ack| ack.now);
        Python::attach(|py| {
            let _call = calls::enter(&self.class, hook.own(), self.last);
            let (method, shared) = (method.bind(py), shared.bind(py));
            shared.borrow_mut().0 = *window;
            let returned = match &told.ack {
                Some(ack) => method.call1((shared, Bound::new(py, PyAck::of(py, ack)?)?))?,
                None => method.call1(self.arguments(py, hook, told, shared)?)?,
            };
            refuse_deferred(&returned)?;
            *window = shared.borrow().0;
            answered(hook, &returned)
        })
    }

    fn refused(&self, said: String) -> PyErr {
        PyValueError::new_err(said)
    }

    #[cold]
    fn fail(&mut self, hook: &'static str, time: Time, error: PyErr) {
        self.object = None;
        self.methods = [const { None }; HOOKS.len()];
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(Failure { class: self.class.clone(), hook, time, error });
        }
    }

    fn vars(&self, names: &[&str], values: &mut [f64]) {
        let Some(object) = &self.object else { return };
        let _call = calls::enter(&self.class, "variables", self.last);
        Python::attach(|py| {
            for (value, name) in values.iter_mut().zip(names) {
                if let Ok(known) = object.bind(py).getattr(*name).and_then(|x| x.extract::<f64>()) {
                    *value = known;
                }
            }
        });
    }

    /// Copy the object with its `copy` method, or else with `copy.deepcopy`.
    fn copied(&self) -> Result<PyBridge, String> {
        let object = self.object.as_ref().ok_or("found none")?;
        let _call = calls::enter(&self.class, "copy", self.last);
        Python::attach(|py| {
            let copied = match &self.methods[Hook::copied as usize] {
                Some(method) => method.call0(py),
                None => {
                    py.import("copy").and_then(|m| m.call_method1("deepcopy", (object,))).map(Bound::unbind)
                }
            };
            let mut bridge = PyBridge::none(self.class.clone(), &self.slot);
            copied.and_then(|copy| bridge.bind(copy.bind(py))).map_err(|error| format!("found {error}"))?;
            Ok(bridge)
        })
    }
}

/// Reject a coroutine or a generator. A hook with `async` or `yield` merely creates one, which would never run.
pub fn refuse_deferred(returned: &Bound<'_, PyAny>) -> PyResult<()> {
    if returned.is_none() || returned.is_instance_of::<PyFloat>() || returned.is_instance_of::<PyInt>() {
        return Ok(());
    }
    for (sign, what) in
        [("__await__", "a coroutine"), ("__anext__", "a generator"), ("__next__", "a generator")]
    {
        if returned.hasattr(sign)? {
            // otherwise Python would print a warning on standard error
            let _ = returned.call_method0("close");
            return Err(PyTypeError::new_err(format!(
                "returned {what}, which is never run; allowed: a plain method, without async and yield"
            )));
        }
    }
    Ok(())
}
