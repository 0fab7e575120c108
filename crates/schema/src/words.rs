//! Values and names in messages: values in scenario notation, and the permitted name closest to the one found.

use std::collections::BTreeMap;

use crate::{Table, Takes, Unit, Value, Written};

/// Maximum number of characters in a displayed value.
const MOST_SHOWN: usize = 60;
/// Maximum number of names in a message. `MOST_OF_NAME` and `MOST_OF_LIST` limit the length of each name and of the
/// list, in characters.
const MOST_NAMES: usize = 50;
/// Maximum length of a list of names that is shown together with the nearest name, characters.
const MOST_BESIDE: usize = 60;
const MOST_OF_NAME: usize = 60;
const MOST_OF_LIST: usize = 600;

/// Return a value in scenario notation, shortened for a message.
pub fn quote(value: &Written) -> String {
    let text = match value {
        Written::Nothing => "nothing".to_string(),
        Written::Flag(on) => on.to_string(),
        Written::Whole(n) => n.to_string(),
        Written::Huge(figures) if figures.trim_start_matches('-').len() > MOST_SHOWN => {
            return "a whole number of more than 60 digits".to_string()
        }
        Written::Huge(figures) => figures.clone(),
        Written::Number(x) => float(*x),
        Written::Text(text) => return quoted(text),
        Written::Date(text) => text.replace('T', " ").replace('Z', "+00:00"),
        Written::List(_) => "a list".to_string(),
        Written::Table(_) => "a table".to_string(),
    };
    match text.chars().count() {
        n if n <= MOST_SHOWN => text,
        _ => text.chars().take(MOST_SHOWN - 3).chain("...".chars()).collect(),
    }
}

/// Return a value in the form produced by Python's `str`, for comparison with names.
pub fn spelled(value: &Written) -> String {
    let within = |value: &Written| match value {
        Written::Text(text) => format!("'{text}'"),
        other => spelled(other),
    };
    match value {
        Written::Nothing => "None".to_string(),
        Written::Flag(true) => "True".to_string(),
        Written::Flag(false) => "False".to_string(),
        Written::Text(text) => text.clone(),
        Written::List(entries) => format!("[{}]", entries.iter().map(within).collect::<Vec<_>>().join(", ")),
        Written::Table(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("'{key}': {}", within(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => quote(other),
    }
}

/// Format a number with the fewest digits that distinguish it from all others, as Python does.
pub fn float(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let short = format!("{x:e}");
    let (figures, power) = short.split_once('e').expect("invariant: it has an exponent");
    match power.parse::<i32>().expect("invariant: a number") {
        -4..16 => {
            let plain = x.to_string();
            if plain.contains('.') {
                plain
            } else {
                plain + ".0"
            }
        }
        power => format!("{figures}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs()),
    }
}

/// Format a number with at most `digits` significant digits, and an exponent if it has more before the point (`%g`).
pub fn general(x: f64, digits: usize) -> String {
    let rounded = format!("{x:.*e}", digits - 1);
    let Some((figures, power)) = rounded.split_once('e') else { return float(x) };
    let power: i32 = power.parse().expect("invariant: a number");
    let figures =
        if figures.contains('.') { figures.trim_end_matches('0').trim_end_matches('.') } else { figures };
    if (-4..digits as i32).contains(&power) {
        return significant(x, digits);
    }
    format!("{figures}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

/// Format a compiled value without a unit, in scenario notation.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::List(_) => "a list".to_string(),
        Value::Table(entries) if entries.is_empty() => "nothing".to_string(),
        other => other.to_string(),
    }
}

/// Return a string in quotes, shortened for a message.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    match out.chars().count() {
        n if n <= MOST_SHOWN => out,
        _ => out.chars().take(MOST_SHOWN - 3).chain("...\"".chars()).collect(),
    }
}

/// Format the value under a dotted key of a compiled table, with its unit.
pub(crate) fn held(table: &'static Table, value: &Value, key: &str) -> String {
    let mut takes = Takes::Table(table);
    let mut here = value;
    for part in key.split('.') {
        let next = match (here, takes) {
            (Value::List(entries), Takes::List(inner, _)) => {
                part.parse().ok().and_then(|i: usize| entries.get(i)).map(|entry| (entry, *inner))
            }
            (Value::Table(_), Takes::Table(table)) => in_table(table, here, part),
            (Value::Table(_), Takes::OneOf(family)) => {
                let kind = here.get("kind");
                let chosen = |table: &&&'static Table| kind == Some(&Value::Text(table.kind.to_string()));
                match family.tables.iter().find(chosen) {
                    Some(_) if part == "kind" => kind.map(|kind| (kind, Takes::Text)),
                    Some(table) => in_table(table, here, part),
                    None => None,
                }
            }
            _ => None,
        };
        match next {
            Some((value, deeper)) => (here, takes) = (value, deeper),
            None => return "nothing".to_string(),
        }
    }
    with_unit(here, takes)
}

fn in_table<'a>(table: &'static Table, value: &'a Value, key: &str) -> Option<(&'a Value, Takes)> {
    let takes = table.keys.iter().find(|known| known.name == key)?.takes;
    value.get(key).map(|value| (value, takes))
}

/// Format a compiled value in scenario notation.
fn with_unit(value: &Value, takes: Takes) -> String {
    let whole = |value: &Value| match value {
        Value::Whole(n) => Some(*n),
        _ => None,
    };
    let text = match takes {
        Takes::Duration(_) => whole(value).map(duration),
        Takes::Rate(_) => whole(value).map(rate),
        Takes::Size(..) => whole(value).map(size),
        Takes::Packets | Takes::PacketLimit => whole(value).map(packets),
        Takes::MeanPackets => match value {
            Value::Number(x) => Some(format!("{x} packets")),
            other => whole(other).map(packets),
        },
        Takes::Limit => match (value.get("packets"), value.get("bytes")) {
            (Some(n), _) => whole(n).map(packets),
            (_, Some(n)) => whole(n).map(size),
            _ => None,
        },
        Takes::Writes if value.get("value").is_some() => Some(writes(value)),
        Takes::DrawnOr(unit, _) => match (unit, value.get("value")) {
            (Unit::Duration, Some(Value::Number(s))) => Some(duration(libm::rint(s * 1e9) as u64)),
            (Unit::Size, Some(Value::Number(n))) => Some(size(libm::rint(*n) as u64)),
            _ => None,
        },
        _ => None,
    };
    text.map_or_else(|| plain(value), |text| quoted(&text))
}

/// Format a size, or several identical sizes, in scenario notation.
pub(crate) fn writes(value: &Value) -> String {
    let each = match value.get("value") {
        Some(Value::Number(each)) => size(libm::rint(*each) as u64),
        _ => String::new(),
    };
    match value.get("times") {
        Some(Value::Whole(times)) => format!("{times} x {each}"),
        _ => each,
    }
}

/// Format a duration in the largest unit that yields a whole number.
pub fn duration(ns: u64) -> String {
    in_units(ns, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)])
}

