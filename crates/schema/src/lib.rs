//! Single description of every mechanism. A table of a scenario (the parameters of a queue, a loss model, a workload,
//! ...) is a struct beside its mechanism, defined by [`table!`](crate::table). The struct defines the name,
//! description, permitted values and default of each key in one place. The engine uses it to read scenarios;
//! Python derives its classes, messages and reference from it. A `kind` selects among the tables of a
//! [`family!`](crate::family); a key with a fixed set of names is a [`choice!`](crate::choice).

mod draws;
mod exact;
pub mod front;
mod leaves;
mod macros;
mod multiple;
pub mod nat;
pub mod quantity;
pub mod rule;
mod shown;
mod takes;
#[cfg(feature = "toml")]
pub mod toml;
pub mod words;
mod written;

use std::fmt;
use std::sync::Arc;

pub use rule::{Inline, Place, Rules};
pub use takes::*;
pub use written::Written;

/// A value of a scenario, in base units: ns, bit/s, bytes, packets.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value {
    Flag(bool),
    Whole(u64),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
    /// Whole numbers, one for each millisecond of a trace.
    Counts(Arc<[u32]>),
    /// Index of a multiple of the bandwidth-delay product, while that product is unknown (`front`).
    Pending(usize),
}

impl Value {
    /// Create a table of these entries.
    pub fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::Table(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }

    /// Create a number, stored as a whole number if possible.
    pub fn number(x: f64) -> Value {
        match (0.0..9e15).contains(&x) && libm::floor(x) == x {
            true => Value::Whole(x as u64),
            false => Value::Number(x),
        }
    }

    /// Return a mutable reference to the entry `key`, if this is a table that contains it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Value::Table(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Set an entry of a table: replace its value, or append it.
    pub fn set(&mut self, key: &str, value: Value) {
        match (self.get_mut(key), &value) {
            (Some(held), _) => *held = value,
            (None, _) => {
                if let Value::Table(entries) = self {
                    entries.push((key.to_string(), value));
                }
            }
        }
    }

    /// Remove an entry of a table, if it exists.
    pub fn remove(&mut self, key: &str) {
        if let Value::Table(entries) = self {
            entries.retain(|(name, _)| name != key);
        }
    }

    /// Return the entry `key`, if this is a table that contains it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => write!(f, "{on}"),
            Value::Whole(n) => write!(f, "{n}"),
            Value::Number(x) => write!(f, "{x}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::List(entries) => write!(f, "a list of {}", entries.len()),
            Value::Table(_) => f.write_str("a table"),
            Value::Counts(counts) => write!(f, "a list of {}", counts.len()),
            Value::Pending(_) => f.write_str("a multiple of the bandwidth-delay product"),
        }
    }
}

/// Description of a rejected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Dotted key, relative to the table being read.
    pub key: String,
    /// Value found.
    pub found: String,
    /// Values allowed.
    pub allowed: String,
}

impl Refusal {
    /// Create a refusal that concerns the value itself.
    pub fn new(found: impl fmt::Display, allowed: impl fmt::Display) -> Refusal {
        Refusal { key: String::new(), found: found.to_string(), allowed: allowed.to_string() }
    }

    /// Return this refusal with `key` prepended to its dotted key.
    pub fn within(mut self, key: impl fmt::Display) -> Refusal {
        self.key = if self.key.is_empty() { key.to_string() } else { format!("{key}.{}", self.key) };
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}; allowed: {}", self.key, self.found, self.allowed)
    }
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in a scenario; empty if another key is compiled to this one.
    pub name: &'static str,
    /// Name after compilation.
    pub compiled: &'static str,
    /// Description.
    pub about: &'static str,
    /// Permitted values.
    pub takes: Takes,
    /// Default, or whether the key is required.
    pub absent: fn() -> Absent,
}

impl Key {
    /// Whether the key may be absent without a default.
    fn is_optional(&self) -> bool {
        (self.absent)() == Absent::Nothing && !matches!(self.takes, Takes::Options)
    }

    /// Return the key under which a value is compiled.
    fn place_of(&self, value: &Value) -> &'static str {
        match (self.takes, value) {
            (Takes::DurationOr(drawn), Value::Table(_)) => drawn,
            _ => self.compiled,
        }
    }
}

/// Default value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Absent {
    /// The key is required.
    Required,
    /// No default; the key's description states the effect.
    Nothing,
    /// A default value.
    Is(Value),
}

/// A table of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// `kind` of the table within its family, or its name if it has no family.
    pub kind: &'static str,
    /// Description of the table; lists show its first line.
    pub about: &'static str,
    /// The table's keys.
    pub keys: &'static [Key],
    /// Keys that users mistakenly expect here, and the key to use instead.
    pub elsewhere: &'static [(&'static [&'static str], &'static str)],
}

impl Table {
    /// Create a table without `elsewhere`.
    pub const fn new(kind: &'static str, about: &'static str, keys: &'static [Key]) -> Table {
        Table { kind, about, keys, elsewhere: &[] }
    }

