//! Controller options in a scenario. Each controller declares a table of options (`table!`) in its own
//! file. A variant of a controller has the same table with its own defaults.

use std::collections::BTreeMap;

use crate::schema::{Described, Table};

pub use crate::schema::{Refusal, Value};

/// Option values by name.
pub type Options = BTreeMap<String, Value>;

/// Option table of a controller without options.
pub const NONE: &Table = &Table::new("none", "", &[]);

/// Return the options as a table. Names missing from `table` are refused; `name` is the controller's name, for
/// the error message.
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

/// Options with default values.
pub fn usual<T: Described>() -> T {
    T::read(&Value::Table(Vec::new())).expect("invariant: options have defaults")
}

/// List each option: name, accepted values, default (empty if given in the description), and description.
pub fn listed(table: &'static Table, usual: &Value) -> Vec<(&'static str, String, String, String)> {
    let default = |name: &str| match usual.get(name) {
        None | Some(Value::Table(_)) => String::new(),
        Some(Value::Text(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let line = |about: &str| about.split_whitespace().collect::<Vec<_>>().join(" ");
    table.keys.iter().map(|key| (key.name, key.takes.allowed(), default(key.name), line(key.about))).collect()
}
