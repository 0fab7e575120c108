//! Mechanisms described once. A table of a scenario (the parameters of a queue, a loss model, a workload, ...) is a
//! struct beside its mechanism, made by [`table!`](crate::table): each key has its name, what it is, what it takes and
//! what holds if it is absent on one place. The engine reads scenarios by it, and Python makes its classes, messages
//! and reference of it. Tables between which a `kind` chooses are a [`family!`](crate::family), names an [`choice!`](crate::choice).

mod leaves;
mod macros;

use std::fmt;

use crate::Distribution;

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

    /// The entry `key`, if this is a table that has it.
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
        }
    }
}

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key, dotted, from the table that is read.
    pub key: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub allowed: String,
}

impl Refusal {
    /// A refusal of the value itself.
    pub fn new(found: impl fmt::Display, allowed: impl fmt::Display) -> Refusal {
        Refusal { key: String::new(), found: found.to_string(), allowed: allowed.to_string() }
    }

    /// The same, of a value under `key`.
    pub fn within(mut self, key: impl fmt::Display) -> Refusal {
        self.key = if self.key.is_empty() { key.to_string() } else { format!("{key}.{}", self.key) };
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, allowed: {}", self.key, self.found, self.allowed)
    }
}

/// What a key takes: its unit and its range.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// true or false.
    Flag,
    /// A whole number within bounds, both included.
    Whole(u64, u64),
    /// A number within bounds, both included.
    Number(f64, f64),
    /// A number above the first and up to the second.
    Above(f64, f64),
    /// A probability.
    Share,
    /// A length of time, ns; the least.
    Duration(u64),
    /// A rate, bit/s; the least.
    Rate(u64),
    /// Bytes within bounds, both included.
    Size(u64, u64),
    /// Whole packets.
    Packets,
    /// Whole packets, which a scenario may give as multiples of the bandwidth-delay product.
    PacketLimit,
    /// A mean number of packets, likewise.
    MeanPackets,
    /// Packets, bytes, or multiples of the bandwidth-delay product.
    Limit,
    /// Any text.
    Text,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A distribution of durations (drawn in s), rates (bit/s), sizes (bytes) or probabilities.
    Drawn(Unit),
    /// The same, or one value: always the same. The least, in the base unit of the scenario.
    DrawnOr(Unit, u64),
    /// A file with a Mahimahi trace, of which the engine is told the opportunities in each millisecond.
    Trace,
    /// Options of a controller, which knows them.
    Options,
    /// A table.
    Table(&'static Table),
    /// A table whose `kind` chooses among several.
    OneOf(&'static Family),
    /// A list of at least so many.
    List(&'static Takes, u64),
}

/// What a distribution is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    Duration,
    Rate,
    Size,
    Share,
}

/// true or false.
pub const FLAG: Takes = Takes::Flag;
/// A length of time that may be zero.
pub const DURATION_OR_ZERO: Takes = Takes::Duration(0);
/// A length of time.
pub const DURATION: Takes = Takes::Duration(1);
/// A rate.
pub const RATE: Takes = Takes::Rate(1);
/// A number of bytes.
pub const SIZE: Takes = Takes::Size(1, MOST_BYTES);
/// A number of bytes that may be zero.
pub const SIZE_OR_ZERO: Takes = Takes::Size(0, MOST_BYTES);
/// How many of something.
pub const COUNT: Takes = Takes::Whole(1, 1_000_000);
/// A number above zero.
pub const POSITIVE: Takes = Takes::Above(0.0, 1e6);
/// The greatest size that a scenario may ask for, bytes.
pub const MOST_BYTES: u64 = 1_000_000_000_000_000;
/// The greatest number of packets that a scenario may ask for.
pub const MOST_PACKETS: u64 = 1_000_000_000;

impl Takes {
    /// What is allowed, if a value is not. What has parts is checked as it is read.
    pub fn refuses(&self, value: &Value) -> Option<String> {
        let whole = |low: u64, high: u64, of: &str| match value {
            Value::Whole(n) if (low..=high).contains(n) => None,
            _ if high == u64::MAX => Some(format!("{of} of at least {low}")),
            _ => Some(format!("{of} from {low} to {high}")),
        };
        let number = |low: f64, high: f64| match value {
            Value::Number(x) => (low..=high).contains(x),
            Value::Whole(n) => (low..=high).contains(&(*n as f64)),
            _ => false,
        };
        let unless = |fits: bool, allowed: &str| (!fits).then(|| allowed.to_string());
        match *self {
            Takes::Flag => unless(matches!(value, Value::Flag(_)), "true, false"),
            Takes::Whole(low, high) => whole(low, high, "a whole number"),
            Takes::Number(low, high) => unless(number(low, high), &format!("a number from {low} to {high}")),
            Takes::Above(low, high) => {
                let fits = number(low, high) && *value != Value::Number(low);
                unless(
                    fits && (*value != Value::Whole(low as u64)),
                    &format!("a number above {low}, up to {high}"),
                )
            }
            Takes::Share => unless(number(0.0, 1.0), "a probability"),
            Takes::Duration(least) => whole(least, u64::MAX, "nanoseconds"),
            Takes::Rate(least) => whole(least, u64::MAX, "bit/s"),
            Takes::Size(low, high) => whole(low, high, "bytes"),
            Takes::Packets | Takes::PacketLimit => whole(1, MOST_PACKETS, "packets"),
            Takes::MeanPackets => unless(number(0.0, f64::MAX), "packets"),
            Takes::Text => unless(matches!(value, Value::Text(_)), "text"),
            Takes::Choice(names) => {
                let fits = matches!(value, Value::Text(text) if names.contains(&text.as_str()));
                unless(fits, &names.join(", "))
            }
            Takes::List(_, least) => match value {
                Value::List(entries) if entries.len() as u64 >= least => None,
                _ => Some(format!("a list of at least {least}")),
            },
            Takes::DrawnOr(_, least) => {
                let below = |x: &f64| *x < least as f64;
                let fits = match Distribution::read(value) {
                    Ok(Distribution::Constant { value }) => !below(&value),
                    Ok(Distribution::Choice { values }) => !values.iter().any(below),
                    _ => true,
                };
                unless(fits, &format!("values of at least {least}"))
            }
            Takes::Limit
            | Takes::Drawn(_)
            | Takes::Trace
            | Takes::Options
            | Takes::Table(_)
            | Takes::OneOf(_) => None,
        }
    }

    /// What is allowed.
    pub fn allowed(&self) -> String {
        self.refuses(&Value::Table(Vec::new())).unwrap_or_default()
    }

    /// As Python reads it: what it is, and its bounds.
    fn described(&self) -> Value {
        let of = |name: &str, more: Vec<(&str, Value)>| {
            let named = ("takes", Value::Text(name.to_string()));
            let entries = std::iter::once(named).chain(more);
            Value::Table(entries.map(|(key, value)| (key.to_string(), value)).collect())
        };
        let whole =
            |name, low, high| of(name, vec![("low", Value::Whole(low)), ("high", Value::Whole(high))]);
        let number =
            |name, low, high| of(name, vec![("low", Value::Number(low)), ("high", Value::Number(high))]);
        let unit = |unit: Unit| ("unit", Value::Text(format!("{unit:?}").to_lowercase()));
        match *self {
            Takes::Flag => of("flag", vec![]),
            Takes::Whole(low, high) => whole("whole", low, high),
            Takes::Number(low, high) => number("number", low, high),
            Takes::Above(low, high) => number("above", low, high),
            Takes::Share => of("share", vec![]),
            Takes::Duration(least) => of("duration", vec![("least", Value::Whole(least))]),
            Takes::Rate(least) => of("rate", vec![("least", Value::Whole(least))]),
            Takes::Size(low, high) => whole("size", low, high),
            Takes::Packets => of("packets", vec![]),
            Takes::PacketLimit => of("packet limit", vec![]),
            Takes::MeanPackets => of("mean packets", vec![]),
            Takes::Limit => of("limit", vec![]),
            Takes::Text => of("text", vec![]),
            Takes::Choice(names) => {
                let names = names.iter().map(|name| Value::Text(name.to_string()));
                of("choice", vec![("names", Value::List(names.collect()))])
            }
            Takes::Drawn(u) => of("drawn", vec![unit(u)]),
            Takes::DrawnOr(u, least) => of("drawn or", vec![unit(u), ("least", Value::Whole(least))]),
            Takes::Trace => of("trace", vec![]),
            Takes::Options => of("options", vec![]),
            Takes::Table(table) => of("table", vec![("table", table.described())]),
            Takes::OneOf(family) => of("one of", vec![("family", Value::Text(family.name.into()))]),
            Takes::List(inner, least) => {
                of("list", vec![("of", inner.described()), ("least", Value::Whole(least))])
            }
        }
    }
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What holds if it is absent.
    pub absent: fn() -> Absent,
}

/// What holds if a key is absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Absent {
    /// It must be given.
    Required,
    /// Nothing: the key's text says what that means.
    Nothing,
    /// This value.
    Is(Value),
}

