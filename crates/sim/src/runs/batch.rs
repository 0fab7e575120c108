//! Many runs: one scenario under many seeds, on several threads; or a list of runs of several scenarios, reduced to what a
//! sweep keeps. Runs are independent and results are put in the order asked for, so that the number of threads cannot be
//! seen in them.

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

/// Result of a batch.
pub struct Batch {
    /// Digest of each run, in the order of the seeds.
    pub digests: Vec<Digest>,
    /// The tables of all runs, with a leading column `seed`.
    pub tables: Vec<Table>,
}

impl Batch {
    /// Batch of the runs of one scenario under these seeds, in their order.
    pub fn of(seeds: &[u64], outputs: Vec<Output>) -> Batch {
        let digests = outputs.iter().map(|output| output.digest).collect();
        let tables = seeds.iter().zip(outputs).map(|(&seed, output)| (seed, output.tables)).collect();
        Batch { digests, tables: concatenate("seed", tables) }
    }
}

/// Run `scenario` once for each seed; `progress` as in [`on_threads`].
pub fn run_batch(
    scenario: &Scenario,
    seeds: &[u64],
    threads: usize,
    progress: impl FnMut(usize) -> bool,
) -> Result<Batch, Error> {
    let outputs = on_threads(seeds.len(), threads, progress, |at| run(scenario, seeds[at]))?;
    Ok(Batch::of(seeds, outputs))
}

/// Make `count` runs by `one`, which gets the position of each, and return them in this order. `progress` is
/// called on the calling thread from time to time with the number of finished runs; if it returns false, no
/// further run is started and all end with [`Error::Stopped`] when the others have ended; until then it is
/// called repeatedly, so that it may hasten them.
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
                    return; // all runs are taken, or the receiver has hung up
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

/// Parts kept of each run of a list.
#[derive(Default)]
pub struct Kept {
    /// Digest of each run, or the reason for having none.
    pub outcomes: Vec<Result<Digest, String>>,
    /// Values of each metric, run by run; NaN for a run that failed.
    pub metrics: Vec<Vec<f64>>,
    /// The requested tables with rows of all runs, with a leading column `run`: the position in the list.
    pub tables: Vec<Table>,
}

/// Make each run (scenario, seed) of the list by `one`, which is told what tables are wanted, on the calling thread, and
/// keep the metrics and the tables named. A run that is
/// refused, or that panics, which only a bug of ours can cause, leaves its error and does not stop the others. After
/// `budget_s` of CPU time, or when the caller wants an end, no further run is started: the rest of the list has no
/// outcome, and is asked for again.
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
            // a controller without a variable gets an empty column, so that runs of all controllers go together
            if table.name == "controllers" {
                let named = vars.iter().filter(|name| columns.iter().any(|c| c == *name));
                named.for_each(|name| table.fill(name, rows));
            }
        }
        Some(table)
    };
    tables.into_iter().filter_map(keep).collect()
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Longest silence between two calls of `progress`.
const HEARTBEAT: Duration = Duration::from_millis(100);
