//! A scenario as its author wrote it: quantities are texts with their unit.

/// A value in its written form.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Written {
    /// Python's `None`; TOML has no counterpart.
    Nothing,
    Flag(bool),
    Whole(i64),
    /// A whole number of more than 64 bits, in digits.
    Huge(String),
    Number(f64),
    Text(String),
    /// A date, or a time.
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

    /// The text; `None` if the value is no text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Written::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a number, or a text that is nothing but one.
    pub fn is_number(&self) -> bool {
        match self {
            Written::Whole(_) | Written::Huge(_) | Written::Number(_) => true,
            Written::Text(text) => crate::quantity::is_bare(text),
            _ => false,
        }
    }
}
