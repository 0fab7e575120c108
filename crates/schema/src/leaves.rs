//! Elementary table values: numbers, strings, and lists of these.

use std::collections::BTreeMap;

use super::{Described, Place, Refusal, Value};

macro_rules! leaf {
    ($type:ty, $value:ident, $read:pat => $made:expr, $write:expr, $expected:literal) => {
        impl Described for $type {
            fn read(value: &Value) -> Result<$type, Refusal> {
                match value {
                    $read => $made,
                    _ => None,
                }
                .ok_or_else(|| Refusal::new(value, $expected))
            }
            fn write(&self) -> Value {
                let $value = self;
                $write
            }
        }
    };
}

leaf!(bool, on, Value::Flag(on) => Some(*on), Value::Flag(*on), "true, false");
leaf!(u64, n, Value::Whole(n) => Some(*n), Value::Whole(*n), "a whole number");
leaf!(u32, n, Value::Whole(n) => u32::try_from(*n).ok(), Value::Whole(*n as u64), "a whole number below 2^32");
leaf!(u8, n, Value::Whole(n) => u8::try_from(*n).ok(), Value::Whole(*n as u64), "a whole number below 256");
leaf!(String, s, Value::Text(s) => Some(s.clone()), Value::Text(s.clone()), "text");

impl Described for f64 {
    fn read(value: &Value) -> Result<f64, Refusal> {
        match value {
            Value::Number(x) => Ok(*x),
            Value::Whole(n) => Ok(*n as f64),
            _ => Err(Refusal::new(value, "a number")),
        }
    }
    fn write(&self) -> Value {
        Value::Number(*self)
    }
}

impl<T: Described> Described for Option<T> {
    fn read(value: &Value) -> Result<Option<T>, Refusal> {
        T::read(value).map(Some)
    }
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Table(Vec::new()), T::write)
    }
    fn absent() -> Option<Option<T>> {
        Some(None)
    }
    fn judge(&self, place: &Place, broken: &mut Vec<Refusal>) {
        if let Some(held) = self {
            held.judge(place, broken);
        }
    }
}

impl<T: Described> Described for Box<T> {
    fn read(value: &Value) -> Result<Box<T>, Refusal> {
        T::read(value).map(Box::new)
    }
    fn write(&self) -> Value {
        T::write(self)
    }
    fn judge(&self, place: &Place, broken: &mut Vec<Refusal>) {
        T::judge(self, place, broken);
    }
}

impl<T: Described> Described for Vec<T> {
    fn read(value: &Value) -> Result<Vec<T>, Refusal> {
        let Value::List(entries) = value else { return Err(Refusal::new(value, "a list")) };
        entries.iter().enumerate().map(|(i, entry)| T::read(entry).map_err(|r| r.within(i))).collect()
    }
    fn write(&self) -> Value {
        Value::List(self.iter().map(T::write).collect())
    }
    fn judge(&self, place: &Place, broken: &mut Vec<Refusal>) {
        for (i, entry) in self.iter().enumerate() {
            entry.judge(&place.at(i), broken);
        }
    }
}

/// Controller options; their keys are unknown to the schema.
impl Described for BTreeMap<String, Value> {
    fn read(value: &Value) -> Result<BTreeMap<String, Value>, Refusal> {
        let Value::Table(entries) = value else { return Err(Refusal::new(value, "a table")) };
        Ok(entries.iter().cloned().collect())
    }
    fn write(&self) -> Value {
        Value::Table(self.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}