/// Format a rate in the largest unit that yields a whole number.
pub fn rate(bps: u64) -> String {
    in_units(bps, &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000), ("bit/s", 1)])
}

fn in_units(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, size) =
        units.iter().find(|(_, size)| value.is_multiple_of(*size)).expect("invariant: the last is 1");
    format!("{} {unit}", value / size)
}

/// Format a number of bytes.
pub fn size(bytes: u64) -> String {
    format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" })
}

/// Format a number of packets.
pub fn packets(n: u64) -> String {
    format!("{n} packet{}", if n == 1 { "" } else { "s" })
}

/// Format a number with at most `digits` significant digits.
pub fn significant(x: f64, digits: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let rounded: f64 = format!("{x:.*e}", digits - 1).parse().expect("invariant: a float that Rust wrote");
    rounded.to_string()
}

/// List the permitted names and the one nearest to the name found. A long list is omitted if there is a nearest name.
pub fn one_of<S: AsRef<str>>(found: &str, names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let listed: Vec<String> = names.iter().take(MOST_NAMES).map(|name| cut(name, MOST_OF_NAME)).collect();
    let mut listed = listed.join(", ");
    if names.len() > MOST_NAMES {
        listed += &format!(" and {} more", names.len() - MOST_NAMES);
    }
    let listed = cut(&listed, MOST_OF_LIST);
    match nearest(found, &names) {
        Some(near) if listed.chars().count() > MOST_BESIDE => {
            format!("one of {} names (nearest: {})", names.len(), cut(near, MOST_OF_NAME))
        }
        Some(near) => format!("{listed} (nearest: {})", cut(near, MOST_OF_NAME)),
        None => listed,
    }
}

/// Shorten a long name.
fn cut(name: &str, most: usize) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= most {
        return name.to_string();
    }
    let kept = most.saturating_sub(43);
    all[..kept].iter().chain(&['.', '.', '.']).chain(&all[all.len() - 40..]).collect()
}

