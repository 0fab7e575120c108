//! Errors in a script, and their positions.

use std::fmt;

/// Position in a script. Lines and columns are 1-based; columns count characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Pos {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Reason why a script cannot be played.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The text does not follow the grammar.
    #[error("{at}: found {found}; expected: {expected}")]
    Syntax {
        /// Position.
        at: Pos,
        /// Text found.
        found: String,
        /// Text expected.
        expected: String,
    },
    /// The syntax is correct, but a value is not allowed.
    #[error("{at}: {what}: found {found}; allowed: {allowed}")]
    Value {
        /// Position.
        at: Pos,
        /// Name of the value.
        what: String,
        /// Value found in the script.
        found: String,
        /// Values allowed.
        allowed: String,
    },
    /// The construct exists in the language or in a dialect, but ackclock does not support it. This is neither a pass
    /// nor a failure.
    #[error("{at}: unsupported: {what}")]
    Unsupported {
        /// Position.
        at: Pos,
        /// Name of the construct.
        what: String,
    },
    /// The script exceeds [`crate::Limits`].
    #[error("{at}: {what}: more than the limit of {limit}")]
    Limit {
        /// Position.
        at: Pos,
        /// Kind of item whose number exceeds the limit.
        what: &'static str,
        /// Maximum number of items.
        limit: u64,
    },
    /// The file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// File path.
        path: String,
        /// Operating system's message.
        why: String,
    },
}

impl Error {
    /// Position in the script; `None` for files that cannot be read.
    pub fn at(&self) -> Pos {
        match self {
            Error::Syntax { at, .. }
            | Error::Value { at, .. }
            | Error::Unsupported { at, .. }
            | Error::Limit { at, .. } => *at,
            Error::File { .. } => Pos::default(),
        }
    }

    /// Whether the script is well formed as far as it has been read, but uses a feature that ackclock lacks.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Unsupported { .. })
    }

    pub(crate) fn syntax(at: Pos, found: impl fmt::Display, expected: impl fmt::Display) -> Error {
        Error::Syntax { at, found: found.to_string(), expected: expected.to_string() }
    }

    pub(crate) fn value(at: Pos, what: &str, found: impl fmt::Display, allowed: impl fmt::Display) -> Error {
        let found = shorten(&found.to_string());
        Error::Value { at, what: shorten(what), found, allowed: allowed.to_string() }
    }

    pub(crate) fn unsupported(at: Pos, what: impl fmt::Display) -> Error {
        Error::Unsupported { at, what: shorten(&what.to_string()) }
    }
}

/// Shorten a script's text for a message: one line without control characters.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    let mut short = String::new();
    let mut length = 0;
    for c in text.chars() {
        let shown = shown(c);
        length += shown.len();
        if length > MOST {
            short.push_str("...");
            break;
        }
        short.extend(shown);
    }
    short
}

fn shown(c: char) -> Vec<char> {
    // Includes characters that change the writing direction, so that a terminal shows the actual content of the file.
    let hidden = c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if hidden {
        c.escape_unicode().collect()
    } else {
        vec![c]
    }
}
