//! Stepwise runs, many in parallel: each thread owns some of the runs and advances them by one step on request.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use ackclock_core::Span;
use ackclock_sim::runs::steer::{Action, Steered, FIELDS};
use ackclock_sim::{Error, Scenario};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::refusal;
use crate::scenario::Given;

/// Requests to a thread.
enum Ask {
    /// Begin a run in this slot, with a scenario and a seed.
    Begin(usize, Arc<Scenario>, u64),
    /// Advance all runs of the thread by one step. The actions cover all runs of all threads.
    Step(Arc<Vec<Action>>),
    /// Return the digest of a run so far.
    Digest(usize),
}

/// Replies from a thread.
enum Answer {
    Begun(Result<(), Error>),
    /// Rows of the runs, in order, and a flag for each finished run.
    Stepped(Vec<f64>, Vec<u8>),
    Digest(Option<String>),
    Failed(String),
}

/// Settings shared by all runs.
#[derive(Clone)]
struct Plan {
    runs: usize,
    agents: Vec<usize>,
    step: Span,
    paced: bool,
    threads: usize,
}

/// Runs of one thread: `number`, `number + threads`, ...
struct Crew {
    plan: Plan,
    number: usize,
    /// Run slots; each run with a flag for whether it has finished.
    runs: Vec<Option<(Steered, bool)>>,
}

impl Crew {
    fn answer(&mut self, ask: Ask) -> Answer {
        let Plan { agents, step, paced, threads, .. } = &self.plan;
        match ask {
            Ask::Begin(at, scenario, seed) => {
                let made = Steered::new(&scenario, seed, agents, *step, *paced);
                Answer::Begun(made.map(|run| self.runs[at / threads] = Some((run, false))))
            }
            Ask::Step(actions) => {
                let width = agents.len() * FIELDS.len();
                let mut rows = vec![0.0; self.runs.len() * width];
                let mut over = vec![1; self.runs.len()];
                for (i, run) in self.runs.iter_mut().enumerate() {
                    let Some((run, ended)) = run.as_mut().filter(|(_, ended)| !ended) else { continue };
                    let first = (self.number + i * threads) * agents.len();
                    let mine = &actions[first..first + agents.len()];
                    *ended = run.step(mine, &mut rows[i * width..(i + 1) * width]);
                    over[i] = u8::from(*ended);
                }
                Answer::Stepped(rows, over)
            }
            Ask::Digest(at) => {
                Answer::Digest(self.runs[at / threads].as_ref().map(|(run, _)| run.digest().hex()))
            }
        }
    }
}

