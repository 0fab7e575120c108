//! Conversion of a scenario, as written, into values in base units. Each key is read as defined by its table. Every
//! error is recorded with its dotted key. Rules on several keys are checked later, when all values have been read.
//!
//! Length: each kind of value that a key takes is read here, and none of them is long.

use std::sync::Arc;

use crate::quantity::{self, share, Asked, Dimension, Exact, BDP, PACKETS, SIZE};
use crate::words::{nearest, one_of, quote, size, spelled};
use crate::{Absent, Family, Key, Refusal, Table, Takes, Unit, Value, Written, MOST_BYTES};

pub use crate::draws::DISTRIBUTIONS;
pub use crate::multiple::Multiple;

/// External objects that a scenario refers to: traces, and user-defined controllers. They come from a disk, a program
/// or a web page.
pub trait Files {
    /// Return the number of transmission opportunities in each millisecond of a Mahimahi trace.
    fn trace(&self, name: &str) -> Result<Arc<[u32]>, Refusal>;
    /// Return the engine's name for a user-defined class, written `FILE.py:CLASS`, with these options.
    fn controller(&self, name: &str, options: &Written) -> Result<String, Refusal>;
}

/// Implementation that has no files.
pub struct NoFiles;

impl Files for NoFiles {
    fn trace(&self, name: &str) -> Result<Arc<[u32]>, Refusal> {
        Err(Refusal::new(format_args!("no such file in {name}"), "a trace that is at hand"))
    }
    fn controller(&self, name: &str, _: &Written) -> Result<String, Refusal> {
        let found = crate::words::quoted(name);
        Err(Refusal::new(found, "a controller that is built in").within("congestion_control"))
    }
}

/// Dimension of a distribution's values in their written form.
impl Unit {
    fn dimension(self) -> Option<&'static [&'static Dimension]> {
        match self {
            Unit::Duration => Some(&[&quantity::DURATION]),
            Unit::Rate => Some(&[&quantity::RATE]),
            Unit::Size => Some(&[&SIZE]),
            Unit::Share => None,
        }
    }
}

const LIMITS: &[&Dimension] = &[&PACKETS, &SIZE, &BDP];
const MULTIPLES: &[&Dimension] = &[&PACKETS, &BDP];
/// Maximum absolute value of a numeric controller option.
const MOST_OPTION: f64 = 1e15;
const TAGGED: &str = "a table with a \"kind\"";

/// State of the conversion.
pub struct Front<'a> {
    /// Files that the scenario may refer to.
    pub files: &'a dyn Files,
    /// Errors found so far.
    pub wrong: Vec<Refusal>,
    /// Values that depend on the bandwidth-delay product.
    pub multiples: Vec<Multiple>,
    at: String,
}

