//! Rules on several keys of a table. They are defined beside the table (`rules` in [`table!`](crate::table)) and
//! checked once the table has been read. Error messages use the scenario's notation: values are shown as written by
//! their author, if known.

use std::fmt;

use crate::{words, Described, Refusal, Table, Value, Written as Text};

/// Position of a value in a scenario, and the author's text at this position.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    part: Part<'a>,
    written: Written<'a>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Whole,
    Key(&'a str),
    Entry(usize),
}

/// The author's text at a position.
#[derive(Clone, Copy)]
enum Written<'a> {
    /// Unknown, because the scenario was already compiled.
    Unknown,
    /// Absent, so that a default applies.
    Nothing,
    /// The text as written.
    As(&'a Text),
}

impl<'a> Place<'a> {
    /// Create the position of the whole scenario, with the author's text if known.
    pub fn whole(written: Option<&'a Text>) -> Place<'a> {
        Place { outer: None, part: Part::Whole, written: written.map_or(Written::Unknown, Written::As) }
    }

    /// Return the position of the key `name` in the table at this position.
    pub fn key(&'a self, name: &'a str) -> Place<'a> {
        Place { outer: Some(self), part: Part::Key(name), written: self.below(|value| value.get(name)) }
    }

    /// Return the position of an entry of the list at this position.
    pub fn at(&'a self, index: usize) -> Place<'a> {
        let entry = |value: &'a Text| match value {
            Text::List(entries) => entries.get(index),
            _ => None,
        };
        Place { outer: Some(self), part: Part::Entry(index), written: self.below(entry) }
    }

    fn below(&self, find: impl Fn(&'a Text) -> Option<&'a Text>) -> Written<'a> {
        match self.written {
            Written::As(value) => find(value).map_or(Written::Nothing, Written::As),
            other => other,
        }
    }

    /// Whether the author set this key in the table at this position; `None` if unknown.
    pub fn given(&self, key: &str) -> Option<bool> {
        match self.below(|value| value.get(key)) {
            Written::Unknown => None,
            Written::Nothing => Some(false),
            Written::As(_) => Some(true),
        }
    }

    /// Return the author's text under a dotted key of the table at this position.
    fn written(&self, key: &str) -> Option<&'a Text> {
        let Written::As(mut value) = self.written else { return None };
        for part in key.split('.') {
            value = match (value, part.parse::<usize>()) {
                (Text::List(entries), Ok(index)) => entries.get(index)?,
                _ => value.get(part)?,
            };
        }
        Some(value)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outer) = self.outer {
            outer.fmt(f)?;
            if !matches!(outer.part, Part::Whole) {
                f.write_str(".")?;
            }
        }
        match self.part {
            Part::Whole => Ok(()),
            Part::Key(name) => f.write_str(name),
            Part::Entry(index) => write!(f, "{index}"),
        }
    }
}

/// State of checking a table's rules.
pub struct Rules<'a> {
    place: &'a Place<'a>,
    table: &'static Table,
    held: &'a dyn Fn() -> Value,
    broken: &'a mut Vec<Refusal>,
}

impl<'a> Rules<'a> {
    /// Create the state for the table at `place` with the values `held`.
    pub fn new(
        place: &'a Place<'a>,
        table: &'static Table,
        held: &'a dyn Fn() -> Value,
        broken: &'a mut Vec<Refusal>,
    ) -> Rules<'a> {
        Rules { place, table, held, broken }
    }

    /// Reject the value of `key` (dotted if nested) as written by the author.
    pub fn refuse(&mut self, key: &str, allowed: impl fmt::Display) {
        let found = self.shown(key);
        self.refuse_as(key, found, allowed);
    }

    /// Reject the value of `key` with a description of what was found. An empty key refers to the table itself.
    pub fn refuse_as(&mut self, key: &str, found: impl fmt::Display, allowed: impl fmt::Display) {
        let mut refusal = Refusal::new(found, allowed);
        if !key.is_empty() {
            refusal = refusal.within(key);
        }
        let place = self.place.to_string();
        self.broken.push(if place.is_empty() { refusal } else { refusal.within(place) });
    }

    /// Return the value of `key` as written by its author, otherwise in the engine's notation.
    pub fn shown(&self, key: &str) -> String {
        match self.place.written(key) {
            Some(value) => words::quote(value),
            None => words::held(self.table, &(self.held)(), key),
        }
    }

    /// Return the value of `key` as written by its author, otherwise `text`.
    pub fn shown_or(&self, key: &str, text: impl FnOnce() -> String) -> String {
        self.place.written(key).map_or_else(text, words::quote)
    }

    /// Whether the author set a key; `None` if unknown.
    pub fn given(&self, key: &str) -> Option<bool> {
        self.place.given(key)
    }

    /// Return the author's text under this key, if any.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.place.written(key).and_then(Text::text)
    }
}

/// A table that is compiled under its own key, although a scenario lists its keys in the enclosing table.
#[derive(Clone, Debug, PartialEq)]
pub struct Inline<T>(pub T);

impl<T: Described> Described for Inline<T> {
    fn read(value: &Value) -> Result<Inline<T>, Refusal> {
        T::read(value).map(Inline)
    }
    fn write(&self) -> Value {
        self.0.write()
    }
    fn judge(&self, place: &Place, broken: &mut Vec<Refusal>) {
        self.0.judge(place.outer.unwrap_or(place), broken);
    }
}
