//! A user's controller written in Python, behind the engine's contract. Each hook takes the GIL, hands over the window
//! and the ACK, and checks what comes back. The first failure is kept, reported once, and ends the run.
//!
//! Length: three classes that Python sees, each with a getter for every value.

use std::sync::{Arc, Mutex};

use ackclock_cc::controller::own::{variables, within, Every, Hook, OwnWindow, Pending, ABSURD};
use ackclock_cc::controller::{Custom, Maker, Needs};
use ackclock_cc::{AckSample, Arrival, CongestionControl, RateSample, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

use crate::native::PyLibrary;

/// What went wrong first.
pub struct Failure {
    pub class: String,
    pub hook: &'static str,
    pub time: Time,
    pub error: PyErr,
}

impl Failure {
    /// In a line.
    pub fn told(&self) -> String {
        let seconds = self.time.as_secs();
        // An exception may raise another one when it is asked for its text.
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

/// Where the controllers of one run leave their first failure.
pub type Slot = Arc<Mutex<Option<Failure>>>;

/// Whether there is a failure.
pub fn failed(slot: &Slot) -> bool {
    slot.lock().is_ok_and(|failure| failure.is_some())
}

/// Makes controllers of `class`, a class of Python or a library, which leave failures in `slot`.
pub fn maker(py: Python<'_>, class: &Py<PyAny>, slot: &Slot) -> Maker {
    if let Ok(library) = class.bind(py).cast::<PyLibrary>() {
        return library.get().maker(slot);
    }
    let (class, slot) = (class.clone_ref(py), slot.clone());
    Maker::new(move || Box::new(PyController::new(&class, &slot)) as Custom)
}

/// cwnd, ssthresh and pacing rate of one sender. A hook may set them.
#[pyclass(name = "Window", module = "ackclock")]
pub struct PyWindow(OwnWindow);

#[pymethods]
impl PyWindow {
    /// Congestion window, segments; fractions are kept, the sender sees the whole part.
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

    /// Pacing rate, bytes/s; infinite where none is set.
    #[getter]
    fn pacing_rate(&self) -> f64 {
        self.0.pacing_rate
    }

    #[setter]
    fn set_pacing_rate(&mut self, pacing_rate: f64) {
        self.0.pacing_rate = pacing_rate;
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

/// What one ACK tells. Fields as in the engine's `AckSample`, in `on_sample` and `on_ecn` as in its `Arrival`; times in
/// seconds.
#[pyclass(name = "Ack", module = "ackclock", frozen, get_all)]
pub struct PyAck {
    /// Time of arrival, s from the start of the run.
    now: f64,
    /// Segments of this ACK that count for growth: `delivered`, or 1 in a stack that counts ACKs. With `every`, the sum since the last call, as all counts here.
    acked: u32,
    /// Segments that this ACK delivered: acknowledged cumulatively or SACKed, each once.
    delivered: u32,
    /// Bytes by which the cumulative ACK advanced; after a recovery it jumps.
    acked_bytes: u64,
    /// Segments marked lost on this ACK, retransmissions found lost included. In `on_sample` 0: losses are looked for later.
    newly_lost: u32,
    /// RTT of the newest segment that this ACK covers, s; None if one of them was retransmitted, or it covers none.
    rtt: Option<f64>,
    /// Smoothed RTT, s; 0 before the first sample.
    srtt: f64,
    /// Least RTT of the connection so far, s; infinite before the first sample.
    min_rtt: f64,
    /// Segments in flight before this ACK.
    prior_in_flight: u32,
    /// Segments in flight after this ACK, without those newly marked lost.
    in_flight: u32,
    /// First unacknowledged offset after this ACK, bytes.
    snd_una: u64,
    /// Next offset to send, bytes.
    snd_nxt: u64,
    /// Whether the window limited the sender since the last ACK; if not, a controller must not grow it (RFC 7661).
    cwnd_limited: bool,
    /// Whether the sender paces its packets.
    paced: bool,
    /// Payload of a full segment, bytes.
    smss: u32,
    /// Whether the ACK echoes a mark of congestion (ECE).
    ece: bool,
    /// Of `delivered`, segments that carried a mark: exact with `wants_exact_ecn`, else all of them under ECE.
    delivered_ce: u32,
    /// Congestion state: "Open", "Disorder", "CWR", "Recovery", "Loss"; in `on_sample` the one before this ACK, elsewhere the one after it.
    ca_state: &'static str,
    /// Whether it is a duplicate ACK (RFC 5681 §2).
    is_dup: bool,
    /// Sample of the delivery rate; None without `wants_rate`, or if this ACK gives none.
    rate: Option<Py<PyRate>>,
}

/// A sample of the delivery rate. Fields as in the engine's `RateSample`; times in seconds, counts in segments.
#[pyclass(name = "Rate", module = "ackclock", frozen, get_all)]
pub struct PyRate {
    /// Segments delivered over `interval`: a flight, not this ACK alone.
    delivered: u32,
    /// The longer one of `send_elapsed` and `ack_elapsed`, s; 0 if the sample is not valid (shorter than the least RTT).
    interval: f64,
    /// Time over which these segments were sent, s.
    send_elapsed: f64,
    /// Time over which they were acknowledged, s.
    ack_elapsed: f64,
    /// `total_delivered` when the newest segment that this ACK covers was sent.
    prior_delivered: u64,
    /// When that count was reached, s from the start of the run.
    prior_time: f64,
    /// Segments delivered over the connection so far.
    total_delivered: u64,
    /// Of `delivered`, segments that carried a mark.
    delivered_ce: u32,
    /// Segments marked lost since that newest segment was sent.
    lost: u32,
    /// Segments in flight when it had been sent, itself included.
    tx_in_flight: u32,
    /// Whether the application, not the window, limited the sender when it was sent.
    is_app_limited: bool,
    /// Whether it was a retransmission.
    is_retrans: bool,
    /// Whether the ACK may have been held back by a delayed-ACK timer.
    is_ack_delayed: bool,
}

fn seconds(span: Span) -> f64 {
    if span == Span::MAX {
        f64::INFINITY
    } else {
        span.as_secs()
    }
}

fn py_rate(py: Python<'_>, r: &RateSample) -> PyResult<Py<PyRate>> {
    Py::new(
        py,
        PyRate {
            delivered: r.delivered,
            interval: seconds(r.interval),
            send_elapsed: seconds(r.send_elapsed),
            ack_elapsed: seconds(r.ack_elapsed),
            prior_delivered: r.prior_delivered,
            prior_time: r.prior_time.as_secs(),
            total_delivered: r.total_delivered,
            delivered_ce: r.delivered_ce,
            lost: r.lost,
            tx_in_flight: r.tx_in_flight,
            is_app_limited: r.is_app_limited,
            is_retrans: r.is_retrans,
            is_ack_delayed: r.is_ack_delayed,
        },
    )
}

fn py_ack(py: Python<'_>, a: &AckSample) -> PyResult<PyAck> {
    Ok(PyAck {
        now: a.now.as_secs(),
        acked: a.acked,
        delivered: a.delivered,
        acked_bytes: a.acked_bytes,
        newly_lost: a.newly_lost,
        rtt: a.rtt.map(seconds),
        srtt: seconds(a.srtt),
        min_rtt: seconds(a.min_rtt),
        prior_in_flight: a.prior_in_flight,
        in_flight: a.in_flight,
        snd_una: a.snd_una,
        snd_nxt: a.snd_nxt,
        cwnd_limited: a.cwnd_limited,
        paced: a.paced,
        smss: a.smss,
        ece: a.ece,
        delivered_ce: a.delivered_ce,
        ca_state: CaState::NAMES[a.ca_state as usize],
        is_dup: a.is_dup,
        rate: a.rate.as_ref().map(|r| py_rate(py, r)).transpose()?,
    })
}

/// The methods of an object, bound once: looked up by name at each call they would cost as much as the call.
type Methods = [Option<Py<PyAny>>; Hook::NAMES.len()];

/// How often a class wants to be told.
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

/// A controller whose hooks are methods of a Python object.
pub struct PyController {
    object: Option<Py<PyAny>>,
    window: Option<Py<PyWindow>>,
    class: String,
    methods: Methods,
    every: Every,
    /// Of `on_sample`; of `on_ack` or `on_control`.
    pending: [Pending; 2],
    needs: Needs,
    slot: Slot,
    now: Time,
}

impl PyController {
    /// An instance of `class`; if it cannot be made, the failure is noted and the controller does nothing. Nor does one
    /// that comes after a failure: its hooks may never end, as those of the first.
    pub fn new(class: &Py<PyAny>, slot: &Slot) -> PyController {
        Python::attach(|py| {
            let name = class.getattr(py, "__name__").and_then(|name| name.extract(py));
            let mut made = PyController {
                object: None,
                window: None,
                class: name.unwrap_or_else(|_| "controller".to_string()),
                methods: Methods::default(),
                every: Every::Ack,
                pending: Default::default(),
                needs: Needs::default(),
                slot: slot.clone(),
                now: Time::ZERO,
            };
            if failed(slot) {
                return made;
            }
            if let Err(error) = made.fill(py, class) {
                made.fail("__init__", error);
            }
            made
        })
    }

    fn fill(&mut self, py: Python<'_>, class: &Py<PyAny>) -> PyResult<()> {
        let object = class.call0(py)?;
        let bound = object.bind(py);
        for hook in ["on_ack", "on_congestion_event"] {
            let needed = hook == "on_congestion_event" || !bound.hasattr("on_control")?;
            if needed && !bound.hasattr(hook)? {
                return Err(PyTypeError::new_err(format!("there is no method {hook}")));
            }
        }
        for (method, name) in self.methods.iter_mut().zip(Hook::NAMES) {
            *method = bound.getattr_opt(name)?.map(Bound::unbind);
        }
        if let Some(every) = bound.getattr_opt("every")? {
            self.every = self::every(&every)?;
        }
        let flag = |name: &str| match bound.getattr_opt(name)? {
            Some(value) => value.extract::<bool>(),
            None => Ok(false),
        };
        self.needs = Needs {
            control: self.methods[Hook::Control as usize].is_some(),
            rate: flag("wants_rate")?,
            pacing: flag("wants_pacing")?,
            exact_ecn: flag("wants_exact_ecn")?,
            l4s: flag("wants_l4s")?,
            vars: match bound.getattr_opt("variables")? {
                Some(names) => variables(names.extract()?).map_err(PyValueError::new_err)?,
                None => &[],
            },
            ..Needs::default()
        };
        self.window = Some(Py::new(py, PyWindow(OwnWindow::default()))?);
        self.object = Some(object);
        Ok(())
    }

    #[cold]
    fn fail(&mut self, hook: &'static str, error: PyErr) {
        self.object = None;
        self.methods = Methods::default();
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(Failure { class: self.class.clone(), hook, time: self.now, error });
        }
    }

    /// Call a hook with the window; `back` looks at what it returns. None after a failure, or if there is no such hook.
    fn call<T>(
        &mut self,
        hook: Hook,
        window: &mut Window,
        now: Time,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, Bound<'py, PyWindow>) -> PyResult<Bound<'py, PyAny>>,
        back: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let (method, shared) = (self.methods[hook as usize].as_ref()?, self.window.as_ref()?);
        self.now = now;
        let outcome = Python::attach(|py| -> PyResult<T> {
            let shared = shared.bind(py);
            shared.borrow_mut().0.follow(window);
            let returned = call(method.bind(py), shared.clone())?;
            refuse_deferred(&returned)?;
            shared.borrow().0.hand_back(window).map_err(PyValueError::new_err)?;
            back(&returned)
        });
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(hook.name(), error);
                None
            }
        }
    }

    fn call_with_ack(&mut self, hook: Hook, window: &mut Window, ack: &AckSample) {
        self.call(
            hook,
            window,
            ack.now,
            |method, w| method.call1((w, Bound::new(method.py(), py_ack(method.py(), ack)?)?)),
            |_| Ok(()),
        );
    }

    /// The same, as often as the class wants to be told.
    fn tell(&mut self, hook: Hook, window: &mut Window, ack: &AckSample) {
        if self.every == Every::Ack {
            return self.call_with_ack(hook, window, ack);
        }
        if let Some(sum) = self.pending[matches!(hook, Hook::Sample) as usize].add(ack, self.every) {
            self.call_with_ack(hook, window, &sum);
        }
    }

    fn call_with_time(&mut self, hook: Hook, window: &mut Window, now: Time) {
        self.call(hook, window, now, |method, w| method.call1((w, now.as_secs())), |_| Ok(()));
    }
}

/// Refuse a coroutine or a generator: a hook declared with `async` or `yield` makes one and does nothing else, and nobody
/// would run it.
pub fn refuse_deferred(returned: &Bound<'_, PyAny>) -> PyResult<()> {
    if returned.is_none() || returned.is_instance_of::<PyFloat>() || returned.is_instance_of::<PyInt>() {
        return Ok(());
    }
    for (sign, what) in
        [("__await__", "a coroutine"), ("__anext__", "a generator"), ("__next__", "a generator")]
    {
        if returned.hasattr(sign)? {
            // else Python warns of it on standard error
            let _ = returned.call_method0("close");
            return Err(PyTypeError::new_err(format!(
                "returned {what}, which nobody runs; allowed: a plain method, without async and yield"
            )));
        }
    }
    Ok(())
}

impl CongestionControl for PyController {
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        self.call(
            Hook::Start,
            window,
            now,
            |method, w| method.call1((w, now.as_secs(), seconds(srtt), smss)),
            |_| Ok(()),
        );
    }

    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        self.now = ack.now;
        if self.methods[Hook::Sample as usize].is_some() {
            self.tell(Hook::Sample, window, &AckSample::from(*ack));
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.tell(Hook::Ack, window, ack);
    }

    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32 {
        let mut copy = *window;
        let given = self.call(
            Hook::CongestionEvent,
            &mut copy,
            self.now,
            |method, w| method.call1((w, in_flight)),
            |returned| {
                let value = returned.extract::<f64>().map_err(|_| {
                    PyTypeError::new_err(format!(
                        "returned {returned}; allowed: the target window in segments"
                    ))
                })?;
                within("the target window", value, 0.0, ABSURD).map_err(PyValueError::new_err)
            },
        );
        given.map_or(window.cwnd / 2, |ssthresh| ssthresh as u32).max(2)
    }

    fn on_rto(&mut self, window: &mut Window, now: Time) {
        self.call_with_time(Hook::Rto, window, now);
    }

    fn on_state(&mut self, window: &mut Window, state: CaState, now: Time) {
        let name = CaState::NAMES[state as usize];
        self.call(Hook::State, window, now, |method, w| method.call1((w, name, now.as_secs())), |_| Ok(()));
    }

    fn on_recovered(&mut self, window: &mut Window, now: Time) {
        self.call_with_time(Hook::Recovered, window, now);
    }

    fn on_ecn(&mut self, window: &mut Window, ack: &Arrival) -> bool {
        let answer = self.call(
            Hook::Ecn,
            window,
            ack.now,
            |method, w| {
                let py = method.py();
                method.call1((w, Bound::new(py, py_ack(py, &AckSample::from(*ack))?)?))
            },
            |returned| {
                returned
                    .extract::<bool>()
                    .map_err(|_| PyTypeError::new_err(format!("returned {returned}; allowed: True, False")))
            },
        );
        answer.unwrap_or(true)
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        let mut copy = *window;
        let given = self.call(
            Hook::Undo,
            &mut copy,
            self.now,
            |method, w| method.call1((w,)),
            |returned| {
                let value = returned.extract::<f64>().map_err(|_| {
                    PyTypeError::new_err(format!("returned {returned}; allowed: a window in segments"))
                })?;
                within("the window", value, 1.0, ABSURD).map_err(PyValueError::new_err)
            },
        );
        given.map_or(window.cwnd.max(window.prior_cwnd), |cwnd| cwnd as u32)
    }

    fn on_tx_start(&mut self, window: &mut Window, now: Time, idle: Span, _snd_nxt: u64) {
        self.call(
            Hook::TxStart,
            window,
            now,
            |method, w| method.call1((w, now.as_secs(), seconds(idle))),
            |_| Ok(()),
        );
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.tell(Hook::Control, window, ack);
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn vars(&self, values: &mut [f64]) {
        let Some(object) = &self.object else { return };
        Python::attach(|py| {
            for (value, name) in values.iter_mut().zip(self.needs.vars) {
                if let Ok(known) = object.bind(py).getattr(*name).and_then(|x| x.extract::<f64>()) {
                    *value = known;
                }
            }
        });
    }
}
