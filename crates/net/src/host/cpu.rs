//! The processor: processes that run on a number of cores. A process with work runs as soon as a core is free. If
//! more processes have work than there are cores, they take turns of one slice each, round robin.
//!
//! A process that busy-waits (PCC's sender spins on the cycle counter) always has work. Differs: Linux's fair
//! scheduler lets a process that wakes up preempt one that has run for longer; here it queues behind the others.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// Processor configuration: cores, slices, and CPU time per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// Number of cores; 0 = one per process.
    pub cores: u32,
    /// Maximum time that a process runs while others wait.
    pub slice: Span,
    /// CPU time per packet sent.
    pub send: Span,
    /// CPU time per packet received.
    pub receive: Span,
    /// Whether senders never yield their core.
    pub busy_wait: bool,
}

#[derive(Clone, Copy, Debug)]
struct Core {
    process: u32,
    slice_end: Time,
}

/// Scheduler for a host that may have fewer cores than processes. Processes are identified by number.
#[derive(Clone)]
pub(crate) struct Cpu {
    slice: Span,
    cores: Vec<Option<Core>>,
    queue: VecDeque<(u32, Time)>,
    waited: Span,
    /// Time at which [`Cpu::rotate`] is due.
    due: Time,
}

impl Cpu {
    pub(crate) fn new(cores: u32, slice: Span) -> Cpu {
        let slice = Span(slice.0.max(1));
        let cores = vec![None; cores as usize];
        Cpu { slice, cores, queue: VecDeque::new(), waited: Span::ZERO, due: Time::NEVER }
    }

    /// Give work to `process`. Returns whether it runs at once; otherwise it waits for its turn.
    pub(crate) fn wake(&mut self, now: Time, process: u32) -> bool {
        if self.cores.iter().flatten().any(|core| core.process == process) {
            return true;
        }
        if self.queue.iter().any(|&(waiting, _)| waiting == process) {
            return false;
        }
        if let Some(free) = self.cores.iter_mut().find(|core| core.is_none()) {
            *free = Some(Core { process, slice_end: now + self.slice });
            return true;
        }
        self.queue.push_back((process, now));
        self.plan(now);
        false
    }

    /// Release the core of `process`, which has no more work or has ended. Returns the process that gets the core
    /// next, if any.
    pub(crate) fn release(&mut self, now: Time, process: u32) -> Option<u32> {
        self.queue.retain(|&(waiting, _)| waiting != process);
        let at = self.cores.iter().position(|core| core.is_some_and(|c| c.process == process))?;
        self.cores[at] = None;
        let next = self.start(now, at);
        self.plan(now);
        next
    }

    /// End of the first slice that another process waits for; `Time::NEVER` if none waits.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// End one expired slice: its process goes to the end of the queue. Returns the process that runs in its place;
    /// call again until `None`.
    pub(crate) fn rotate(&mut self, now: Time) -> Option<u32> {
        if self.queue.is_empty() {
            self.plan(now);
            return None;
        }
        let over = |core: &Option<Core>| core.is_some_and(|c| c.slice_end <= now);
        let next = self.cores.iter().position(over).and_then(|at| {
            let process = self.cores[at].take().expect("invariant: found above").process;
            self.queue.push_back((process, now));
            self.start(now, at)
        });
        self.plan(now);
        next
    }

    /// Total time that processes have waited for a core.
    pub(crate) fn waited(&self, now: Time) -> Span {
        self.queue.iter().fold(self.waited, |sum, &(_, since)| sum + now.since(since))
    }

    fn start(&mut self, now: Time, at: usize) -> Option<u32> {
        let (process, since) = self.queue.pop_front()?;
        self.waited = self.waited + now.since(since);
        self.cores[at] = Some(Core { process, slice_end: now + self.slice });
        Some(process)
    }

    fn plan(&mut self, now: Time) {
        self.due = Time::NEVER;
        if !self.queue.is_empty() {
            let ends = self.cores.iter().flatten().map(|core| core.slice_end);
            self.due = ends.min().unwrap_or(Time::NEVER).max(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Fraction of the time for which each of `n` busy processes runs on `cores`.
    fn shares(n: u32, cores: u32) -> Vec<f64> {
        let mut cpu = Cpu::new(cores, Span::from_ms(3));
        for process in 0..n {
            cpu.wake(Time::ZERO, process);
        }
        let mut ran = vec![0u64; n as usize];
        let (mut now, end) = (Time::ZERO, Time(900 * MS));
        while now < end {
            let next = cpu.due().min(end);
            for core in cpu.cores.iter().flatten() {
                ran[core.process as usize] += (next - now).0;
            }
            now = next;
            while cpu.rotate(now).is_some() {}
        }
        ran.iter().map(|&ns| ns as f64 / end.0 as f64).collect()
    }

    #[test]
    fn busy_processes_share_the_cores() {
        assert_eq!(shares(2, 2), [1.0, 1.0]);
        assert_eq!(shares(1, 8), [1.0]);
        assert_eq!(shares(2, 1), [0.5, 0.5]);
        for share in shares(5, 2) {
            assert!((share - 0.4).abs() < 0.01, "{share}");
        }
    }

    #[test]
    fn whoever_wakes_waits_at_most_for_the_slices_before_it() {
        let mut cpu = Cpu::new(1, Span::from_ms(3));
        assert!(cpu.wake(Time(0), 7)); // never idle
        assert!(!cpu.wake(Time(MS), 8));
        assert!(!cpu.wake(Time(MS), 8), "queued once");
        assert_eq!(cpu.due(), Time(3 * MS));
        assert_eq!(cpu.rotate(Time(3 * MS)), Some(8));
        assert_eq!(cpu.rotate(Time(3 * MS)), None, "one slice ends at a time");
        // done after 100 us, so the core returns to the other process
        assert_eq!(cpu.release(Time(3 * MS + 100_000), 8), Some(7));
        assert_eq!(cpu.due(), Time::NEVER);
        assert_eq!(cpu.waited(Time(4 * MS)), Span(2 * MS + 100_000));
        // a process without rivals keeps its core beyond its slice
        assert!(cpu.wake(Time(50 * MS), 7));
        assert!(!cpu.wake(Time(50 * MS), 9));
        assert_eq!(cpu.due(), Time(50 * MS), "its slice was over long ago");
        assert_eq!(cpu.release(Time(50 * MS), 9), None);
        assert!(cpu.queue.is_empty());
    }
}
