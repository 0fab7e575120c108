//! Result of playing a script.

use ackclock_core::Span;

/// Verdict on a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All packets and calls matched. Code blocks have not been evaluated yet.
    Pass,
    /// Difference from the script; only the first one is reported.
    Fail {
        /// Line of the script.
        line: u32,
        /// Packet or result in the script.
        expected: String,
        /// Actual packet or result.
        actual: String,
    },
    /// The script could not be played to its end.
    Unsupported {
        /// Line of the script; 0 = the command line.
        line: u32,
        /// Name of the construct.
        what: String,
    },
}

/// A code block, and the socket's state at that point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Line of the script.
    pub line: u32,
    /// Text of the block.
    pub text: String,
    /// `tcpi_*` values in the kernel's units.
    pub names: Vec<(&'static str, i64)>,
}

/// Result of playing a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Verdict.
    pub verdict: Verdict,
    /// Code blocks reached, in order.
    pub blocks: Vec<Snapshot>,
    /// Largest deviation of a matched packet from its scheduled time.
    pub deviation: Span,
    /// Packets in both directions, one line each.
    pub trace: Vec<String>,
}
