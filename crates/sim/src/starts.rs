//! How many flows a group has, and when each starts.

use ackclock_core::{Distribution, Span, Stream, Time};

use crate::error::Error;
use crate::spec::{FlowGroup, Workload};

/// Flows of a group: a population has one for each client.
pub fn members(group: &FlowGroup) -> u64 {
    match &group.workload {
        Workload::Population { clients, .. } => group.count as u64 * *clients as u64,
        _ => group.count as u64,
    }
}

/// Starts of the flows of a group, one after another; what the k-th draws depends on the seed, the group and k alone.
pub struct Starts {
    next: Time,
    stagger: Span,
    drawn: Option<(Distribution, Stream)>,
}

impl Starts {
    /// From the group with number `g`.
    pub fn new(group: &FlowGroup, g: usize, seed: u64) -> Result<Starts, Error> {
        let drawn = group.stagger_s.as_ref().map(Distribution::from);
        if let Some(unfit) = drawn.as_ref().filter(|d| !d.is_drawable()) {
            let allowed = "finite times that are not negative";
            return Err(Error::value(
                format_args!("flows[{g}].stagger_s"),
                format_args!("{unfit:?}"),
                allowed,
            ));
        }
        let stream = |d| (d, Stream::new(seed, &format!("flows.{g}.starts")));
        Ok(Starts { next: Time(group.start_ns), stagger: Span(group.stagger_ns), drawn: drawn.map(stream) })
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
