//! Many runs on threads: one scenario under many seeds, or many scenarios.

use std::sync::Arc;

use ackclock_sim::{on_threads, Batch, Bounds, Customs, Error, Output, Scenario};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::controller::{self, Slot};
use crate::interrupt::{Hooked, Interrupt, PyStop};
use crate::scenario::Given;
use crate::tables::PyTables;
use crate::{customs, failure_as_dict, guarded, refusal, Classes};

/// Execute one run per seed, on `threads` threads. `memory` and `stop` apply to each run as in [`crate::run`].
#[pyfunction]
#[pyo3(signature = (scenario, seeds, threads, progress = None, controllers = None, memory = None, stop = None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub fn run_batch<'py>(
    py: Python<'py>,
    scenario: Given<'py>,
    seeds: Vec<u64>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    controllers: Option<Classes>,
    memory: Option<u64>,
    stop: Option<&Bound<'py, PyStop>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = scenario.scenario().map_err(refusal)?;
    let runs: Vec<_> = seeds.iter().map(|&seed| (scenario.clone(), seed)).collect();
    let many = Many { threads, progress, classes: controllers.unwrap_or_default(), memory };
    let outputs = match many.run(py, &runs, stop)? {
        Made::Failed(failure) => return Ok(failure),
        Made::All(outputs) => outputs,
    };
    let batch = guarded(py, || Batch::of(&seeds, outputs))?;
    let dict = PyDict::new(py);
    dict.set_item("digests", batch.digests.iter().map(|d| d.hex()).collect::<Vec<_>>())?;
    dict.set_item("tables", PyTables::of(batch.tables))?;
    Ok(dict)
}

/// Execute these runs, each given as a scenario and a seed, on `threads` threads. Returns the digest and the tables
/// of each.
#[pyfunction]
#[pyo3(signature = (runs, threads, progress = None, controllers = None, memory = None, stop = None))]
pub fn run_many<'py>(
    py: Python<'py>,
    runs: Vec<(Given<'py>, u64)>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    controllers: Option<Classes>,
    memory: Option<u64>,
    stop: Option<&Bound<'py, PyStop>>,
) -> PyResult<Bound<'py, PyDict>> {
    let given = runs.into_iter().map(|(given, seed)| Ok((given.scenario().map_err(refusal)?, seed)));
    let runs = given.collect::<PyResult<Vec<_>>>()?;
    let many = Many { threads, progress, classes: controllers.unwrap_or_default(), memory };
    let outputs = match many.run(py, &runs, stop)? {
        Made::Failed(failure) => return Ok(failure),
        Made::All(outputs) => outputs,
    };
    let all = PyList::empty(py);
    for output in outputs {
        all.append((output.digest.hex(), PyTables::of(output.tables)))?;
    }
    let dict = PyDict::new(py);
    dict.set_item("runs", all)?;
    Ok(dict)
}

/// Settings for many runs.
struct Many {
    threads: usize,
    progress: Option<Py<PyAny>>,
    classes: Classes,
    memory: Option<u64>,
}

/// Results of many runs.
enum Made<'py> {
    All(Vec<Output>),
    /// A user's controller failed.
    Failed(Bound<'py, PyDict>),
}

impl Many {
    fn run<'py>(
        &self,
        py: Python<'py>,
        runs: &[(Arc<Scenario>, u64)],
        stop: Option<&Bound<'py, PyStop>>,
    ) -> PyResult<Made<'py>> {
        let slots: Vec<Slot> = runs.iter().map(|_| Slot::default()).collect();
        let customs: Vec<Customs> = match self.classes.is_empty() {
            true => Vec::new(),
            false => slots.iter().map(|slot| customs(py, &self.classes, slot)).collect(),
        };
        let none = Customs::new();
        let interrupt = Interrupt::new(stop.map(Bound::get));
        let hooked = Hooked::default();
        let mut reported = 0;
        let outputs: Result<Vec<Output>, Error> = guarded(py, || {
            let one = |at: usize| {
                let customs = customs.get(at).unwrap_or(&none);
                let stop = |_| controller::failed(&slots[at]) || interrupt.came();
                let (scenario, seed) = &runs[at];
                let memory = self.memory;
                let run = || {
                    let bounds = Bounds { memory, cpu_s: None, stop: &stop };
                    ackclock_sim::run_with(scenario, *seed, customs, &bounds)
                };
                match customs.is_empty() {
                    true => run(),
                    false => hooked.while_in(run),
                }
            };
            let go_on = |done| {
                if interrupt.came() {
                    interrupt.note(Python::attach(|py| hooked.interrupt(py)));
                    return false;
                }
                interrupt.note(Python::attach(|py| {
                    py.check_signals()?;
                    match &self.progress {
                        Some(call) if done > reported => call.call1(py, (done,)).map(drop),
                        _ => Ok(()),
                    }
                }));
                reported = done;
                !interrupt.came()
            };
            on_threads(runs.len(), self.threads, go_on, one)
        })?;
        interrupt.check()?;
        let failure = slots.iter().find_map(|slot| slot.lock().ok().and_then(|mut slot| slot.take()));
        match failure {
            Some(failure) => failure_as_dict(py, failure).map(Made::Failed),
            None => outputs.map(Made::All).map_err(refusal),
        }
    }
}
