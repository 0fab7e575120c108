//! Conversion from the engine's values back to a scenario: keys in the order of their tables, and defaults in an
//! author's notation.

use crate::draws::DISTRIBUTIONS;
use crate::words::{duration, rate, size};
use crate::{Table, Takes, Unit, Value, Written};

impl Table {
    /// Sort the keys of a table, and of nested tables, into the order of their definition.
    pub fn ordered(&self, written: Written, kinded: bool) -> Written {
        let Written::Table(mut given) = written else { return written };
        let place = |name: &str| match kinded && name == "kind" {
            true => Some(0),
            false => self.keys().position(|key| key.name == name).map(|at| at + 1),
        };
        given.sort_by_key(|(name, _)| place(name));
        let takes = |name: &str| self.keys().find(|key| key.name == name).map(|key| key.takes);
        let within = |(name, value): (String, Written)| {
            let value = match takes(&name) {
                Some(takes) => takes.ordered(value),
                None => value,
            };
            (name, value)
        };
        Written::Table(given.into_iter().map(within).collect())
    }
}

impl Takes {
    fn ordered(&self, written: Written) -> Written {
        match (self, &written) {
            (Takes::Table(table), _) => table.ordered(written, false),
            (Takes::OneOf(family), _) => {
                let kind = written.get("kind").and_then(Written::text);
                match family.tables.iter().find(|table| Some(table.kind) == kind) {
                    Some(table) => table.ordered(written, true),
                    None => written,
                }
            }
            (Takes::Drawn(_) | Takes::DrawnOr(..) | Takes::Writes | Takes::DurationOr(_), _) => {
                Takes::OneOf(DISTRIBUTIONS).ordered(written)
            }
            (Takes::List(of, _) | Takes::ListOr(of, _), Written::List(_)) => {
                let Written::List(entries) = written else { return written };
                Written::List(entries.into_iter().map(|entry| of.ordered(entry)).collect())
            }
            _ => written,
        }
    }

    /// Return a default in scenario notation.
    pub fn shown(&self, value: &Value) -> Value {
        let whole = |text: fn(u64) -> String| match value {
            Value::Whole(n) => Value::Text(text(*n)),
            other => other.clone(),
        };
        match (self, value) {
            (Takes::Duration(_) | Takes::DurationOr(_), _) => whole(duration),
            (Takes::Rate(_), _) => whole(rate),
            (Takes::Size(..), _) => whole(size),
            (Takes::Packets, _) => whole(|n| format!("{n} packets")),
            (Takes::Writes, _) => match (value.get("value"), value.get("times")) {
                (Some(Value::Number(_)), Some(Value::Whole(_))) => Value::Text(crate::words::writes(value)),
                _ => Takes::DrawnOr(Unit::Size, 1).shown(value),
            },
            (Takes::DrawnOr(unit, _), _) => match (unit, value.get("value")) {
                (Unit::Size, Some(Value::Number(x))) => Value::Text(size(libm::rint(*x) as u64)),
                (_, Some(Value::Number(x))) => Value::Text(duration(libm::rint(*x * 1e9) as u64)),
                _ => value.clone(),
            },
            (Takes::Table(_), _) => Value::Table(Vec::new()),
            (Takes::OneOf(_), _) => match value.get("kind") {
                Some(kind) => Value::table([("kind", kind.clone())]),
                None => value.clone(),
            },
            (Takes::List(of, _), Value::List(entries)) => {
                Value::List(entries.iter().map(|entry| of.shown(entry)).collect())
            }
            _ => value.clone(),
        }
    }
}
