//! TOML with the position of every value, so that errors can point to it.

use std::cell::Cell;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value as Parsed};

use crate::{Refusal, Written};

/// Position in the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, 1-based.
    pub line: usize,
    /// Column of the first character, 1-based.
    pub column: usize,
    /// Number of characters on this line, at least 1.
    pub length: usize,
}

/// Positions of a key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Dotted key; positions in lists are numbers.
    pub key: String,
    /// Position of the key, or of the value if it has no key.
    pub name: Position,
    /// Position of the value.
    pub value: Position,
}

/// Result of parsing a TOML text.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Values in the text.
    pub written: Written,
    /// Positions of all keys, in source order.
    pub places: Vec<Placed>,
}

/// Parse a TOML text, or return the position and reason of the error.
pub fn read(text: &str) -> Result<Read, (Position, String)> {
    let lines = Lines::of(text);
    let parsed = Document::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(text.len()..text.len());
        (lines.position(at), error.message().replace('\n', "; "))
    })?;
    let mut reader = Reader { lines, places: Vec::new() };
    let written = reader.table(parsed.as_table(), "");
    Ok(Read { written, places: reader.places })
}

impl Read {
    /// Return the position of a rejected value or of its key. For a missing key, return the position of the enclosing
    /// table, or the beginning of the text.
    pub fn place(&self, refusal: &Refusal) -> Option<Position> {
        let mut name = refusal.found.starts_with("an unknown key");
        let mut key = refusal.key.as_str();
        while !key.is_empty() {
            if let Some(placed) = self.places.iter().find(|placed| placed.key == key) {
                return Some(if name { placed.name } else { placed.value });
            }
            (key, name) = (key.rsplit_once('.').map_or("", |(outer, _)| outer), true);
        }
        Some(Position { line: 1, column: 1, length: 1 })
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    places: Vec<Placed>,
}

impl Reader<'_> {
    fn table(&mut self, table: &dyn TableLike, key: &str) -> Written {
        let mut entries = Vec::new();
        for (name, item) in table.iter() {
            let written = table.get_key_value(name).and_then(|(written, _)| written.span());
            let deeper = join(key, name);
            entries.push((name.to_string(), self.item(item, deeper, written)));
        }
        Written::Table(entries)
    }

    fn item(&mut self, item: &Item, key: String, name: Option<Range<usize>>) -> Written {
        let value = item.span().or_else(|| name.clone());
        self.note(&key, name, value);
        match item {
            Item::None => Written::Table(Vec::new()),
            Item::Value(value) => self.value(value, &key),
            Item::Table(table) => self.table(table, &key),
            Item::ArrayOfTables(tables) => {
                let entries = tables.iter().enumerate().map(|(i, table)| {
                    let key = join(&key, &i.to_string());
                    self.note(&key, table.span(), table.span());
                    self.table(table, &key)
                });
                Written::List(entries.collect())
            }
        }
    }

    fn value(&mut self, value: &Parsed, key: &str) -> Written {
        match value {
            Parsed::Boolean(on) => Written::Flag(*on.value()),
            Parsed::Integer(n) => Written::Whole(*n.value()),
            Parsed::Float(x) => Written::Number(*x.value()),
            Parsed::String(text) => Written::Text(text.value().clone()),
            Parsed::Datetime(date) => Written::Date(date.value().to_string()),
            Parsed::Array(entries) => {
                let entries = entries.iter().enumerate().map(|(i, entry)| {
                    let key = join(key, &i.to_string());
                    self.note(&key, entry.span(), entry.span());
                    self.value(entry, &key)
                });
                Written::List(entries.collect())
            }
            Parsed::InlineTable(table) => self.table(table, key),
        }
    }

    fn note(&mut self, key: &str, name: Option<Range<usize>>, value: Option<Range<usize>>) {
        let Some(value) = value.filter(|_| key != OVERLONG && key.len() <= LONGEST_KEY) else { return };
        let name = self.lines.position(name.unwrap_or_else(|| value.clone()));
        self.places.push(Placed { key: key.to_string(), name, value: self.lines.position(value) });
    }
}