impl<'a> Front<'a> {
    /// Create the initial state.
    pub fn new(files: &'a dyn Files) -> Front<'a> {
        Front { files, wrong: Vec::new(), multiples: Vec::new(), at: String::new() }
    }

    fn refuse(&mut self, refusal: Refusal) {
        let key = match (self.at.as_str(), refusal.key.as_str()) {
            (at, "") => at.to_string(),
            ("", key) => key.to_string(),
            (at, key) => format!("{at}.{key}"),
        };
        self.wrong.push(Refusal { key, ..refusal });
    }

    fn refuse_as(&mut self, found: impl std::fmt::Display, allowed: impl std::fmt::Display) {
        self.refuse(Refusal::new(found, allowed));
    }

    fn within<T>(&mut self, key: impl std::fmt::Display, work: impl FnOnce(&mut Front<'a>) -> T) -> T {
        use std::fmt::Write;
        let before = self.at.len();
        let dot = if before == 0 { "" } else { "." };
        write!(self.at, "{dot}{key}").expect("invariant: a text grows");
        let made = work(self);
        self.at.truncate(before);
        made
    }

    /// Read a table: report unknown and missing keys first, then read each key. Rejected keys are omitted.
    pub fn table(&mut self, written: &Written, table: &'static Table, kinded: bool) -> Value {
        let Written::Table(given) = written else {
            self.refuse_as(quote(written), "a table");
            return Value::Table(Vec::new());
        };
        let known = || table.keys().map(|key| key.name);
        for (name, _) in given {
            let is_kind = kinded && name == "kind";
            if !is_kind && known().all(|key| key != name) {
                self.refuse(unknown(name, table, kinded).within(name));
            }
        }
        for key in table.keys() {
            if (key.absent)() == Absent::Required && written.get(key.name).is_none() {
                self.refuse(missing(&expected(&key.takes)).within(key.name));
            }
        }
        let mut entries = Vec::with_capacity(table.keys.len() + 1);
        if kinded {
            entries.push(("kind".to_string(), Value::Text(table.kind.to_string())));
        }
        let (mut inline, mut inner) = (None, Vec::new());
        for key in table.keys() {
            let value = match written.get(key.name) {
                Some(Written::Nothing) if key.is_optional() => None,
                Some(value) => self.within(key.name, |front| front.value(value, &key.takes)),
                None => usual(key),
            };
            let Some(value) = value else { continue };
            let entry = (key.place_of(&value).to_string(), value);
            match table.inline(key) {
                Some(held) => {
                    inline = Some(held);
                    inner.push(entry);
                }
                None => entries.push(entry),
            }
        }
        entries.extend(inline.map(|held| (held.to_string(), Value::Table(inner))));
        Value::Table(entries)
    }

    /// Read a value; `None` if it is rejected.
    #[allow(clippy::too_many_lines, reason = "a line for each thing that a key may take")]
    fn value(&mut self, written: &Written, takes: &Takes) -> Option<Value> {
        let checked = match *takes {
            Takes::Flag => match written {
                Written::Flag(on) => Ok(Value::Flag(*on)),
                _ => Err(Refusal::new(quote(written), "true or false")),
            },
            Takes::Whole(low, high) => match written {
                Written::Whole(n) if u64::try_from(*n).is_ok_and(|n| (low..=high).contains(&n)) => {
                    Ok(Value::Whole(*n as u64))
                }
                _ => Err(Refusal::new(quote(written), expected(takes))),
            },
            Takes::Number(..) | Takes::Above(..) => number(written, takes),
            Takes::Share => share(written).map(Value::Number),
            Takes::Duration(least) => whole(written, &[&quantity::DURATION], least == 0),
            Takes::Rate(least) => whole(written, &[&quantity::RATE], least == 0),
            Takes::Size(low, high) => bytes(written, low, high),
            Takes::Packets => whole(written, &[&PACKETS], false),
            Takes::PacketLimit | Takes::MeanPackets | Takes::Limit => self.limit(written, takes),
            Takes::Text | Takes::Label(_) | Takes::Trace => self.text(written, takes),
            Takes::Named(registry) => registry.refuses(written).map_or_else(
                || Ok(Value::Text(spelled(written))),
                |allowed| Err(Refusal::new(quote(written), allowed)),
            ),
            Takes::Choice(names) => match written.text().filter(|text| names.contains(text)) {
                Some(text) => Ok(Value::Text(text.to_string())),
                None => Err(Refusal::new(quote(written), one_of(&spelled(written), names))),
            },
            // read in the distribution's unit, once all keys are known
            Takes::Amount => Ok(Value::Flag(true)),
            Takes::Drawn(unit) => return self.drawn(written, unit, false),
            Takes::DrawnOr(unit, least) => return self.drawn_or(written, unit, least),
            Takes::Writes => return self.writes(written),
            Takes::DurationOr(_) => match written {
                Written::Table(_) => return self.drawn(written, Unit::Duration, true),
                _ => {
                    let read = whole(written, &[&quantity::DURATION], true);
                    return self.either(read, written);
                }
            },
            Takes::Options => return self.options(written),
            Takes::Table(table) | Takes::Inline(table) => {
                if !matches!(written, Written::Table(_)) {
                    self.refuse_as(quote(written), "a table");
                    return None;
                }
                return Some(self.table(written, table, false));
            }
            Takes::OneOf(family) => return self.one_of(written, family),
            Takes::List(of, least) => return self.list(written, of, least),
            Takes::ListOr(of, word) => {
                if written.text() == Some(word) {
                    return Some(Value::Text(word.to_string()));
                }
                let before = self.wrong.len();
                let list = self.list(written, of, 0);
                if self.wrong.len() > before {
                    self.refuse_as(quote(written), one_of(&spelled(written), &[word]));
                }
                return list;
            }
        };
        checked.map_err(|refusal| self.refuse(refusal)).ok()
    }

    fn text(&mut self, written: &Written, takes: &Takes) -> Result<Value, Refusal> {
        let Some(text) = written.text() else { return Err(Refusal::new(quote(written), "text in quotes")) };
        match *takes {
            Takes::Label(most) if text.is_empty() || text.chars().count() as u64 > most => {
                Err(Refusal::new(quote(written), format_args!("a text of 1 to {most} characters")))
            }
            Takes::Trace => self.files.trace(text).map(Value::Counts),
            _ => Ok(Value::Text(text.to_string())),
        }
    }

    /// Read a number of packets or bytes, possibly pending until the bandwidth-delay product is known.
    fn limit(&mut self, written: &Written, takes: &Takes) -> Result<Value, Refusal> {
        let limit = matches!(takes, Takes::Limit);
        let mean = matches!(takes, Takes::MeanPackets);
        let asked = Asked { dimensions: if limit { LIMITS } else { MULTIPLES }, zero: false, parts: mean };
        let (number, dimension) = asked.read(written)?;
        let packets = if dimension.name == BDP.name {
            let text = written.text().unwrap_or_default().to_string();
            self.multiples.push(Multiple { key: self.at.clone(), written: text, number, mean });
            Value::Pending(self.multiples.len() - 1)
        } else if mean {
            Value::Number(number.to_f64())
        } else {
            Value::Whole(number.half_up() as u64)
        };
        Ok(match limit {
            true if dimension.name == SIZE.name => Value::table([("bytes", packets)]),
            true => Value::table([("packets", packets)]),
            false => packets,
        })
    }

    fn one_of(&mut self, written: &Written, family: &'static Family) -> Option<Value> {
        if !matches!(written, Written::Table(_)) {
            let example = likely(written, family).map_or(String::new(), |made| format!("{made}, "));
            self.refuse_as(quote(written), format_args!("{example}{TAGGED}"));
            return None;
        }
        let kind = written.get("kind").unwrap_or(&Written::Nothing);
        match family.tables.iter().find(|table| Some(table.kind) == kind.text()) {
            Some(table) => Some(self.table(written, table, true)),
            None => {
                let kinds: Vec<&str> = family.tables.iter().map(|table| table.kind).collect();
                self.refuse(Refusal::new(quote(kind), one_of(&spelled(kind), &kinds)).within("kind"));
                None
            }
        }
    }

    fn list(&mut self, written: &Written, of: &Takes, least: u64) -> Option<Value> {
        let Written::List(given) = written else {
            self.refuse_as(quote(written), "a list");
            return None;
        };
        let before = self.wrong.len();
        let made = given.iter().enumerate().map(|(i, entry)| self.within(i, |front| front.value(entry, of)));
        let made: Vec<Value> = made.collect::<Vec<_>>().into_iter().flatten().collect();
        if self.wrong.len() == before && (made.len() as u64) < least {
            self.refuse(short(made.len(), least));
        }
        Some(Value::List(made))
    }

    fn options(&mut self, written: &Written) -> Option<Value> {
        let Written::Table(given) = written else {
            self.refuse_as(quote(written), "a table of options");
            return None;
        };
        let mut made = Vec::new();
        for (key, value) in given {
            let fits = |x: f64| x.abs() <= MOST_OPTION;
            let value = match value {
                Written::Flag(on) => Value::Flag(*on),
                Written::Text(text) => Value::Text(text.clone()),
                Written::Whole(n) if fits(*n as f64) => {
                    u64::try_from(*n).map_or(Value::Number(*n as f64), Value::Whole)
                }
                Written::Number(x) if fits(*x) => Value::Number(*x),
                other => {
                    let allowed = "true, false, a number or text in quotes";
                    self.refuse(Refusal::new(quote(other), allowed).within(key));
                    return None;
                }
            };
            made.push((key.clone(), value));
        }
        Some(Value::Table(made))
    }

    /// Reject a value that is not a table where a single value or a distribution is allowed.
    fn either(&mut self, read: Result<Value, Refusal>, written: &Written) -> Option<Value> {
        match read {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.refuse(refusal);
                self.refuse_as(quote(written), TAGGED);
                None
            }
        }
    }

    fn drawn_or(&mut self, written: &Written, unit: Unit, least: u64) -> Option<Value> {
        if matches!(written, Written::Table(_)) {
            return self.drawn(written, unit, false);
        }
        let size = unit == Unit::Size;
        let read = match size {
            true => bytes(written, least, MOST_BYTES).and_then(|_| exact(written, &[&SIZE], least == 0)),
            false => exact(written, &[&quantity::DURATION], least == 0),
        };
        let constant = |base: Exact| {
            let base = if size { base } else { base.times(&Exact::ratio(1, 1_000_000_000)) };
            Value::table([("kind", Value::Text("constant".into())), ("value", Value::Number(base.to_f64()))])
        };
        self.either(read.map(constant), written)
    }

    /// Read a size, several equal sizes, or a distribution of sizes.
    fn writes(&mut self, written: &Written) -> Option<Value> {
        let several = written.text().and_then(|text| text.split_once(TIMES));
        let Some((times, each)) = several else { return self.drawn_or(written, Unit::Size, 1) };
        let times = times.trim().parse().ok().filter(|times| (1..=MOST_TIMES).contains(times));
        let each = exact(&Written::Text(each.to_string()), &[&SIZE], false).ok();
        let (Some(times), Some(each)) = (times, each) else {
            let allowed = format!("a size, or 1 to {MOST_TIMES} times one, e.g. \"2 x 1 kB\"");
            self.refuse_as(quote(written), allowed);
            return None;
        };
        let constant = ("kind", Value::Text("constant".into()));
        Some(Value::table([
            constant,
            ("value", Value::Number(each.to_f64())),
            ("times", Value::Whole(times)),
        ]))
    }

    /// Read a distribution of this unit. `zero`: values may be zero.
    fn drawn(&mut self, written: &Written, unit: Unit, zero: bool) -> Option<Value> {
        let before = self.wrong.len();
        let made = self.one_of(written, DISTRIBUTIONS)?;
        let Value::Table(parts) = made else { return None };
        if self.wrong.len() > before {
            return None;
        }
        let mut made = Value::Table(Vec::new());
        for (key, part) in parts {
            let read = match written.get(&key)? {
                Written::List(values) if key == "values" => {
                    let each = values.iter().enumerate();
                    let each =
                        each.map(|(i, v)| amount(v, unit, zero).map(Value::Number).map_err(|r| r.within(i)));
                    each.collect::<Result<_, _>>().map(Value::List)
                }
                value if key != "kind" && key != "sigma" => amount(value, unit, zero).map(Value::Number),
                _ => Ok(part),
            };
            match read {
                Ok(value) => made.set(&key, value),
                Err(refusal) => {
                    self.refuse(refusal.within(key));
                    return None;
                }
            }
        }
        if let (Some(Value::Number(low)), Some(Value::Number(high))) = (made.get("low"), made.get("high")) {
            if low > high {
                let found = quote(written.get("low")?);
                self.refuse(Refusal::new(found, "a value not above high").within("low"));
                return None;
            }
        }
        Some(made)
    }
}

/// Return the table probably meant by a bare kind name or a bare probability, with its required keys.
fn likely(written: &Written, family: &Family) -> Option<String> {
    let required = |table: &Table| -> Vec<(&'static str, Takes)> {
        let needed = table.keys().filter(|key| matches!((key.absent)(), Absent::Required));
        needed.map(|key| (key.name, key.takes)).collect()
    };
    let share = match written {
        Written::Text(text) => text.trim().strip_suffix('%').map(|part| format!("\"{} %\"", part.trim())),
        Written::Number(x) if (0.0..=1.0).contains(x) => Some(x.to_string()),
        _ => None,
    };
    if let Some(share) = share {
        let one = |table: &&&Table| matches!(required(table)[..], [(_, Takes::Share)]);
        let table = family.tables.iter().find(one)?;
        let key = required(table)[0].0;
        return Some(format!("{{ kind = \"{}\", {key} = {share} }}", table.kind));
    }
    let kinds: Vec<&str> = family.tables.iter().map(|table| table.kind).collect();
    let near = nearest(written.text()?, &kinds)?;
    let table = family.tables.iter().find(|table| table.kind == near)?;
    let mut made = format!("{{ kind = \"{near}\"");
    for (key, takes) in required(table) {
        made += &format!(", {key} = {}", example(&takes)?);
    }
    Some(made + " }")
}

/// Return an example of a value of this type.
fn example(takes: &Takes) -> Option<String> {
    Some(match takes {
        Takes::Share => "\"1 %\"".to_string(),
        Takes::Duration(_) | Takes::DurationOr(_) => "\"1 s\"".to_string(),
        Takes::Rate(_) => "\"10 Mbit/s\"".to_string(),
        Takes::Size(..) => "\"10 MB\"".to_string(),
        Takes::Whole(low, _) => (*low).max(1).to_string(),
        _ => return None,
    })
}

fn missing(what: &str) -> Refusal {
    Refusal::new("nothing", format_args!("{what}; this key is required"))
}

fn short(held: usize, least: u64) -> Refusal {
    let found = if held == 0 { "an empty list".to_string() } else { format!("a list of {held}") };
    let entries = if least == 1 { "entry" } else { "entries" };
    Refusal::new(found, format_args!("a list with at least {least} {entries}"))
}

fn unknown(name: &str, table: &Table, kinded: bool) -> Refusal {
    let known: Vec<&str> =
        kinded.then_some("kind").into_iter().chain(table.keys().map(|key| key.name)).collect();
    let elsewhere = table.elsewhere.iter().find(|(keys, _)| keys.contains(&name));
    let hint = match (elsewhere, nearest(name, &known)) {
        (Some((_, place)), _) => format!(" here, which is said by {place}"),
        (None, Some(near)) => format!(", did you mean \"{near}\"?"),
        (None, None) => String::new(),
    };
    Refusal::new(format_args!("an unknown key{hint}"), known.join(", "))
}

/// Return the default value of a key, in base units.
fn usual(key: &Key) -> Option<Value> {
    let empty = Written::Table(Vec::new());
    let mut front = Front::new(&NoFiles);
    match ((key.absent)(), key.takes) {
        (Absent::Required, _) => None,
        (Absent::Nothing, Takes::Options) => Some(Value::Table(Vec::new())),
        (Absent::Nothing, _) => None,
        (Absent::Is(_), Takes::Table(table)) => Some(front.table(&empty, table, false)),
        (Absent::Is(value), Takes::OneOf(_)) => match value.get("kind") {
            Some(Value::Text(kind)) => {
                let given = Written::Table(vec![("kind".to_string(), Written::Text(kind.clone()))]);
                front.value(&given, &key.takes)
            }
            _ => None,
        },
        (Absent::Is(value), _) => Some(value),
    }
}

fn exact(written: &Written, dimension: &[&'static Dimension], zero: bool) -> Result<Exact, Refusal> {
    Asked::one(dimension, zero).read(written).map(|(number, _)| number)
}

fn whole(written: &Written, dimension: &[&'static Dimension], zero: bool) -> Result<Value, Refusal> {
    exact(written, dimension, zero).map(|number| Value::Whole(number.half_up() as u64))
}

/// Separator between the number of writes and their size.
const TIMES: &str = " x ";
const MOST_TIMES: u64 = 1_000_000;

/// Read a size within bounds.
fn bytes(written: &Written, low: u64, high: u64) -> Result<Value, Refusal> {
    let number = exact(written, &[&SIZE], low == 0)?;
    if number < Exact::whole(low as u128) && high < MOST_BYTES || number > Exact::whole(high as u128) {
        let bounds = match low {
            0 => format!("at most \"{}\"", size(high)),
            _ => format!("\"{}\" to \"{}\"", size(low), size(high)),
        };
        return Err(Refusal::new(quote(written), bounds));
    }
    Ok(Value::Whole(number.half_up() as u64))
}

fn number(written: &Written, takes: &Takes) -> Result<Value, Refusal> {
    let value = match written {
        Written::Whole(n) => u64::try_from(*n).map_or(Value::Number(*n as f64), Value::Whole),
        Written::Number(x) => Value::Number(*x),
        _ => return Err(Refusal::new(quote(written), expected(takes))),
    };
    match takes.refuses(&value) {
        Some(_) => Err(Refusal::new(quote(written), expected(takes))),
        None => Ok(value),
    }
}

/// Read a value of a distribution; durations in s.
fn amount(written: &Written, unit: Unit, zero: bool) -> Result<f64, Refusal> {
    let Some(dimensions) = unit.dimension() else { return share(written) };
    let (base, _) = Asked { dimensions, zero, parts: true }.read(written)?;
    Ok(match unit {
        Unit::Duration => base.times(&Exact::ratio(1, 1_000_000_000)).to_f64(),
        _ => base.to_f64(),
    })
}

/// Return a description of the values accepted by a key, for messages.
pub fn expected(takes: &Takes) -> String {
    let asked = |dimensions, zero| Asked::one(dimensions, zero).describe();
    let short = |x: f64| x.to_string();
    match *takes {
        Takes::Whole(low, high) if low == high => low.to_string(),
        Takes::Whole(low, high) => format!("a whole number, {low} to {high}"),
        Takes::Number(low, high) => format!("a number, {} to {}", short(low), short(high)),
        Takes::Above(low, high) => format!("a number above {} and up to {}", short(low), short(high)),
        Takes::Share => quantity::SHARE.to_string(),
        Takes::Duration(least) => asked(&[&quantity::DURATION], least == 0),
        Takes::Rate(least) => asked(&[&quantity::RATE], least == 0),
        Takes::Size(low, _) => asked(&[&SIZE], low == 0),
        Takes::Packets => asked(&[&PACKETS], false),
        Takes::PacketLimit | Takes::MeanPackets => asked(MULTIPLES, false),
        Takes::Limit => asked(LIMITS, false),
        Takes::Named(registry) => (registry.names)().join(", "),
        Takes::Choice(names) => names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "),
        Takes::Drawn(_) => expected(&Takes::OneOf(DISTRIBUTIONS)),
        Takes::Amount => "an amount with its unit written out".to_string(),
        Takes::DrawnOr(..) | Takes::Writes | Takes::DurationOr(_) | Takes::ListOr(..) => {
            "a value, or a table".to_string()
        }
        Takes::OneOf(family) => {
            let kinds: Vec<&str> = family.tables.iter().map(|table| table.kind).collect();
            format!("{TAGGED} ({})", kinds.join(", "))
        }
        Takes::List(Takes::Table(_), _) => "a list of tables".to_string(),
        Takes::List(..) => "a list".to_string(),
        Takes::Table(_) | Takes::Inline(_) => "a table".to_string(),
        Takes::Flag | Takes::Text | Takes::Label(_) | Takes::Trace | Takes::Options => {
            "text in quotes".to_string()
        }
    }
}
