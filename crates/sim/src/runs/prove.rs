//! Proof by enumeration: the outcome of a run for every sequence of answers of a finite adversary.
//!
//! A run forks whenever the adversary is asked. Questions are asked in the middle of an event, and one event may ask
//! several (for instance, the first ten packets of a response are sent within one event). A world is therefore
//! copied. One copy runs event by event until a question is asked. The other one runs to just before that event, and
//! the event is then repeated for each combination of answers, with one copy for every leaf except the first. This
//! relies on an event's questions not depending on its own answers, which is verified at each event with a digest of
//! the packets asked about.
//!
//! A world that cannot be copied is run from the beginning for each leaf, in the same order: the next leaf changes
//! the last answer that can still be changed.
//!
//! Worlds contain `Rc`, so each thread builds its own and walks the top of the tree. The tasks below the top are
//! shared between the threads.

mod leaves;
mod rules;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ackclock_core::Time;
use ackclock_net::loss::ListedParams;
use ackclock_net::{Adversary, AppliesTo, Fate, LossConfig, QueueConfig, Reorder};

use crate::error::Error;
use crate::runs::build::{build, Built};
use crate::scenario::hosts::Customs;
use crate::scenario::spec::Scenario;
use crate::world::shortcuts::Shortcuts;
use crate::world::World;
pub use leaves::{Cut, Leaf, Leaves};
use rules::mask;
pub use rules::{parse_asks, parse_fate, Rules};
use walk::Walk;

/// Enumeration of all cases of a scenario.
pub struct Proof<'a> {
    scenario: Scenario,
    seed: u64,
    customs: &'a Customs,
    rules: Rules,
    /// Whether worlds are copied; otherwise each leaf is a run from the beginning.
    shared: bool,
    /// Whether a leaf ends when the flow has completed instead of at the end of the run. The leaf's digest then
    /// covers the packets up to that point.
    stops: bool,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Proof<'a> {
    /// Check that an adversary can act on the bottleneck of this scenario. The bottleneck must have no loss model.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        customs: &'a Customs,
        rules: Rules,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Proof<'a>, Error> {
        let mut scenario = scenario.clone();
        rules.check()?;
        let network = &mut scenario.network;
        let reverse = network.reverse.bottleneck.as_mut();
        let Some(bottleneck) = network.bottleneck.as_mut() else {
            return Err(Error::value("network.topology", "a graph", "chain, dumbbell, wishbone"));
        };
        for (place, link) in
            [("network.bottleneck", Some(bottleneck)), ("network.reverse.bottleneck", reverse)]
        {
            let Some(link) = link else { continue };
            if link.loss.as_ref().is_some_and(|loss| *loss != LossConfig::NONE) {
                let allowed = "none: the adversary decides what is lost";
                return Err(Error::value(format_args!("{place}.loss"), "a loss model", allowed));
            }
            // an empty loss list, only to make the link ask the adversary
            link.loss =
                Some(LossConfig::Listed(ListedParams { packets: vec![], applies_to: AppliesTo::All }));
            if let Fate::Late(extra_delay) = rules.fate {
                if link.queue.as_ref().is_some_and(QueueConfig::holds) {
                    let found = "a queue that holds its packets";
                    return Err(Error::value(
                        format_args!("{place}.queue"),
                        found,
                        "one that does not, with delays",
                    ));
                }
                link.reorder.get_or_insert(Reorder { probability: 0.0, extra_delay });
            }
        }
        Ok(Proof { scenario, seed, customs, rules, shared: true, stops: true, stop })
    }

    /// Run each leaf from the beginning, without copies.
    pub fn unshared(self) -> Proof<'a> {
        Proof { shared: false, ..self }
    }

    /// Run each leaf to the end of the run, so that its digest covers the complete run.
    pub fn to_the_end(self) -> Proof<'a> {
        Proof { stops: false, ..self }
    }

    /// Reason why worlds of this scenario cannot be copied; `None` if they can be. State that a controller shares
    /// between copies may be detected only in a complete run, so some complete runs are made before copying is tried
    /// again.
    pub fn cannot_share(&self) -> Result<Option<String>, Error> {
        let mut root = self.root(0)?;
        let asked = |world: &mut World, _: &_| world.adversary().asked() == 0;
        root.world.run_while(&mut root.app, Time(self.scenario.duration_ns), asked);
        if let Err(why) = root.copied() {
            return Ok(Some(why));
        }
        for answers in [0, 1, PROBE & mask(self.rules.first)] {
            if (self.stop)() {
                return Err(Error::Stopped);
            }
            self.leaf(answers)?;
        }
        Ok(root.copied().err())
    }

    /// Build and start a run with these answers.
    fn root(&self, answers: u128) -> Result<Built, Error> {
        let mut built = build(&self.scenario, self.seed, self.customs, Shortcuts::ALL)?;
        let Rules { asks, fate, .. } = self.rules;
        let adversary = Adversary::new(asks, fate, answers, self.rules.is_limited());
        built.world.set_adversary(adversary, |name| name.starts_with("bottleneck."));
        built.world.share_memory();
        built.app.begin(&mut built.world);
        Ok(built)
    }

    /// Run one leaf from the beginning.
    pub fn leaf(&self, answers: u128) -> Result<Leaf, Error> {
        let built = self.root(answers)?;
        Ok(Walk::new(self, &[], &|_| false).finish(Box::new(built)))
    }

    /// Number of tasks, at most one per combination of answers to the first `split` questions.
    pub fn tasks(&self, split: u32) -> Result<usize, Error> {
        let mut walk = Walk::new(self, &[], &|_| false);
        walk.all(split)?;
        Ok(walk.tasks)
    }

    /// Return the leaves of the `wanted` tasks, in order, using this many threads. `progress` gets the number of
    /// finished tasks and returns whether to continue.
    pub fn run(
        &self,
        split: u32,
        wanted: &[usize],
        threads: usize,
        mut progress: impl FnMut(usize) -> bool,
    ) -> Result<Vec<Leaves>, Error> {
        let taken: Vec<AtomicBool> = wanted.iter().map(|_| AtomicBool::new(false)).collect();
        let ended = AtomicBool::new(false);
        let mut made: Vec<Option<Leaves>> = wanted.iter().map(|_| None).collect();
        let mut failed = None;
        std::thread::scope(|scope| {
            let (results, inbox) = mpsc::channel();
            for _ in 0..threads.clamp(1, wanted.len().max(1)) {
                let (results, taken, ended) = (results.clone(), &taken, &ended);
                scope.spawn(move || {
                    let take = |at: usize| {
                        !ended.load(Ordering::Relaxed) && !taken[at].swap(true, Ordering::Relaxed)
                    };
                    let mut walk = Walk::new(self, wanted, &take);
                    walk.send = Some(&results);
                    if let Err(error) = walk.all(split) {
                        results.send(Err(error)).ok();
                    }
                });
            }
            drop(results);
            let mut done = 0;
            loop {
                match inbox.recv_timeout(HEARTBEAT) {
                    Ok(Ok((at, leaves))) => {
                        done += 1;
                        made[at] = Some(leaves);
                    }
                    Ok(Err(error)) => {
                        failed.get_or_insert(error);
                        ended.store(true, Ordering::Relaxed);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if !progress(done) {
                    ended.store(true, Ordering::Relaxed);
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => made.into_iter().collect::<Option<Vec<_>>>().ok_or(Error::Stopped),
        }
    }
}

/// Maximum time between two calls of `progress`.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Adversary's answers in a trial run that determines whether a controller can be copied.
const PROBE: u128 = 0b1001_0110_1001 << 2;
