//! Results of the cases of a proof.

use ackclock_core::{Digest, Time};

/// One case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leaf {
    /// The answers.
    pub answers: u128,
    /// Number of questions asked.
    pub asked: u32,
    /// From the start of the first flow to its completion, ns; none: it did not complete.
    pub took: Option<u64>,
    /// Timeouts of the first flow's sender.
    pub timeouts: u32,
    /// Retransmissions of data by that sender.
    pub retransmissions: u32,
    /// Queues dropped packets.
    pub queue_lost: bool,
    /// Digest of all packets that reached a host.
    pub digest: Digest,
}

/// Cases that were left out because the adversary may say yes only a limited number of times, by the number of the question whose yes
/// would have been one too many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cut {
    /// How many such questions.
    pub count: u64,
    /// Time since the start of the flow, summed over the cases, ns: the minimum of such a case.
    pub since_ns: u128,
}

/// The leaves of a task, in order of their answers.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    /// All leaves, in order.
    pub all: Vec<Leaf>,
    /// Digest of all digests.
    pub digest: Digest,
    /// Cut for each question.
    pub cuts: Vec<Cut>,
}

impl Leaves {
    /// One more.
    pub fn push(&mut self, leaf: Leaf) {
        self.digest.fold(leaf.digest.word());
        self.all.push(leaf);
    }

    /// Note that a yes to the question at this time after the start of the flow would be one too many.
    pub(super) fn cut(&mut self, question: u32, since: Time, start: Time) {
        let at = question as usize;
        if self.cuts.len() <= at {
            self.cuts.resize(at + 1, Cut::default());
        }
        self.cuts[at].count += 1;
        self.cuts[at].since_ns += u128::from(since.0.saturating_sub(start.0));
    }
}