/// Maximum length of a dotted key with a stored position, so that memory use does not grow with the product of long
/// names.
const LONGEST_KEY: usize = 400;
/// Placeholder for a longer key.
const OVERLONG: &str = "\0";

fn join(key: &str, part: &str) -> String {
    match key {
        "" => part.to_string(),
        OVERLONG => OVERLONG.to_string(),
        _ if key.len() + part.len() > LONGEST_KEY => OVERLONG.to_string(),
        _ => format!("{key}.{part}"),
    }
}

/// Byte offsets of the lines.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// The last requested position: line, byte, column. Values are visited in text order, so each column of a long
    /// line is counted only once.
    last: Cell<(usize, usize, usize)>,
}

impl Lines<'_> {
    fn of(text: &str) -> Lines<'_> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Lines { text, starts, last: Cell::new((0, 0, 0)) }
    }

    fn position(&self, at: Range<usize>) -> Position {
        let start = (0..=at.start.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i));
        let start = start.unwrap_or(0);
        let line = self.starts.partition_point(|&first| first <= start);
        let first = self.starts[line - 1];
        let last = self.starts.get(line).map_or(self.text.len(), |next| next - 1);
        let mut end = at.end.clamp(start, last.max(start));
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let (near, column) = match self.last.get() {
            (same, byte, column) if same == line && byte <= start => (byte, column),
            _ => (first, 1),
        };
        let column = column + self.text[near..start].chars().count();
        self.last.set((line, start, column));
        Position { line, column, length: self.text[start..end].chars().count().max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"é\"\n[network]\nbottleneck = { rate = \"1 Mbit/s\", delay = 5 }\n\n[[flows]]\ncount = 2\n[[flows]]\nstack.sack = false\n";

    fn place(key: &str) -> (usize, usize, usize) {
        let read = read(TEXT).expect("TOML");
        let found = read.places.iter().find(|placed| placed.key == key).unwrap_or_else(|| panic!("{key}"));
        (found.value.line, found.value.column, found.value.length)
    }

    #[test]
    fn every_value_knows_its_line_and_column() {
        assert_eq!(place("name"), (1, 8, 3));
        assert_eq!(place("network.bottleneck.rate"), (3, 23, 10));
        assert_eq!(place("network.bottleneck.delay"), (3, 43, 1));
        assert_eq!(place("flows.0.count"), (6, 9, 1));
        assert_eq!(place("flows.1"), (7, 1, 9));
        assert_eq!(place("flows.1.stack.sack"), (8, 14, 5));
    }

    #[test]
    fn a_file_of_a_mebibyte_takes_no_more_than_its_length() {
        // one line of 200,000 values; then a 300,000-character name above 60,000 keys
        let line = format!("x = [{}]", "1, ".repeat(200_000));
        let last = read(&line).expect("TOML").places.pop().expect("places");
        assert_eq!((last.key.as_str(), last.value.column), ("x.199999", 6 + 3 * 199_999));
        let keys: String = (0..60_000).map(|i| format!("k{i} = 1\n")).collect();
        let read = read(&format!("[{}]\n{keys}", "n".repeat(300_000))).expect("TOML");
        assert!(read.places.is_empty(), "{}", read.places.len());
    }

    #[test]
    fn what_is_no_toml_is_refused_where_it_ends_to_be() {
        let (position, message) = read("a = 1\na = 2\n").expect_err("twice");
        assert_eq!((position.line, position.column), (2, 1));
        assert!(message.contains("duplicate key"), "{message}");
        assert_eq!(read("x = \"é\n").expect_err("open").0.line, 1);
        assert!(read(&format!("a = {}1{}", "[".repeat(5000), "]".repeat(5000))).is_err());
    }
}
