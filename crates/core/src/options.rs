//! Options that a scenario may give a controller. Each controller has a table of them (`table!`) beside it; a variant of
//! a controller has the same table and its own values for what is not given.

use std::collections::BTreeMap;

use crate::schema::{Described, Table};

pub use crate::schema::{Refusal, Value};

/// Name -> value.
pub type Options = BTreeMap<String, Value>;

/// Table of a controller that takes no options.
pub const NONE: &Table = &Table::new("none", "", &[]);

/// Return the options as a table; refuses a name unknown to the controller `name`, whose options are those of
/// `table`.
pub fn named(name: &str, options: &Options, table: &Table) -> Result<Value, Refusal> {
    if let Some(key) = options.keys().find(|key| table.keys.iter().all(|known| known.name != *key)) {
        let names: Vec<&str> = table.keys.iter().map(|known| known.name).collect();
        let allowed = match names.is_empty() {
            true => format!("no option for {name}"),
            false => names.join(", "),
        };
        return Err(Refusal::new("an unknown option", allowed).within(key));
    }
    let whole = |value: &Value| match value {
        Value::Number(x) => Value::number(*x),
        other => other.clone(),
    };
    Ok(Value::Table(options.iter().map(|(key, value)| (key.clone(), whole(value))).collect()))
}

/// Options with their default values.
pub fn usual<T: Described>() -> T {
    T::read(&Value::Table(Vec::new())).expect("invariant: options have defaults")
}

/// Each option with its name, its accepted values, its default (empty: given in the text), and its text.
pub fn listed(table: &'static Table, usual: &Value) -> Vec<(&'static str, String, String, String)> {
    let default = |name: &str| match usual.get(name) {
        None | Some(Value::Table(_)) => String::new(),
        Some(Value::Text(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let line = |about: &str| about.split_whitespace().collect::<Vec<_>>().join(" ");
    table.keys.iter().map(|key| (key.name, key.takes.allowed(), default(key.name), line(key.about))).collect()
}
