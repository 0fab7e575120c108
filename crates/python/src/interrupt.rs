//! Ends engine calls early: on Ctrl-C, for which the interpreter must be queried, and by a flag that other threads
//! set.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ackclock_core::calls;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

/// Flag that ends the runs it was passed to; cannot be cleared.
#[pyclass(name = "Stop", module = "ackclock", frozen)]
#[derive(Clone, Default)]
pub struct PyStop(Arc<AtomicBool>);

#[pymethods]
impl PyStop {
    #[new]
    fn new() -> PyStop {
        PyStop::default()
    }

    /// End the runs.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Conditions that end a call of the engine early. The interpreter delivers signals only to the main thread; queries
/// from other threads do no harm.
pub struct Interrupt {
    stop: PyStop,
    raised: Mutex<Option<PyErr>>,
}

/// Read the wall clock. Used only to limit how often Python is queried for signals, so no result depends on it.
#[allow(clippy::disallowed_methods, reason = "says when to ask Python for signals; no result depends on it")]
pub fn wall_clock() -> Instant {
    Instant::now()
}

impl Interrupt {
    pub fn new(stop: Option<&PyStop>) -> Interrupt {
        Interrupt { stop: stop.cloned().unwrap_or_default(), raised: Mutex::new(None) }
    }

    /// Whether the call must end.
    pub fn came(&self) -> bool {
        self.stop.is_set() || self.raised.lock().is_ok_and(|raised| raised.is_some())
    }

    /// Variant of [`Interrupt::came`] that also queries the interpreter, and then calls `tell`, if the last query was
    /// long enough ago.
    pub fn comes(&self, asked: &Cell<Instant>, tell: impl FnOnce(Python<'_>) -> PyResult<()>) -> bool {
        if asked.get().elapsed() > EVERY {
            asked.set(wall_clock());
            // a finalizing interpreter does not respond
            let Some(said) = Python::try_attach(|py| py.check_signals().and_then(|()| tell(py))) else {
                return true;
            };
            self.note(said);
        }
        self.came()
    }

    /// Record an error raised by Python code.
    pub fn note(&self, outcome: PyResult<()>) {
        if let (Err(error), Ok(mut raised)) = (outcome, self.raised.lock()) {
            raised.get_or_insert(error);
        }
    }

    /// Return the recorded exception as an error, if there is one.
    pub fn check(&self) -> PyResult<()> {
        let raised = self.raised.lock().ok().and_then(|mut raised| raised.take());
        match raised {
            Some(error) => Err(error),
            None if self.stop.is_set() => Err(PyKeyboardInterrupt::new_err(())),
            None => Ok(()),
        }
    }
}

/// Threads inside a user's Python code, which may never return.
#[derive(Default)]
pub struct Hooked(Mutex<Vec<u64>>);

impl Hooked {
    /// Do work that calls hooks in Python, on a thread of the engine. The thread keeps its Python thread state,
    /// because creating one for each hook would cost more than the hook.
    pub fn while_in<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        Python::attach(|py| {
            let ident = py.import("threading").and_then(|m| m.call_method0("get_ident")?.extract::<u64>());
            let ident = ident.unwrap_or_default();
            if let Ok(mut idents) = self.0.lock() {
                idents.push(ident);
            }
            let outcome = py.detach(work);
            if let Ok(mut idents) = self.0.lock() {
                idents.retain(|other| *other != ident);
            }
            outcome
        })
    }

    /// Raise KeyboardInterrupt in each of these threads. CPython offers this only through its C API.
    pub fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        let idents = self.0.lock().map(|idents| idents.clone()).unwrap_or_default();
        if idents.is_empty() {
            return Ok(());
        }
        let ctypes = py.import("ctypes")?;
        let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
        let error = ctypes.getattr("py_object")?.call1((py.get_type::<PyKeyboardInterrupt>(),))?;
        for ident in idents {
            raise.call1((ctypes.getattr("c_ulong")?.call1((ident,))?, &error))?;
        }
        Ok(())
    }
}

/// Minimum interval between queries to the interpreter.
const EVERY: Duration = Duration::from_millis(100);

/// From now on, record calls into user code in this memory page. Another process reads the page; `calls` describes
/// its layout.
#[pyfunction]
#[allow(unsafe_code, reason = "memory of Python's, which stays for the life of the process")]
pub fn share_calls(page: PyBuffer<u8>) -> PyResult<()> {
    const BYTES: usize = calls::ROOMS * calls::WORDS * 8;
    let place = page.buf_ptr().cast::<AtomicU64>();
    if page.readonly() || page.len_bytes() < BYTES || !page.is_c_contiguous() || !place.is_aligned() {
        return Err(PyValueError::new_err(format!("page: allowed: {BYTES} bytes that can be written")));
    }
    std::mem::forget(page); // the buffer is never released, so that Python neither moves nor frees the memory
                            // SAFETY: aligned memory of this length, which is held for ever; others access it
                            // through atomics or not at all.
    let words = unsafe { std::slice::from_raw_parts(place, BYTES / 8) };
    calls::share(words);
    Ok(())
}

/// Make this process end when the thread that started it ends, on systems that support this.
#[pyfunction]
#[allow(unsafe_code, reason = "a call of the system")]
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        extern "C" {
            fn prctl(option: std::ffi::c_int, ...) -> std::ffi::c_int;
        }
        const PR_SET_PDEATHSIG: std::ffi::c_int = 1;
        const SIGKILL: std::ffi::c_ulong = 9;
        // SAFETY: an option that takes a number.
        unsafe { prctl(PR_SET_PDEATHSIG, SIGKILL) };
    }
}
