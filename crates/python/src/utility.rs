//! A user's PCC utility function written in Python. It takes the current and the previous interval and returns a
//! number. The first failure, an exception or a result that is not a number, is stored and ends the run.

use ackclock_pcc::{Measured, Utility};
use ackclock_sim::transport::UtilityMaker;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::controller::{refuse_deferred, Failure, Slot};

/// A finished monitor interval. Rates in bit/s of IP packets, times in seconds.
#[pyclass(name = "Interval", module = "ackclock", frozen, get_all)]
pub struct PyInterval {
    /// Rate set for the interval.
    rate_bps: f64,
    /// Sending rate x.
    send_rate_bps: f64,
    /// Throughput T = x (1 - L).
    throughput_bps: f64,
    /// Loss rate L: lost over sent.
    loss: f64,
    /// Mean RTT; 0 without a sample.
    rtt_s: f64,
    /// RTT gradient dRTT/dT.
    rtt_gradient: f64,
    /// Standard deviation of the RTT.
    rtt_deviation_s: f64,
    sent: u32,
    lost: u32,
    start_s: f64,
    end_s: f64,
}

impl PyInterval {
    fn of(m: &Measured) -> PyInterval {
        PyInterval {
            rate_bps: m.rate,
            send_rate_bps: m.rate_mbps() * 1e6,
            throughput_bps: m.throughput_mbps() * 1e6,
            loss: m.loss(),
            rtt_s: m.rtt_mean,
            rtt_gradient: m.rtt_gradient,
            rtt_deviation_s: m.rtt_deviation,
            sent: m.sent,
            lost: m.lost,
            start_s: m.start.as_secs(),
            end_s: m.end.as_secs(),
        }
    }
}

/// Return a factory for utilities that call `function` and record failures in `slot`.
pub fn maker(py: Python<'_>, name: &str, function: &Py<PyAny>, slot: &Slot) -> UtilityMaker {
    let (name, function, slot) = (name.to_string(), function.clone_ref(py), slot.clone());
    std::sync::Arc::new(move || {
        let function = Python::attach(|py| function.clone_ref(py));
        Box::new(PyUtility { name: name.clone(), function, slot: slot.clone() })
    })
}

struct PyUtility {
    name: String,
    function: Py<PyAny>,
    slot: Slot,
}

impl PyUtility {
    fn call(&self, py: Python<'_>, now: &Measured, before: Option<&Measured>) -> PyResult<f64> {
        let value = self.function.call1(py, (PyInterval::of(now), before.map(PyInterval::of)))?;
        refuse_deferred(value.bind(py))?;
        let number: f64 = value.extract(py).map_err(|_| {
            let found =
                value.bind(py).repr().map_or_else(|_| "something".to_string(), |text| text.to_string());
            PyValueError::new_err(format!("it gave {found}; allowed: a number"))
        })?;
        if !number.is_finite() {
            let found = if number.is_nan() { "NaN".to_string() } else { number.to_string() };
            return Err(PyValueError::new_err(format!("it gave {found}; allowed: a finite number")));
        }
        Ok(number)
    }
}

impl Utility for PyUtility {
    fn of(&mut self, now: &Measured, before: Option<&Measured>) -> Result<f64, String> {
        Python::attach(|py| {
            self.call(py, now, before).map_err(|error| {
                let why = "it failed".to_string(); // the slot contains the error itself
                if let Ok(mut slot) = self.slot.lock() {
                    slot.get_or_insert_with(|| Failure {
                        class: self.name.clone(),
                        hook: "utility",
                        time: now.known,
                        error,
                    });
                }
                why
            })
        })
    }
}
