//! Results of a proof's cases.

use ackclock_core::{Digest, Time};

/// One case: a sequence of answers and its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leaf {
    /// The answers, one bit per question.
    pub answers: u128,
    /// Number of questions asked.
    pub asked: u32,
    /// Completion time of the first flow since its start, ns; `None` if it did not complete.
    pub took: Option<u64>,
    /// Timeouts of the first flow's sender.
    pub timeouts: u32,
    /// Data retransmissions of the first flow's sender.
    pub retransmissions: u32,
    /// Whether a queue dropped packets.
    pub queue_lost: bool,
    /// Digest of all packets that reached a host.
    pub digest: Digest,
}

/// Cases omitted because they exceed the maximum number of yes answers, by the question at which the limit would be
/// exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cut {
    /// Number of cases omitted at this question.
    pub count: u64,
    /// Time of the question since the start of the flow, summed over these cases, ns. Each omitted case's
    /// completion time is at least the time of its question.
    pub since_ns: u128,
}

/// Leaves of a task, in order of their answers.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    /// The leaves, in order.
    pub all: Vec<Leaf>,
    /// Digest over all leaves' digests.
    pub digest: Digest,
    /// Cases omitted, by question.
    pub cuts: Vec<Cut>,
}

impl Leaves {
    /// Append a leaf.
    pub fn push(&mut self, leaf: Leaf) {
        self.digest.fold(leaf.digest.word());
        self.all.push(leaf);
    }

    /// Count an omitted case: a yes to `question`, asked at `since`, would exceed the limit.
    pub(super) fn cut(&mut self, question: u32, since: Time, start: Time) {
        let at = question as usize;
        if self.cuts.len() <= at {
            self.cuts.resize(at + 1, Cut::default());
        }
        self.cuts[at].count += 1;
        self.cuts[at].since_ns += u128::from(since.0.saturating_sub(start.0));
    }
}
