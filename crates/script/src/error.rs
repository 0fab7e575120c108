//! Errors in a script, and their places.

use std::fmt;

/// A place in a script, counted from 1; columns count characters.
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

/// Why a script cannot be played.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The text is not of the language.
    #[error("{at}: found {found}; expected: {expected}")]
    Syntax {
        /// Position.
        at: Pos,
        /// Text found there.
        found: String,
        /// Text expected there.
        expected: String,
    },
    /// The words are right, their values are not.
    #[error("{at}: {what}: found {found}; allowed: {allowed}")]
    Value {
        /// Position.
        at: Pos,
        /// The value.
        what: String,
        /// Value found there.
        found: String,
        /// Values allowed there.
        allowed: String,
    },
    /// The language, or a dialect of it, has this; ackclock does not. Never to be taken for a pass or a failure.
    #[error("{at}: unsupported: {what}")]
    Unsupported {
        /// Position.
        at: Pos,
        /// The construct.
        what: String,
    },
    /// Larger than [`crate::Limits`] allow.
    #[error("{at}: {what}: more than the limit of {limit}")]
    Limit {
        /// Position.
        at: Pos,
        /// Items of which there are too many.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// The operating system's words.
        why: String,
    },
}

impl Error {
    /// Position in the script; files that cannot be read have none.
    pub fn at(&self) -> Pos {
        match self {
            Error::Syntax { at, .. }
            | Error::Value { at, .. }
            | Error::Unsupported { at, .. }
            | Error::Limit { at, .. } => *at,
            Error::File { .. } => Pos::default(),
        }
    }

    /// Whether the script is well formed as far as it was read, and uses a feature that ackclock lacks.
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

/// Text of a script for a message: one short line without control characters.
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
    // Includes the characters that change the direction of writing: a terminal must show the file's actual
    // content.
    let hidden = c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if hidden {
        c.escape_unicode().collect()
    } else {
        vec![c]
    }
}
