//! Result of playing a script.

use ackclock_core::Span;

/// The answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Packets and calls were as in the script; its code blocks are still to be evaluated.
    Pass,
    /// A difference; only the first one is reported.
    Fail {
        /// Line of the script.
        line: u32,
        /// Packet or result that the script expects.
        expected: String,
        /// Received packet or result.
        actual: String,
    },
    /// A script that could not be played to its end.
    Unsupported {
        /// Line of the script; 0 = the command line.
        line: u32,
        /// The construct.
        what: String,
    },
}

/// A code block, and the socket's state at its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Line of the script.
    pub line: u32,
    /// The block.
    pub text: String,
    /// `tcpi_*` in the kernel's units.
    pub names: Vec<(&'static str, i64)>,
}

/// A script that was played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The answer.
    pub verdict: Verdict,
    /// Code blocks up to the end, in order.
    pub blocks: Vec<Snapshot>,
    /// Largest deviation of an expected packet from its time, within the tolerance.
    pub deviation: Span,
    /// Packets in both directions, a line each.
    pub trace: Vec<String>,
}