struct Worker {
    asks: Option<Sender<Ask>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(plan: &Plan, number: usize) -> PyResult<Worker> {
        let (asks, asked) = channel();
        let (answered, answers) = channel();
        let plan = plan.clone();
        let work = move || {
            let count = (plan.runs + plan.threads - 1 - number) / plan.threads;
            let mut crew = Crew { plan, number, runs: (0..count).map(|_| None).collect() };
            for ask in asked {
                let answer = catch_unwind(AssertUnwindSafe(|| crew.answer(ask))).unwrap_or_else(|panic| {
                    Answer::Failed(ackclock_sim::runs::batch::panic_message(&*panic).to_string())
                });
                if answered.send(answer).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("steering".into()).spawn(work)?;
        Ok(Worker { asks: Some(asks), answers, thread: Some(thread) })
    }

    fn ask(&self, ask: Ask) {
        // a thread that has ended does not reply either
        let _ = self.asks.as_ref().map(|asks| asks.send(ask));
    }

    fn answer(&self) -> PyResult<Answer> {
        match self.answers.recv() {
            Ok(Answer::Failed(message)) => {
                Err(PyRuntimeError::new_err(format!("the engine failed, please report this: {message}")))
            }
            Ok(answer) => Ok(answer),
            Err(_) => Err(PyRuntimeError::new_err("the engine failed, please report this: a thread is gone")),
        }
    }
}

/// Runs with agents that decide after each step.
#[pyclass(name = "Steering", module = "ackclock", frozen)]
pub struct PySteering {
    plan: Plan,
    workers: Mutex<Vec<Worker>>,
}

#[pymethods]
impl PySteering {
    /// Create `runs` slots for runs, on `threads` threads. `agents`: the groups of flows with an agent. `step`:
    /// length of a step, ns.
    #[new]
    fn new(runs: usize, agents: Vec<usize>, step: u64, paced: bool, threads: usize) -> PyResult<PySteering> {
        if runs == 0 || agents.is_empty() || step == 0 {
            return Err(PyValueError::new_err("found no run, agent or step; allowed: one or more"));
        }
        let plan = Plan { runs, agents, step: Span(step), paced, threads: threads.clamp(1, runs) };
        let workers: PyResult<Vec<Worker>> = (0..plan.threads).map(|i| Worker::start(&plan, i)).collect();
        Ok(PySteering { workers: Mutex::new(workers?), plan })
    }

    /// Names of the numbers in a row returned by `step`.
    #[staticmethod]
    fn fields() -> Vec<&'static str> {
        FIELDS.to_vec()
    }

    /// Begin runs, each specified by slot, scenario and seed.
    fn begin<'py>(&self, py: Python<'py>, runs: Vec<(usize, Given<'py>, u64)>) -> PyResult<()> {
        let mut given = Vec::with_capacity(runs.len());
        for (at, scenario, seed) in runs {
            if at >= self.plan.runs {
                return Err(PyValueError::new_err(format!(
                    "found run {at}; allowed: 0 to {}",
                    self.plan.runs - 1
                )));
            }
            given.push((at, scenario.scenario().map_err(refusal)?, seed));
        }
        let begun: PyResult<Vec<Result<(), Error>>> = self.among(py, |workers| {
            let places: Vec<usize> = given.iter().map(|(at, ..)| at % self.plan.threads).collect();
            for (at, scenario, seed) in given {
                workers[at % self.plan.threads].ask(Ask::Begin(at, scenario, seed));
            }
            let answers: Vec<_> = places.into_iter().map(|place| workers[place].answer()).collect();
            let made = |answer| match answer {
                Answer::Begun(made) => made,
                _ => unreachable!("invariant: answers come in the order of what was asked"),
            };
            answers.into_iter().map(|answer| answer.map(made)).collect()
        });
        begun?.into_iter().collect::<Result<(), Error>>().map_err(refusal)
    }

    /// Advance all unfinished runs by one step. `actions`: two float64 per agent of each run. Returns the rows as
    /// float64 in the same order, and for each run 1 if it has finished.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &[u8],
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let Plan { runs, ref agents, threads, .. } = self.plan;
        let wanted = runs * agents.len() * size_of::<Action>();
        if actions.len() != wanted {
            return Err(PyValueError::new_err(format!(
                "found {} bytes of actions; allowed: {wanted}",
                actions.len()
            )));
        }
        let number = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().expect("invariant: eight bytes"));
        let both = |bytes: &[u8]| [number(&bytes[..8]), number(&bytes[8..])];
        let actions: Arc<Vec<Action>> =
            Arc::new(actions.chunks_exact(size_of::<Action>()).map(both).collect());
        if !actions.iter().flatten().all(|factor| factor.is_finite() && *factor > 0.0) {
            return Err(PyValueError::new_err("found an action that is no number above zero"));
        }
        let width = agents.len() * FIELDS.len();
        let (mut rows, mut over) = (vec![0.0; runs * width], vec![0; runs]);
        self.among(py, |workers| -> PyResult<()> {
            for worker in workers {
                worker.ask(Ask::Step(Arc::clone(&actions)));
            }
            let answers: Vec<_> = workers.iter().map(Worker::answer).collect();
            for (number, answer) in answers.into_iter().enumerate() {
                let Answer::Stepped(some, ended) = answer? else {
                    unreachable!("invariant: answers come in the order of what was asked")
                };
                for (i, (row, end)) in some.chunks_exact(width).zip(ended).enumerate() {
                    let at = number + i * threads;
                    rows[at * width..(at + 1) * width].copy_from_slice(row);
                    over[at] = end;
                }
            }
            Ok(())
        })?;
        Ok((PyBytes::new(py, bytemuck::cast_slice(&rows)), PyBytes::new(py, &over)))
    }

    /// Digest of the packets of a run so far; None before the run has begun.
    fn digest(&self, py: Python<'_>, at: usize) -> PyResult<Option<String>> {
        if at >= self.plan.runs {
            return Err(PyValueError::new_err(format!(
                "found run {at}; allowed: 0 to {}",
                self.plan.runs - 1
            )));
        }
        self.among(py, |workers| {
            let worker = &workers[at % self.plan.threads];
            worker.ask(Ask::Digest(at));
            match worker.answer()? {
                Answer::Digest(digest) => Ok(digest),
                _ => unreachable!("invariant: answers come in the order of what was asked"),
            }
        })
    }
}

impl PySteering {
    /// Call the threads with the GIL released, one caller at a time.
    fn among<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&[Worker]) -> T + Send) -> T {
        py.detach(|| {
            let workers = self.workers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            work(&workers)
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
