//! Batches of runs: one scenario under many seeds on several threads, or a list of runs of several scenarios reduced
//! to the results stored by a sweep. Runs are independent and results are returned in the order requested, so
//! results do not depend on the number of threads.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use ackclock_cc::Controller;
use ackclock_core::Digest;

use crate::cpu::thread_seconds;
use crate::error::Error;
use crate::report::summary::Metrics;
use crate::runs::run::{run, Output};
use crate::scenario::spec::Scenario;
use crate::tables::table::{concatenate, Table};

/// Batch results.
pub struct Batch {
    /// Digest of each run, in seed order.
    pub digests: Vec<Digest>,
    /// The tables of all runs, with a leading column `seed`.
    pub tables: Vec<Table>,
}

impl Batch {
    /// Combine the outputs of one scenario for these seeds, in order.
    pub fn of(seeds: &[u64], outputs: Vec<Output>) -> Batch {
        let digests = outputs.iter().map(|output| output.digest).collect();
        let tables = seeds.iter().zip(outputs).map(|(&seed, output)| (seed, output.tables)).collect();
        Batch { digests, tables: concatenate("seed", tables) }
    }
}

/// Run `scenario` once per seed; `progress` as in [`on_threads`].
pub fn run_batch(
    scenario: &Scenario,
    seeds: &[u64],
    threads: usize,
    progress: impl FnMut(usize) -> bool,
) -> Result<Batch, Error> {
    let outputs = on_threads(seeds.len(), threads, progress, |at| run(scenario, seeds[at]))?;
    Ok(Batch::of(seeds, outputs))
}

/// Execute `count` runs by calling `one` with each index, and return the results in order. `progress` is called
/// repeatedly on the calling thread with the number of finished runs. If it returns false, no further run is started,
/// and the result is [`Error::Stopped`] once the runs in progress have ended. `progress` is still called in the
/// meantime, so it may stop them early.
pub fn on_threads(
    count: usize,
    threads: usize,
    mut progress: impl FnMut(usize) -> bool,
    one: impl Fn(usize) -> Result<Output, Error> + Sync,
) -> Result<Vec<Output>, Error> {
    let one = &one;
    let next = AtomicUsize::new(0);
    let mut outputs: Vec<Option<Result<Output, Error>>> = (0..count).map(|_| None).collect();
    let stopped = std::thread::scope(|scope| {
        let (results, inbox) = mpsc::channel();
        for _ in 0..threads.clamp(1, count.max(1)) {
            let results = results.clone();
            let next = &next;
            scope.spawn(move || loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count || results.send((at, one(at))).is_err() {
                    return; // all runs have been taken, or the receiver is gone
                }
            });
        }
        drop(results);
        let (mut done, mut stopped) = (0, false);
        loop {
            match inbox.recv_timeout(HEARTBEAT) {
                Ok((at, output)) => {
                    done += 1;
                    outputs[at] = Some(output);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return stopped,
            }
            if !progress(done) {
                next.store(count, Ordering::Relaxed);
                stopped = true;
            }
        }
    });
    if stopped {
        return Err(Error::Stopped);
    }
    let made = |output: Option<_>| output.expect("invariant: a thread that dies takes the others with it");
    outputs.into_iter().map(made).collect()
}

/// Results kept from a batch of runs.
#[derive(Default)]
pub struct Kept {
    /// Digest of each run, or its error.
    pub outcomes: Vec<Result<Digest, String>>,
    /// Values of all metrics for each run; NaN if the run failed.
    pub metrics: Vec<Vec<f64>>,
    /// The requested tables with the rows of all runs. The leading column `run` is the index in the list.
    pub tables: Vec<Table>,
}

/// Execute each run (scenario, seed) of the list by calling `one` on this thread, and keep the metrics and the named
/// tables. `one` is told which tables are needed. A run that is rejected, or that panics (always a bug in the
/// engine), is recorded with its error and does not stop the others. After `budget_s` of CPU time, or once a run ends
/// with [`Error::Stopped`], no further run is started: the remaining runs have no outcome, and the caller can request
/// them again.
pub fn run_each(
    runs: &[(&Scenario, u64)],
    metrics: &Metrics,
    tables: &[(String, Option<Vec<String>>)],
    budget_s: f64,
    one: impl Fn(&Scenario, u64, &dyn Fn(&str) -> bool) -> Result<Output, Error>,
) -> Kept {
    let mut kept = Kept::default();
    let mut rows = Vec::new();
    let vars = match tables.iter().any(|(name, _)| name == "controllers") {
        true => Controller::known_vars(),
        false => Vec::new(),
    };
    let until = thread_seconds() + budget_s;
    for (at, &(scenario, seed)) in runs.iter().enumerate() {
        if at > 0 && thread_seconds() > until {
            break;
        }
        let asked = |name: &str| metrics.need(name) || tables.iter().any(|(wanted, _)| wanted == name);
        let output = catch_unwind(AssertUnwindSafe(|| one(scenario, seed, &asked)));
        let output = match output {
            Ok(Ok(output)) => output,
            Ok(Err(Error::Stopped)) => break,
            Ok(Err(error)) => {
                kept.outcomes.push(Err(error.to_string()));
                kept.metrics.push(metrics.of(&[]));
                continue;
            }
            Err(panic) => {
                kept.outcomes
                    .push(Err(format!("the engine failed, please report this: {}", panic_message(&*panic))));
                kept.metrics.push(metrics.of(&[]));
                continue;
            }
        };
        kept.outcomes.push(Ok(output.digest));
        kept.metrics.push(metrics.of(&output.tables));
        if !tables.is_empty() {
            rows.push((at as u64, wanted(output.tables, tables, &vars)));
        }
    }
    kept.tables = concatenate("run", rows);
    kept
}

fn wanted(tables: Vec<Table>, names: &[(String, Option<Vec<String>>)], vars: &[&'static str]) -> Vec<Table> {
    let keep = |mut table: Table| {
        let (_, columns) = names.iter().find(|(name, _)| name == table.name)?;
        if let Some(columns) = columns {
            let rows = table.rows();
            table.columns.retain(|(name, _)| columns.iter().any(|c| c == name));
            // a missing controller variable becomes an empty column, so that runs of all controllers can be combined
            if table.name == "controllers" {
                let named = vars.iter().filter(|name| columns.iter().any(|c| c == *name));
                named.for_each(|name| table.fill(name, rows));
            }
        }
        Some(table)
    };
    tables.into_iter().filter_map(keep).collect()
}

/// Return the message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Maximum time between two calls of `progress`.
const HEARTBEAT: Duration = Duration::from_millis(100);
