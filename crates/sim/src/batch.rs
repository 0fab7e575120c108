//! One scenario under many seeds, on several threads. Runs are independent and results are put in the order of the
//! seeds, so that the number of threads cannot be seen in them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use ackclock_core::Digest;

use crate::error::Error;
use crate::run::{run, Output};
use crate::spec::Scenario;
use crate::table::{concatenate, Table};

/// What a batch produced.
pub struct Batch {
    /// Digest of each run, in the order of the seeds.
    pub digests: Vec<Digest>,
    /// The tables of all runs, with a leading column `seed`.
    pub tables: Vec<Table>,
}

/// Run `scenario` once for each seed. `progress` is called on the calling thread now and then with the number of runs
/// done; if it returns false, no further run is started and the batch ends with [`Error::Stopped`].
pub fn run_batch(
    scenario: &Scenario,
    seeds: &[u64],
    threads: usize,
    mut progress: impl FnMut(usize) -> bool,
) -> Result<Batch, Error> {
    let next = AtomicUsize::new(0);
    let mut outputs: Vec<Option<Result<Output, Error>>> = seeds.iter().map(|_| None).collect();
    let stopped = std::thread::scope(|scope| {
        let (results, inbox) = mpsc::channel();
        for _ in 0..threads.clamp(1, seeds.len().max(1)) {
            let results = results.clone();
            let next = &next;
            scope.spawn(move || loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&seed) = seeds.get(at) else { return };
                if results.send((at, run(scenario, seed))).is_err() {
                    return; // nobody listens any more
                }
            });
        }
        drop(results);
        let mut done = 0;
        loop {
            match inbox.recv_timeout(HEARTBEAT) {
                Ok((at, output)) => {
                    done += 1;
                    outputs[at] = Some(output);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            if !progress(done) {
                next.store(seeds.len(), Ordering::Relaxed);
                return true;
            }
        }
    });
    if stopped {
        return Err(Error::Stopped);
    }

    let mut digests = Vec::with_capacity(seeds.len());
    let mut tables = Vec::with_capacity(seeds.len());
    for (&seed, output) in seeds.iter().zip(outputs) {
        let output = output.expect("invariant: a thread that dies takes the batch with it")?;
        digests.push(output.digest);
        tables.push((seed, output.tables));
    }
    Ok(Batch { digests, tables: concatenate(tables) })
}

/// Longest silence between two calls of `progress`.
const HEARTBEAT: Duration = Duration::from_millis(100);
