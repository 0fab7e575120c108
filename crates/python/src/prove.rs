//! All cases of a finite adversary, for Python.

use ackclock_sim::runs::prove::{parse_asks, parse_fate, Leaf, Leaves, Proof, Rules};
use ackclock_sim::{Column, Error};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::controller::{self, Slot};
use crate::interrupt::{Interrupt, PyStop};
use crate::scenario::Given;
use crate::{customs, failure_as_dict, guarded, refusal, tables, Classes};

/// Adversary: the packets that it decides on, their fate, the delay (ns), the number of questions, the maximum
/// number of yes answers, and the length of a burst.
type Adversary = (String, String, u64, u32, Option<u32>, Option<u32>);

fn rules((asks, fate, late_ns, first, most, burst): &Adversary) -> Result<Rules, Error> {
    Ok(Rules {
        asks: parse_asks(asks)?,
        fate: parse_fate(fate, *late_ns)?,
        first: *first,
        most: most.unwrap_or(*first),
        burst: *burst,
    })
}

/// Return why worlds of a scenario cannot be copied (None if they can), and the number of tasks into which its
/// cases are split.
#[pyfunction]
#[pyo3(signature = (scenario, seed, adversary, split, shared = true, controllers = None))]
pub fn prove_tasks<'py>(
    py: Python<'py>,
    scenario: Given<'py>,
    seed: u64,
    adversary: Adversary,
    split: u32,
    shared: bool,
    controllers: Option<Classes>,
) -> PyResult<(Option<String>, usize)> {
    let slot = Slot::default();
    let customs = customs(py, &controllers.unwrap_or_default(), &slot);
    let interrupt = Interrupt::new(None);
    let scenario = scenario.scenario().map_err(refusal)?;
    let counted = guarded(py, || {
        let stop = || controller::failed(&slot) || interrupt.came();
        let proof = || Proof::new(&scenario, seed, &customs, rules(&adversary)?, &stop);
        let why = proof()?.cannot_share()?;
        let proof = if why.is_none() && shared { proof()? } else { proof()?.unshared() };
        Ok((why, proof.tasks(split)?))
    })?;
    counted.map_err(refusal)
}

/// Run the cases of these tasks, in order. `shared`: copy worlds. `progress` is called with the number of finished
/// tasks.
#[pyfunction]
#[pyo3(signature = (scenario, seed, adversary, split, wanted, threads, shared = true, progress = None, controllers = None, stop = None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub fn prove<'py>(
    py: Python<'py>,
    scenario: Given<'py>,
    seed: u64,
    adversary: Adversary,
    split: u32,
    wanted: Vec<usize>,
    threads: usize,
    shared: bool,
    progress: Option<Py<PyAny>>,
    controllers: Option<Classes>,
    stop: Option<&Bound<'py, PyStop>>,
) -> PyResult<Bound<'py, PyDict>> {
    let slot = Slot::default();
    let classes = controllers.unwrap_or_default();
    let customs = customs(py, &classes, &slot);
    let interrupt = Interrupt::new(stop.map(Bound::get));
    let scenario = scenario.scenario().map_err(refusal)?;
    let mut reported = 0;
    let made = guarded(py, || {
        let ends = || controller::failed(&slot) || interrupt.came();
        let mut proof = Proof::new(&scenario, seed, &customs, rules(&adversary)?, &ends)?;
        if !shared {
            proof = proof.unshared();
        }
        let go_on = |done| {
            interrupt.note(Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(call) if done > reported => call.call1(py, (done,)).map(drop),
                    _ => Ok(()),
                }
            }));
            reported = done;
            !interrupt.came()
        };
        proof.run(split, &wanted, threads, go_on)
    })?;
    interrupt.check()?;
    let failure = slot.lock().ok().and_then(|mut slot| slot.take());
    match failure {
        Some(failure) => failure_as_dict(py, failure),
        None => as_dict(py, made.map_err(refusal)?),
    }
}

/// Run one case from the beginning; if `whole`, to the end of the run.
#[pyfunction]
#[pyo3(signature = (scenario, seed, adversary, answers, whole = false, controllers = None))]
pub fn prove_case<'py>(
    py: Python<'py>,
    scenario: Given<'py>,
    seed: u64,
    adversary: Adversary,
    answers: u128,
    whole: bool,
    controllers: Option<Classes>,
) -> PyResult<Bound<'py, PyDict>> {
    let slot = Slot::default();
    let customs = customs(py, &controllers.unwrap_or_default(), &slot);
    let scenario = scenario.scenario().map_err(refusal)?;
    let made = guarded(py, || {
        let stop = || controller::failed(&slot);
        let proof = Proof::new(&scenario, seed, &customs, rules(&adversary)?, &stop)?;
        if whole { proof.to_the_end() } else { proof }.leaf(answers)
    })?;
    let failure = slot.lock().ok().and_then(|mut slot| slot.take());
    if let Some(failure) = failure {
        return failure_as_dict(py, failure);
    }
    let leaf = made.map_err(refusal)?;
    let mut leaves = Leaves::default();
    leaves.push(leaf);
    as_dict(py, vec![leaves])
}

fn as_dict(py: Python<'_>, tasks: Vec<Leaves>) -> PyResult<Bound<'_, PyDict>> {
    fn each<T>(tasks: &[Leaves], of: impl Fn(&Leaf) -> T) -> Vec<T> {
        tasks.iter().flat_map(|task| &task.all).map(of).collect()
    }
    let small = |count: u32| count.min(u32::from(u8::MAX)) as u8;
    let dict = PyDict::new(py);
    let columns = [
        ("answers", Column::I8(each(&tasks, |leaf| leaf.answers as u64 as i64))),
        ("answers_above", Column::I8(each(&tasks, |leaf| (leaf.answers >> 64) as u64 as i64))),
        ("asked", Column::U4(each(&tasks, |leaf| leaf.asked))),
        ("took_ns", Column::I8(each(&tasks, |leaf| leaf.took.map_or(-1, |took| took as i64)))),
        ("timeouts", Column::U1(each(&tasks, |leaf| small(leaf.timeouts)))),
        ("retransmissions", Column::U1(each(&tasks, |leaf| small(leaf.retransmissions)))),
        ("queue_lost", Column::Bool(each(&tasks, |leaf| u8::from(leaf.queue_lost)))),
    ];
    for (name, column) in columns {
        dict.set_item(name, tables::column(py, column)?)?;
    }
    dict.set_item("counts", tasks.iter().map(|task| task.all.len()).collect::<Vec<_>>())?;
    dict.set_item("digests", tasks.iter().map(|task| task.digest.hex()).collect::<Vec<_>>())?;
    let cuts = PyList::empty(py);
    for task in &tasks {
        cuts.append(task.cuts.iter().map(|cut| (cut.count, cut.since_ns)).collect::<Vec<_>>())?;
    }
    dict.set_item("cuts", cuts)?;
    Ok(dict)
}