    /// Return the keys permitted in a scenario, including those of an inline table.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        let own = |key: &'static Key| match key.takes {
            Takes::Inline(table) => table.keys,
            _ => std::slice::from_ref(key),
        };
        self.keys.iter().flat_map(own).filter(|key| !key.name.is_empty())
    }

    /// Return the key of the inline table that contains this key, if there is one.
    fn inline(&self, key: &Key) -> Option<&'static str> {
        let holds = |held: &&Key| match held.takes {
            Takes::Inline(table) => table.keys.iter().any(|one| std::ptr::eq(one, key)),
            _ => false,
        };
        self.keys.iter().find(holds).map(|held| held.compiled)
    }

    /// Collect the tables contained in this one, recursively and each once, except those selected by a `kind`.
    pub fn note(&'static self, found: &mut Vec<&'static Table>) {
        fn held(takes: &Takes) -> Option<&'static Table> {
            match takes {
                Takes::Table(table) => Some(table),
                Takes::List(of, _) | Takes::ListOr(of, _) => held(of),
                _ => None,
            }
        }
        for table in self.keys().filter_map(|key| held(&key.takes)) {
            if !found.iter().any(|known| std::ptr::eq(*known, table) || known.kind == table.kind) {
                found.push(table);
                table.note(found);
            }
        }
    }

    /// Return the line shown in lists.
    pub fn line(&self) -> &'static str {
        self.about.trim_start().lines().next().unwrap_or("").trim().trim_end_matches('.')
    }

    /// Return the description for Python.
    pub fn described(&self) -> Value {
        let text = |text: &str| Value::Text(text.to_string());
        let keys = self.keys().map(|key| {
            let mut entries = vec![
                ("name".to_string(), text(key.name)),
                ("about".to_string(), text(&joined(key.about))),
                ("takes".to_string(), key.takes.described()),
                ("required".to_string(), Value::Flag((key.absent)() == Absent::Required)),
            ];
            if let Absent::Is(value) = (key.absent)() {
                entries.push(("absent".to_string(), key.takes.shown(&value)));
            }
            Value::Table(entries)
        });
        let keys = Value::List(keys.collect());
        Value::table([("kind", text(self.kind)), ("about", text(&joined(self.about))), ("keys", keys)])
    }
}

/// Convert a doc comment to text: the lines of a paragraph are joined, and paragraphs are kept separate.
fn joined(about: &str) -> String {
    let paragraphs = about.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Tables among which a `kind` selects.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Registry name.
    pub name: &'static str,
    /// The family's tables.
    pub tables: &'static [&'static Table],
}

impl Family {
    /// Return the name and one-line description of each table.
    pub fn registry(&self) -> Vec<(&'static str, &'static str)> {
        self.tables.iter().map(|table| (table.kind, table.line())).collect()
    }

    /// Return the description for Python.
    pub fn described(&self) -> Value {
        Value::List(self.tables.iter().map(|table| table.described()).collect())
    }
}

/// A type of values in a scenario.
pub trait Described: Sized {
    /// Read a value from its compiled form.
    fn read(value: &Value) -> Result<Self, Refusal>;
    /// Return the value in its compiled form.
    fn write(&self) -> Value;
    /// Return the default of the type, used if a key does not specify one; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }
    /// Check the rules on several keys and add each violation to `broken`.
    fn judge(&self, _place: &Place, _broken: &mut Vec<Refusal>) {}
}

/// Reader of a table's entries.
pub struct Reader<'a>(&'a Value, &'static Table);

impl<'a> Reader<'a> {
    /// Create a reader of `value`, which must be a table with known keys.
    pub fn new(value: &'a Value, table: &'static Table) -> Result<Reader<'a>, Refusal> {
        let Value::Table(entries) = value else { return Err(Refusal::new(value, "a table")) };
        for (key, _) in entries {
            if key != "kind" && !table.keys.iter().any(|known| known.compiled == key) {
                let names: Vec<&str> = table.keys.iter().map(|known| known.compiled).collect();
                return Err(Refusal::new("an unknown key", names.join(", ")).within(key));
            }
        }
        Ok(Reader(value, table))
    }

    /// Read the value of the `index`-th key.
    pub fn key<T: Described>(&self, index: usize, default: impl Fn() -> Option<T>) -> Result<T, Refusal> {
        let key = &self.1.keys[index];
        let Some(value) = self.0.get(key.compiled) else {
            return default().ok_or_else(|| Refusal::new("nothing", "a value").within(key.compiled));
        };
        match key.takes.refuses(value) {
            Some(allowed) => Err(Refusal::new(value, allowed).within(key.compiled)),
            None => T::read(value).map_err(|refusal| refusal.within(key.compiled)),
        }
    }
}

/// Return the value of a table in which only the kind is set.
pub fn usual<T: Described>(kind: &str) -> T {
    let table = Value::table([("kind", Value::Text(kind.to_string()))]);
    T::read(&table).expect("invariant: a kind whose keys all have defaults")
}

/// Return the default of a key as passed to Python.
pub fn absent<T: Described>(default: Option<T>) -> Absent {
    absent_as(default.map(|value| value.write()))
}

fn absent_as(default: Option<Value>) -> Absent {
    match default {
        None => Absent::Required,
        Some(Value::Table(entries)) if entries.is_empty() => Absent::Nothing,
        Some(value) => Absent::Is(value),
    }
}

/// Queue limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets.
    Packets(u32),
    /// A number of bytes.
    Bytes(u64),
}

impl Described for Limit {
    fn read(value: &Value) -> Result<Limit, Refusal> {
        match (value.get("packets"), value.get("bytes")) {
            (Some(packets), None) => u32::read(packets).map(Limit::Packets),
            (None, Some(bytes)) => u64::read(bytes).map(Limit::Bytes),
            _ => Err(Refusal::new(value, "packets or bytes")),
        }
    }
    fn write(&self) -> Value {
        match *self {
            Limit::Packets(n) => Value::table([("packets", Value::Whole(n as u64))]),
            Limit::Bytes(n) => Value::table([("bytes", Value::Whole(n))]),
        }
    }
}
