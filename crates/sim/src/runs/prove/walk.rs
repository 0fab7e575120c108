//! Walk through the answer tree, and construction of leaves.

use std::sync::mpsc::Sender;

use ackclock_core::Time;

use super::leaves::{Leaf, Leaves};
use super::rules::mask;
use super::Proof;
use crate::error::Error;
use crate::runs::build::Built;
use crate::world::SENDER;

type Result<T> = std::result::Result<T, Error>;

/// Result sent by a walk: a task's index among the requested ones, and its leaves.
type Made = Result<(usize, Leaves)>;

pub(super) struct Walk<'a> {
    proof: &'a Proof<'a>,
    end: Time,
    /// Numbers of the requested tasks, in order, and a function that claims one by its index.
    wanted: &'a [usize],
    take: &'a dyn Fn(usize) -> bool,
    pub(super) send: Option<&'a Sender<Made>>,
    /// Number of tasks encountered so far.
    pub(super) tasks: usize,
    leaves: Leaves,
    steps: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        proof: &'a Proof<'a>,
        wanted: &'a [usize],
        take: &'a dyn Fn(usize) -> bool,
    ) -> Walk<'a> {
        let end = Time(proof.scenario.duration_ns);
        Walk { proof, end, wanted, take, send: None, tasks: 0, leaves: Leaves::default(), steps: 0 }
    }

    /// Visit every task below the first `split` questions.
    pub(super) fn all(&mut self, split: u32) -> Result<()> {
        match self.proof.shared {
            true => {
                let root = Box::new(self.proof.root(0)?);
                self.top(root, split)
            }
            false => self.one_by_one(split),
        }
    }

    /// Count the next task. Return its index among the requested ones if this walk has to run it.
    fn meet(&mut self) -> Option<usize> {
        let place = self.wanted.binary_search(&self.tasks).ok();
        self.tasks += 1;
        place.filter(|&at| (self.take)(at))
    }

    fn done(&mut self, at: usize) {
        let leaves = std::mem::take(&mut self.leaves);
        if let Some(send) = self.send {
            send.send(Ok((at, leaves))).ok();
        }
    }

    /// Walk from a world above the tasks. It becomes a task once the first `split` questions are answered or no
    /// choice is left.
    fn top(&mut self, mut world: Box<Built>, split: u32) -> Result<()> {
        let decided = world.world.adversary().asked();
        if decided < split.min(self.last(&mut world)) {
            match self.forks(world, &mut |walk, child| walk.top(child, split))? {
                Some(ended) => world = ended,
                None => return Ok(()),
            }
        }
        if let Some(at) = self.meet() {
            self.below(world)?;
            self.done(at);
        }
        Ok(())
    }

    /// Collect all leaves below a world.
    fn below(&mut self, mut world: Box<Built>) -> Result<()> {
        self.check_stop()?;
        let decided = world.world.adversary().asked();
        let leaf = match decided < self.last(&mut world) {
            false => self.finish(world),
            true => match self.forks(world, &mut |walk, child| walk.below(child))? {
                Some(ended) => self.leaf_of(ended),
                None => return Ok(()),
            },
        };
        self.leaves.push(leaf);
        Ok(())
    }

    /// Number of the first question at which no choice is left.
    fn last(&self, world: &mut Built) -> u32 {
        let rules = &self.proof.rules;
        let answers = world.world.adversary().answers();
        match rules.burst {
            Some(_) if answers != 0 => 0,
            None if answers.count_ones() >= rules.most => 0,
            _ => rules.first,
        }
    }

    /// Run a world to its next questions, and pass a copy to `each` for each combination of answers, in order. Return
    /// the world if it ends without another question.
    fn forks(
        &mut self,
        mut world: Box<Built>,
        each: &mut dyn FnMut(&mut Self, Box<Built>) -> Result<()>,
    ) -> Result<Option<Box<Built>>> {
        let rules = &self.proof.rules;
        let mut before = another(&world)?;
        let decided = world.world.adversary().asked();
        let events = self.run(&mut world, decided);
        let adversary = world.world.adversary();
        let (asked, whom) = (adversary.asked(), adversary.whom());
        if asked == decided {
            before.world.give_back();
            return Ok(Some(world));
        }
        before.world.run(&mut before.app, self.end, events - 1);
        let mut answers = Some(rules.continued(world.world.adversary().answers(), decided));
        let mut child = Some(world);
        let mut before = Some(before);
        while let Some(these) = answers {
            answers = rules.next(these, decided, asked);
            let next = match answers {
                None => None,
                Some(next) => {
                    // the last combination needs no further copy
                    let is_last = rules.next(next, decided, asked).is_none();
                    let copy =
                        if is_last { before.take() } else { before.as_deref().map(another).transpose()? };
                    copy.map(|copy| (copy, next))
                }
            };
            if let Some(child) = child.take() {
                each(self, child)?;
            }
            if let Some((mut copy, next)) = next {
                copy.world.adversary().answer(next);
                copy.world.run(&mut copy.app, self.end, 1);
                let adversary = copy.world.adversary();
                if (adversary.asked(), adversary.whom()) != (asked, whom) {
                    return Err(Error::Own(DEPENDS.to_string()));
                }
                child = Some(copy);
            }
        }
        if let Some(unused) = before {
            unused.world.give_back();
        }
        Ok(None)
    }

    /// Run a world until another question is asked, or to the end of its leaf. Return the number of events.
    fn run(&self, built: &mut Built, asked: u32) -> u32 {
        let stops = self.proof.stops;
        let Built { world, app, .. } = built;
        world.run_while(app, self.end, |world, app| {
            let over = stops && app.flows[0].completed != Time::NEVER;
            !over && world.adversary().asked() == asked
        })
    }

    /// Run a world to its end and return its leaf.
    pub(super) fn finish(&mut self, mut built: Box<Built>) -> Leaf {
        let stops = self.proof.stops;
        let Built { world, app, .. } = &mut *built;
        if !stops || app.flows[0].completed == Time::NEVER {
            world.run_while(app, self.end, |_, app| !(stops && app.flows[0].completed != Time::NEVER));
        }
        self.leaf_of(built)
    }

    /// Return the leaf at the end of a world.
    fn leaf_of(&mut self, mut built: Box<Built>) -> Leaf {
        let Built { world, app, .. } = &mut *built;
        let flow = &app.flows[0];
        let open = flow.open.iter().filter_map(|&(conn, _)| world.transport(conn, SENDER).tcp());
        let timeouts: u32 = open.map(|tcp| tcp.stats().rtos).sum();
        let adversary = world.adversary();
        let asked = adversary.asked();
        let answers = adversary.answers() & mask(asked);
        let rules = &self.proof.rules;
        if rules.is_limited() && answers.count_ones() == rules.most {
            // a yes to any question after the last yes would exceed the limit
            let from = 128 - answers.leading_zeros();
            for (question, &at) in (0..rules.first).zip(adversary.times()).skip(from as usize) {
                self.leaves.cut(question, at, flow.start);
            }
        }
        let leaf = Leaf {
            answers,
            asked,
            took: (flow.completed != Time::NEVER).then(|| flow.completed.0 - flow.start.0),
            timeouts: timeouts + flow.sums().rtos as u32,
            retransmissions: flow.retransmissions(world) as u32,
            queue_lost: world.dropped_by_queues() > 0,
            digest: world.digest(),
        };
        built.world.give_back();
        leaf
    }

    /// Run each leaf of the tasks from the beginning.
    fn one_by_one(&mut self, split: u32) -> Result<()> {
        let rules = self.proof.rules;
        let (mut answers, mut top, mut task) = (0, None, None);
        loop {
            self.check_stop()?;
            let built = self.proof.root(answers)?;
            let leaf = self.finish(Box::new(built));
            let above = split.min(leaf.asked).min(rules.first);
            let of = (leaf.answers & mask(above), above);
            if top != Some(of) {
                self.finish_task(&mut task);
                top = Some(of);
                let cuts = std::mem::take(&mut self.leaves.cuts);
                task = self.meet();
                self.leaves = Leaves { cuts, ..Leaves::default() };
            }
            if task.is_some() {
                self.leaves.push(leaf);
            }
            let within = if task.is_some() { leaf.asked } else { above };
            match rules.next(leaf.answers, 0, within) {
                Some(next) => answers = next,
                None => {
                    self.finish_task(&mut task);
                    return Ok(());
                }
            }
        }
    }

    fn finish_task(&mut self, task: &mut Option<usize>) {
        match task.take() {
            Some(at) => self.done(at),
            None => self.leaves = Leaves::default(),
        }
    }

    fn check_stop(&mut self) -> Result<()> {
        self.steps += 1;
        match self.steps.is_multiple_of(64) && (self.proof.stop)() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}

/// Copy a world. The copy is boxed because it is passed on often.
fn another(of: &Built) -> Result<Box<Built>> {
    of.copied().map(Box::new).map_err(Error::Own)
}

const DEPENDS: &str = "what an event asked the adversary depended on its answers to the same event";
