//! How many flows a group has, and when each starts.

use ackclock_core::{Distribution, Span, Stream, Time};

use crate::spec::FlowGroup;

/// Flows of a group: a population has one for each client.
pub fn members(group: &FlowGroup) -> u64 {
    group.count as u64 * group.workload.params().flows()
}

/// Starts of the flows of a group, one after another; what the k-th draws depends on the seed, the group and k alone.
pub struct Starts {
    next: Time,
    stagger: Span,
    drawn: Option<(Distribution, Stream)>,
}

impl Starts {
    /// From the group with number `g`.
    pub fn new(group: &FlowGroup, g: usize, seed: u64) -> Starts {
        let stream = |d: &Distribution| (d.clone(), Stream::new(seed, &format!("flows.{g}.starts")));
        let drawn = group.stagger_s.as_ref().map(stream);
        Starts { next: Time(group.start_ns), stagger: Span(group.stagger_ns), drawn }
    }

    /// The next flow's.
    pub fn following(&mut self) -> Time {
        let start = self.next;
        let stagger = match &mut self.drawn {
            None => self.stagger,
            Some((distribution, stream)) => Span((distribution.draw(stream) * 1e9).min(FARTHEST_NS) as u64),
        };
        self.next = start + stagger;
        start
    }
}

/// Longest time between two starts: beyond every run.
const FARTHEST_NS: f64 = 4e15;
