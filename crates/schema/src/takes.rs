//! Types of values accepted by table keys: units, ranges, names.

use crate::{words, Described, Family, Table, Value, Written};

/// Type of a key's values: unit and range.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// A whole number within inclusive bounds.
    Whole(u64, u64),
    /// A number within inclusive bounds.
    Number(f64, f64),
    /// A number above the first bound and at most the second.
    Above(f64, f64),
    /// A probability.
    Share,
    /// A duration, ns, with its minimum.
    Duration(u64),
    /// A rate, bit/s, with its minimum.
    Rate(u64),
    /// A number of bytes within inclusive bounds.
    Size(u64, u64),
    /// A whole number of packets.
    Packets,
    /// A whole number of packets, which may be written as a multiple of the bandwidth-delay product.
    PacketLimit,
    /// A mean number of packets, which may be fractional and may be written as a multiple of the bandwidth-delay
    /// product.
    MeanPackets,
    /// A number of packets or bytes, or a multiple of the bandwidth-delay product.
    Limit,
    /// Any string.
    Text,
    /// Free text, with this maximum number of characters.
    Label(u64),
    /// A name from a registry.
    Named(&'static Registry),
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A distribution of durations (drawn in s), rates (bit/s), sizes (bytes) or probabilities.
    Drawn(Unit),
    /// A distribution as in `Drawn`, or a constant value, with its minimum in the scenario's base unit.
    DrawnOr(Unit, u64),
    /// A size, "2 x 1 kB" for several identical sizes, or a distribution of sizes. Several sizes are compiled to one
    /// with `times`.
    Writes,
    /// A duration that may be zero; or a distribution, compiled under this key, in s.
    DurationOr(&'static str),
    /// A value of a distribution, with a quantity defined by the containing key.
    Amount,
    /// A file with a Mahimahi trace. The engine receives the transmission opportunities in each millisecond.
    Trace,
    /// Controller options, with keys defined by the controller.
    Options,
    /// A table.
    Table(&'static Table),
    /// A table with keys listed in the enclosing table of a scenario and compiled under a separate key.
    Inline(&'static Table),
    /// A table selected by its `kind`.
    OneOf(&'static Family),
    /// A list with this minimum number of entries.
    List(&'static Takes, u64),
    /// A list, or this word.
    ListOr(&'static Takes, &'static str),
}

/// A registry of names.
#[derive(Debug)]
pub struct Registry {
    /// Name in Python.
    pub name: &'static str,
    /// Returns all registered names.
    pub names: fn() -> Vec<&'static str>,
    /// Permitted names outside the registry.
    pub others: &'static [Other],
    /// Whether `FILE.py:CLASS`, `FILE.c` and `FILE.rs` are also permitted, for user-defined controllers.
    pub files: bool,
}

/// Names outside a registry: prefix, pattern of the remainder, and a function that checks the remainder.
pub type Other = (&'static str, &'static str, fn(&str) -> bool);

impl Registry {
    /// Return the permitted names, if `written` is not one of them.
    pub fn refuses(&self, written: &Written) -> Option<String> {
        let names = (self.names)();
        let Some(name) = written.text() else { return Some(words::one_of(&words::spelled(written), &names)) };
        for (prefix, pattern, follows) in self.others {
            if let Some(rest) = name.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
                return (!follows(rest)).then(|| format!("{prefix} and a name of the form {pattern}"));
            }
        }
        let known = self.files && is_own(name) || names.contains(&name);
        (!known).then(|| words::one_of(name, &names))
    }
}

/// Whether a controller's name refers to a file: `FILE.py:CLASS` for a class, or `FILE.c` and `FILE.rs`.
pub fn is_own(name: &str) -> bool {
    if [".c", ".rs"].iter().any(|end| name.len() > end.len() && name.ends_with(end)) {
        return !name.contains('\n');
    }
    let Some((file, class)) = name.rsplit_once(':') else { return false };
    let mut class = class.chars();
    file.len() > 3
        && file.ends_with(".py")
        && !file.contains('\n')
        && class.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && class.all(|c| c.is_alphanumeric() || c == '_')
}

/// Quantity of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    Duration,
    Rate,
    Size,
    Share,
}

/// `true` or `false`.
pub const FLAG: Takes = Takes::Flag;
/// A duration that may be zero.
pub const DURATION_OR_ZERO: Takes = Takes::Duration(0);
/// A duration above zero.
pub const DURATION: Takes = Takes::Duration(1);
/// A rate above zero.
pub const RATE: Takes = Takes::Rate(1);
/// A number of bytes above zero.
pub const SIZE: Takes = Takes::Size(1, MOST_BYTES);
/// A number of bytes that may be zero.
pub const SIZE_OR_ZERO: Takes = Takes::Size(0, MOST_BYTES);
/// A count above zero.
pub const COUNT: Takes = Takes::Whole(1, 1_000_000);
/// A number above zero.
pub const POSITIVE: Takes = Takes::Above(0.0, 1e6);
/// Maximum duration in a scenario, ns: 1000 h.
pub const LONGEST_NS: u64 = 1000 * 3600 * 1_000_000_000;
/// Maximum rate in a scenario, bit/s.
pub const MOST_BPS: u64 = 100_000_000_000_000;
/// Maximum size in a scenario, bytes.
pub const MOST_BYTES: u64 = 1_000_000_000_000_000;
/// Maximum number of packets in a scenario.
pub const MOST_PACKETS: u64 = 1_000_000_000;

impl Takes {
    /// Return the permitted values, if `value` is not one of them. Composite values are checked while they are read.
    pub fn refuses(&self, value: &Value) -> Option<String> {
        let whole = |low: u64, high: u64, of: &str| match value {
            Value::Whole(n) if (low..=high).contains(n) => None,
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
            Takes::Duration(least) => whole(least, LONGEST_NS, "nanoseconds"),
            Takes::DurationOr(_) => whole(0, LONGEST_NS, "nanoseconds"),
            Takes::Rate(least) => whole(least, MOST_BPS, "bit/s"),
            Takes::Size(low, high) => whole(low, high, "bytes"),
            Takes::Packets | Takes::PacketLimit => whole(1, MOST_PACKETS, "packets"),
            Takes::MeanPackets => unless(number(0.0, f64::MAX), "packets"),
            Takes::Text | Takes::Label(_) | Takes::Named(_) => {
                unless(matches!(value, Value::Text(_)), "text")
            }
            Takes::Choice(names) => {
                let fits = matches!(value, Value::Text(text) if names.contains(&text.as_str()));
                unless(fits, &names.join(", "))
            }
            Takes::List(_, least) => match value {
                Value::List(entries) if entries.len() as u64 >= least => None,
                _ => Some(format!("a list of at least {least}")),
            },
            Takes::DrawnOr(..) | Takes::Writes => {
                let least = if let Takes::DrawnOr(_, least) = *self { least } else { 1 };
                let below = |value: &Value| f64::read(value).is_ok_and(|x| x < least as f64);
                let values = match (value.get("value"), value.get("values")) {
                    (Some(one), _) => std::slice::from_ref(one),
                    (_, Some(Value::List(values))) => values,
                    _ => &[],
                };
                unless(!values.iter().any(below), &format!("values of at least {least}"))
            }
            Takes::Limit => {
                let amount = |key: &str, most: u64| match value.get(key) {
                    Some(Value::Whole(n)) => Some((1..=most).contains(n)),
                    _ => None,
                };
                let fits = amount("packets", MOST_PACKETS).or(amount("bytes", MOST_BYTES)).unwrap_or(false);
                unless(fits, &format!("1 to {MOST_PACKETS} packets, or 1 to {MOST_BYTES} bytes"))
            }
            Takes::ListOr(..) => unless(matches!(value, Value::List(_)), "a list"),
            Takes::Drawn(_) | Takes::Amount | Takes::Trace | Takes::Options => None,
            Takes::Table(_) | Takes::Inline(_) | Takes::OneOf(_) => None,
        }
    }

    /// Return the permitted values.
    pub fn allowed(&self) -> String {
        self.refuses(&Value::Table(Vec::new())).unwrap_or_default()
    }

    /// Return the description for Python: type and bounds.
    pub(crate) fn described(&self) -> Value {
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
            Takes::Label(most) => of("label", vec![("most", Value::Whole(most))]),
            Takes::Named(registry) => {
                let others = registry
                    .others
                    .iter()
                    .map(|(prefix, pattern, _)| Value::Text(format!("{prefix}{pattern}")));
                let entries = vec![
                    ("registry", Value::Text(registry.name.into())),
                    ("others", Value::List(others.collect())),
                    ("files", Value::Flag(registry.files)),
                ];
                of("named", entries)
            }
            Takes::Choice(names) => {
                let names = names.iter().map(|name| Value::Text(name.to_string()));
                of("choice", vec![("names", Value::List(names.collect()))])
            }
            Takes::Drawn(u) => of("drawn", vec![unit(u)]),
            Takes::DrawnOr(u, least) => of("drawn or", vec![unit(u), ("least", Value::Whole(least))]),
            Takes::Writes => of("writes", vec![]),
            Takes::DurationOr(_) => of("duration or drawn", vec![]),
            Takes::Amount => of("amount", vec![]),
            Takes::Trace => of("trace", vec![]),
            Takes::Options => of("options", vec![]),
            Takes::Table(table) | Takes::Inline(table) => {
                of("table", vec![("table", Value::Text(table.kind.into()))])
            }
            Takes::OneOf(family) => of("one of", vec![("family", Value::Text(family.name.into()))]),
            Takes::List(inner, least) => {
                of("list", vec![("of", inner.described()), ("least", Value::Whole(least))])
            }
            Takes::ListOr(inner, word) => {
                of("list or", vec![("of", inner.described()), ("word", Value::Text(word.into()))])
            }
        }
    }
}
