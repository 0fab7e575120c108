//! A scenario as written by its author: quantities are strings with units.

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Written {
    /// Python's `None`, which TOML lacks.
    Nothing,
    Flag(bool),
    Whole(i64),
    /// A whole number with more than 64 bits, as decimal digits.
    Huge(String),
    Number(f64),
    Text(String),
    /// A date or a time.
    Date(String),
    List(Vec<Written>),
    Table(Vec<(String, Written)>),
}

impl Written {
    /// Return the entry `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Written> {
        match self {
            Written::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Return the string; `None` for other values.
    pub fn text(&self) -> Option<&str> {
        match self {
            Written::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the value is a number, or a string that contains only a number.
    pub fn is_number(&self) -> bool {
        match self {
            Written::Whole(_) | Written::Huge(_) | Written::Number(_) => true,
            Written::Text(text) => crate::quantity::is_bare(text),
            _ => false,
        }
    }
}
