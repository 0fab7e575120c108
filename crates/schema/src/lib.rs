//! Mechanisms described once. A table of a scenario (the parameters of a queue, a loss model, a workload, ...) is a
//! struct beside its mechanism, made by [`table!`](crate::table): each key has its name, what it is, what it takes and
//! what holds if it is absent on one place. The engine reads scenarios by it, and Python makes its classes, messages
//! and reference of it. Tables between which a `kind` chooses are a [`family!`](crate::family), names an [`choice!`](crate::choice).

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
    /// A list of whole numbers, one for each millisecond of a trace.
    Counts(Arc<[u32]>),
    /// A multiple of the bandwidth-delay product, while that is not known yet (`front`).
    Pending(usize),
}

impl Value {
    /// A table of these entries.
    pub fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::Table(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }

    /// A number that may be whole.
    pub fn number(x: f64) -> Value {
        match (0.0..9e15).contains(&x) && libm::floor(x) == x {
            true => Value::Whole(x as u64),
            false => Value::Number(x),
        }
    }

    /// Return it for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Value::Table(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Give an entry of a table this value: in its place, or at the end.
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

    /// Return the entry `key`, if this is a table that has it.
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

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key, dotted, from the table that is read.
    pub key: String,
    /// Value that was found.
    pub found: String,
    /// Values that are allowed.
    pub allowed: String,
}

impl Refusal {
    /// A refusal of the value itself.
    pub fn new(found: impl fmt::Display, allowed: impl fmt::Display) -> Refusal {
        Refusal { key: String::new(), found: found.to_string(), allowed: allowed.to_string() }
    }

    /// This refusal, of a value under `key`.
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
    /// Name in a scenario; empty if another key is compiled to this one as well.
    pub name: &'static str,
    /// Name after compilation.
    pub compiled: &'static str,
    /// Description.
    pub about: &'static str,
    /// Values of the key.
    pub takes: Takes,
    /// Value of an absent key.
    pub absent: fn() -> Absent,
}

impl Key {
    /// Whether it may be absent, and nothing holds then.
    fn is_optional(&self) -> bool {
        (self.absent)() == Absent::Nothing && !matches!(self.takes, Takes::Options)
    }

    /// The key under which a value is compiled.
    fn place_of(&self, value: &Value) -> &'static str {
        match (self.takes, value) {
            (Takes::DurationOr(drawn), Value::Table(_)) => drawn,
            _ => self.compiled,
        }
    }
}

/// Value of an absent key.
#[derive(Clone, Debug, PartialEq)]
pub enum Absent {
    /// The key must be given.
    Required,
    /// No default: the key's text describes the effect.
    Nothing,
    /// This value.
    Is(Value),
}

/// A table of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// `kind` of the table in its family, or its own name without a family.
    pub kind: &'static str,
    /// Description; lists show its first line.
    pub about: &'static str,
    /// Keys of the table.
    pub keys: &'static [Key],
    /// Keys that users look for here, and the key that serves instead.
    pub elsewhere: &'static [(&'static [&'static str], &'static str)],
}

impl Table {
    /// A table without further places for its keys.
    pub const fn new(kind: &'static str, about: &'static str, keys: &'static [Key]) -> Table {
        Table { kind, about, keys, elsewhere: &[] }
    }

    /// The keys that a scenario may have, those of an inline table among them.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        let own = |key: &'static Key| match key.takes {
            Takes::Inline(table) => table.keys,
            _ => std::slice::from_ref(key),
        };
        self.keys.iter().flat_map(own).filter(|key| !key.name.is_empty())
    }

    /// The key of the inline table that holds this key of a scenario, if one does.
    fn inline(&self, key: &Key) -> Option<&'static str> {
        let holds = |held: &&Key| match held.takes {
            Takes::Inline(table) => table.keys.iter().any(|one| std::ptr::eq(one, key)),
            _ => false,
        };
        self.keys.iter().find(holds).map(|held| held.compiled)
    }

    /// Note the tables that it holds, and those that they hold, each once; but for those that a `kind` chooses.
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

    /// Line that lists show.
    pub fn line(&self) -> &'static str {
        self.about.trim_start().lines().next().unwrap_or("").trim().trim_end_matches('.')
    }

    /// Description in Python's form.
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

/// Doc comments as text: lines of a paragraph joined, paragraphs apart.
fn joined(about: &str) -> String {
    let paragraphs = about.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Tables of which a `kind` chooses one.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name in the registry.
    pub name: &'static str,
    /// The tables.
    pub tables: &'static [&'static Table],
}

impl Family {
    /// Name and one line for each.
    pub fn registry(&self) -> Vec<(&'static str, &'static str)> {
        self.tables.iter().map(|table| (table.kind, table.line())).collect()
    }

    /// Description in Python's form.
    pub fn described(&self) -> Value {
        Value::List(self.tables.iter().map(|table| table.described()).collect())
    }
}

/// A type that a scenario can hold.
pub trait Described: Sized {
    /// Read a value of a scenario.
    fn read(value: &Value) -> Result<Self, Refusal>;
    /// Value in the form of a scenario.
    fn write(&self) -> Value;
    /// Value if none is given and no default is written down; `None`: a value must be given.
    fn absent() -> Option<Self> {
        None
    }
    /// Check it by the rules between several keys: each violation is added to `broken`.
    fn judge(&self, _place: &Place, _broken: &mut Vec<Refusal>) {}
}

/// The entries of a table, while it is read.
pub struct Reader<'a>(&'a Value, &'static Table);

impl<'a> Reader<'a> {
    /// A reader of `value`, which must be a table with known keys.
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

    /// The value of the `index`-th key.
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

/// Value of a table in which only the kind is given.
pub fn usual<T: Described>(kind: &str) -> T {
    let table = Value::table([("kind", Value::Text(kind.to_string()))]);
    T::read(&table).expect("invariant: a kind whose keys all have defaults")
}

/// The default of a key, for Python.
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

/// Most that waits.
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
