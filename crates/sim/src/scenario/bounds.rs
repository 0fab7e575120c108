//! Reasons to end a run early: memory, CPU time, a caller's request, simulated time that does not advance.

use ackclock_core::Time;

use crate::cpu::thread_seconds;
use crate::error::Error;
use crate::memory;
use crate::world::World;

/// Bounds on a run.
pub struct Bounds<'a> {
    /// Maximum memory of the run, bytes; `None` = no bound.
    pub memory: Option<u64>,
    /// Maximum CPU time of the run's thread, s; `None` = no bound.
    pub cpu_s: Option<f64>,
    /// Called from time to time with the simulated time. Returns true to end the run with [`Error::Stopped`].
    pub stop: &'a dyn Fn(Time) -> bool,
}

impl Bounds<'_> {
    /// No bounds.
    pub const NONE: Bounds<'static> = Bounds { memory: None, cpu_s: None, stop: &|_| false };
}

/// Check of a run against its bounds, made every [`SLICE`] events.
pub(crate) struct Guard<'a> {
    bounds: &'a Bounds<'a>,
    /// Memory in use by the thread before the run, bytes.
    before: i64,
    /// CPU time of the thread at the start of the run, s.
    began_s: f64,
    /// Simulated time of the last check, and number of events processed at this time.
    at: Time,
    events: u64,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(bounds: &'a Bounds<'a>) -> Guard<'a> {
        Guard { bounds, before: memory::held(), began_s: thread_seconds(), at: Time::ZERO, events: 0 }
    }

    /// Return an error if the run must end.
    pub(crate) fn check(&mut self, world: &World) -> Result<(), Error> {
        let now = world.now();
        if (self.bounds.stop)(now) {
            return Err(Error::Stopped);
        }
        if let Some(said) = world.fault() {
            return Err(Error::Own(said));
        }
        if let Some(limit) = self.bounds.memory {
            let needed = (memory::held() - self.before).max(0) as u64 * TABLES;
            if needed > limit {
                let found = format_args!("a run that needs {} MiB after {now} of its time", needed >> 20);
                let allowed = format_args!(
                    "{} MiB (record less, limit the queues, make it shorter, or raise the limit)",
                    limit >> 20
                );
                return Err(Error::value("memory_limit", found, allowed));
            }
        }
        if let Some(limit) = self.bounds.cpu_s.filter(|limit| thread_seconds() - self.began_s > *limit) {
            let found = format_args!("a run that takes longer, at {now} of its time");
            return Err(Error::value("time_limit", found, format_args!("{limit} s of CPU time")));
        }
        self.events = if now == self.at { self.events + SLICE as u64 } else { 0 };
        self.at = now;
        if self.events >= MOST_AT_ONCE {
            let links = world.due_links(3).join(", ");
            let found = format!("{MOST_AT_ONCE} events at {now}, where time stands still (links {links})");
            return Err(Error::value("network", found, TAKES_TIME));
        }
        Ok(())
    }
}

/// Value of `allowed` in the error for a path on which packets take no time.
pub(crate) const TAKES_TIME: &str =
    "a delay on one of its links, or a rate at which a packet takes 1 ns or more";
/// Number of events between two checks.
pub(crate) const SLICE: u32 = 4096;
/// Maximum number of events at a single instant before simulated time is considered stuck. 10^5 flows that start
/// together need 10^7.
const MOST_AT_ONCE: u64 = 1 << 25;
/// Factor applied to the memory in use: rows and the tables built from them exist at the same time, and a growing
/// vector may double before the next check.
const TABLES: u64 = 2;
