//! Start times of a group's flows.

use ackclock_core::{Distribution, Span, Stream, Time};

use crate::scenario::spec::FlowGroup;

/// Start times of a group's flows, in order. Each flow starts at its own offset from the staggered time. The
/// values drawn for the k-th flow depend only on the seed, the group and k. If offsets are drawn, flows need not
/// start in the order of their numbers.
pub struct Starts {
    next: Time,
    stagger: Span,
    between: Option<Drawn>,
    offset: Option<Drawn>,
}

impl Starts {
    /// Return the start times for group number `g`.
    pub fn new(group: &FlowGroup, g: usize, seed: u64) -> Starts {
        let drawn = |from: &Option<Distribution>, what| {
            let stream = || Stream::new(seed, &format!("flows.{g}.{what}"));
            from.as_ref().map(|from| Drawn { from: from.clone(), stream: stream() })
        };
        Starts {
            next: Time(group.start_ns),
            stagger: Span(group.stagger_ns),
            between: drawn(&group.stagger_s, "starts"),
            offset: drawn(&group.start_s, "offsets"),
        }
    }

    /// Start time of the next flow.
    pub fn following(&mut self) -> Time {
        let base = self.next;
        self.next = base + self.between.as_mut().map_or(self.stagger, Drawn::next);
        base + self.offset.as_mut().map_or(Span::ZERO, Drawn::next)
    }
}

struct Drawn {
    from: Distribution,
    stream: Stream,
}

impl Drawn {
    fn next(&mut self) -> Span {
        Span((self.from.draw(&mut self.stream) * 1e9).min(FARTHEST_NS) as u64)
    }
}

/// Upper bound for drawn times, beyond the end of any run.
const FARTHEST_NS: f64 = 4e15;