/// Return the name probably meant: the one with the most characters in common, if that is at least half
/// (Ratcliff and Obershelp 1988, as in Python's difflib). Case is ignored, and `_` and `-` are treated as identical.
pub fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    let folded = |name: &str| name.to_lowercase().replace('_', "-");
    let found = Matcher::new(&folded(found));
    let mut best: Option<(f64, String, &str)> = None;
    for &name in names {
        let fold = folded(name);
        let ratio = found.ratio(&fold);
        let better = |(most, other, _): &(f64, String, &str)| (ratio, &fold) >= (*most, other);
        if ratio >= 0.5 && best.as_ref().is_none_or(better) {
            best = Some((ratio, fold, name));
        }
    }
    best.map(|(_, _, name)| name)
}

/// Text that others are compared with, indexed by character.
struct Matcher {
    text: Vec<char>,
    at: BTreeMap<char, Vec<usize>>,
}

impl Matcher {
    fn new(text: &str) -> Matcher {
        let text: Vec<char> = text.chars().collect();
        let mut at: BTreeMap<char, Vec<usize>> = BTreeMap::new();
        for (i, &c) in text.iter().enumerate() {
            at.entry(c).or_default().push(i);
        }
        if text.len() >= 200 {
            // in a long text, a very frequent character does not start a match
            let most = text.len() / 100 + 1;
            at.retain(|_, places| places.len() <= most);
        }
        Matcher { text, at }
    }

    /// Return twice the number of common characters, divided by the total number.
    fn ratio(&self, other: &str) -> f64 {
        let other: Vec<char> = other.chars().collect();
        let all = (self.text.len() + other.len()) as f64;
        if all == 0.0 {
            return 1.0;
        }
        if 2.0 * self.text.len().min(other.len()) as f64 / all < 0.5 {
            return 0.0;
        }
        let mut common = 0;
        let mut left = vec![(0, other.len(), 0, self.text.len())];
        while let Some((a_low, a_high, b_low, b_high)) = left.pop() {
            let (i, j, length) = self.longest(&other, a_low, a_high, b_low, b_high);
            if length > 0 {
                common += length;
                left.push((a_low, i, b_low, j));
                left.push((i + length, a_high, j + length, b_high));
            }
        }
        2.0 * common as f64 / all
    }

    /// Return the longest match within these ranges. If there are several, return the first in `a`, then the first in
    /// the text.
    fn longest(
        &self,
        a: &[char],
        a_low: usize,
        a_high: usize,
        b_low: usize,
        b_high: usize,
    ) -> (usize, usize, usize) {
        let (mut best_i, mut best_j, mut best) = (a_low, b_low, 0);
        let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
        for (i, c) in a.iter().enumerate().take(a_high).skip(a_low) {
            let mut next = BTreeMap::new();
            for &j in self.at.get(c).map_or(&[][..], Vec::as_slice) {
                if j < b_low {
                    continue;
                }
                if j >= b_high {
                    break;
                }
                let length = if j == 0 { 0 } else { lengths.get(&(j - 1)).copied().unwrap_or(0) } + 1;
                next.insert(j, length);
                if length > best {
                    (best_i, best_j, best) = (i + 1 - length, j + 1 - length, length);
                }
            }
            lengths = next;
        }
        while best_i > a_low && best_j > b_low && a[best_i - 1] == self.text[best_j - 1] {
            (best_i, best_j, best) = (best_i - 1, best_j - 1, best + 1);
        }
        while best_i + best < a_high && best_j + best < b_high && a[best_i + best] == self.text[best_j + best]
        {
            best += 1;
        }
        (best_i, best_j, best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_most_in_common() {
        assert_eq!(nearest("codle", &["drop-tail", "codel", "fq-codel"]), Some("codel"));
        assert_eq!(nearest("Prr_Crb", &["prr-ssrb", "prr-crb"]), Some("prr-crb"));
        assert_eq!(nearest("x", &["reno", "cubic"]), None);
        assert_eq!(one_of("cubik", &["reno", "cubic"]), "reno, cubic (nearest: cubic)");
        let many = ["reno", "westwood-plus", "cubic", "cubic-rfc9438", "highspeed", "scalable", "illinois"];
        assert_eq!(one_of("cubik", &many), "one of 7 names (nearest: cubic)");
    }

    #[test]
    fn amounts_are_written_in_the_largest_unit_of_which_they_are_whole() {
        assert_eq!(duration(5_000_000), "5 ms");
        assert_eq!(duration(1_500_000_000), "1500 ms");
        assert_eq!(rate(10_000_000), "10 Mbit/s");
        assert_eq!((size(1).as_str(), packets(30).as_str()), ("1 byte", "30 packets"));
        assert_eq!(significant(0.987_654_321, 6), "0.987654");
    }

    #[test]
    fn a_text_is_quoted_and_cut() {
        assert_eq!(quoted("a\"\u{1b}\n"), "\"a\\\"\\u001b\\n\"");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 61);
    }
}