/// A table of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its `kind` in its family, or its own name if it is in none.
    pub kind: &'static str,
    /// What it is; the first line is shown in lists.
    pub about: &'static str,
    /// What it holds.
    pub keys: &'static [Key],
}

impl Table {
    /// The one line that lists show.
    pub fn line(&self) -> &'static str {
        self.about.trim_start().lines().next().unwrap_or("").trim().trim_end_matches('.')
    }

    /// As Python reads it.
    pub fn described(&self) -> Value {
        let text = |text: &str| Value::Text(text.to_string());
        let keys = self.keys.iter().map(|key| {
            let mut entries = vec![
                ("name".to_string(), text(key.name)),
                ("about".to_string(), text(&joined(key.about))),
                ("takes".to_string(), key.takes.described()),
                ("required".to_string(), Value::Flag((key.absent)() == Absent::Required)),
            ];
            if let Absent::Is(value) = (key.absent)() {
                entries.push(("absent".to_string(), value));
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
    /// What the registry calls them.
    pub name: &'static str,
    /// The tables.
    pub tables: &'static [&'static Table],
}

impl Family {
    /// Name and one line for each.
    pub fn registry(&self) -> Vec<(&'static str, &'static str)> {
        self.tables.iter().map(|table| (table.kind, table.line())).collect()
    }

    /// As Python reads it.
    pub fn described(&self) -> Value {
        Value::List(self.tables.iter().map(|table| table.described()).collect())
    }
}

/// What a scenario can hold.
pub trait Described: Sized {
    /// From a scenario.
    fn read(value: &Value) -> Result<Self, Refusal>;
    /// As in a scenario.
    fn write(&self) -> Value;
    /// What holds if nothing is given and no default is written down; `None`: something must be.
    fn absent() -> Option<Self> {
        None
    }
}

/// The entries of a table, while it is read.
pub struct Reader<'a>(&'a Value, &'static Table);

impl<'a> Reader<'a> {
    /// Of `value`, which must be a table with known keys.
    pub fn new(value: &'a Value, table: &'static Table) -> Result<Reader<'a>, Refusal> {
        let Value::Table(entries) = value else { return Err(Refusal::new(value, "a table")) };
        for (key, _) in entries {
            if key != "kind" && !table.keys.iter().any(|known| known.name == key) {
                let names: Vec<&str> = table.keys.iter().map(|known| known.name).collect();
                return Err(Refusal::new("an unknown key", names.join(", ")).within(key));
            }
        }
        Ok(Reader(value, table))
    }

    /// The value of the `index`-th key.
    pub fn key<T: Described>(&self, index: usize, default: impl Fn() -> Option<T>) -> Result<T, Refusal> {
        let key = &self.1.keys[index];
        let Some(value) = self.0.get(key.name) else {
            return default().ok_or_else(|| Refusal::new("nothing", "a value").within(key.name));
        };
        match key.takes.refuses(value) {
            Some(allowed) => Err(Refusal::new(value, allowed).within(key.name)),
            None => T::read(value).map_err(|refusal| refusal.within(key.name)),
        }
    }
}

/// A table of which nothing but its kind is given.
pub fn usual<T: Described>(kind: &str) -> T {
    let table = Value::table([("kind", Value::Text(kind.to_string()))]);
    T::read(&table).expect("invariant: a kind whose keys all have defaults")
}

/// The default of a key, told to Python.
pub fn absent<T: Described>(default: Option<T>) -> Absent {
    match default.map(|value| value.write()) {
        None => Absent::Required,
        Some(Value::Table(entries)) if entries.is_empty() => Absent::Nothing,
        Some(value) => Absent::Is(value),
    }
}

/// Most that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// In packets.
    Packets(u32),
    /// In bytes.
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
