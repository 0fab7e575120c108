//! Parameters that a scenario may give a controller: each controller lists what it knows, and what is given is held
//! against that list before a run starts.

use std::collections::BTreeMap;
use std::fmt;

/// A value as a scenario gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
}

impl Eq for Value {} // scenarios hold no NaN

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => write!(f, "{on}"),
            Value::Number(x) => write!(f, "{x}"),
            Value::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// Name -> value.
pub type Options = BTreeMap<String, Value>;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// true or false.
    Flag,
    /// A number within bounds, both included.
    Number {
        /// Least.
        low: f64,
        /// Greatest.
        high: f64,
    },
    /// A whole number within bounds, both included.
    Whole {
        /// Least.
        low: u32,
        /// Greatest.
        high: u32,
    },
    /// One of these names.
    Choice(&'static [&'static str]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Flag => f.write_str("true, false"),
            Kind::Number { low, high } => write!(f, "a number from {low} to {high}"),
            Kind::Whole { low, high } => write!(f, "a whole number from {low} to {high}"),
            Kind::Choice(names) => f.write_str(&names.join(", ")),
        }
    }
}

/// A parameter of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds if it is not given.
    pub default: &'static str,
    /// What it does, with its unit.
    pub about: &'static str,
}

/// A name or an option that no controller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The option; empty if the controller's name is what is wrong.
    pub option: String,
    /// What was given.
    pub found: String,
    /// What may be given.
    pub allowed: String,
}

/// Options that were held against a list of parameters.
#[derive(Clone, Debug)]
pub struct Checked(Options);

impl Checked {
    /// Refuses what `parameters` of the controller `name` do not allow.
    pub fn new(name: &str, options: &Options, parameters: &[Parameter]) -> Result<Checked, Refusal> {
        for (key, value) in options {
            let Some(parameter) = parameters.iter().find(|p| p.name == key) else {
                let names: Vec<&str> = parameters.iter().map(|p| p.name).collect();
                let allowed = match names.is_empty() {
                    true => format!("no option for {name}"),
                    false => names.join(", "),
                };
                return Err(Refusal { option: key.clone(), found: "an unknown option".into(), allowed });
            };
            let fits = match (parameter.kind, value) {
                (Kind::Flag, Value::Flag(_)) => true,
                (Kind::Number { low, high }, Value::Number(x)) => (low..=high).contains(x),
                (Kind::Whole { low, high }, Value::Number(x)) => {
                    (f64::from(low)..=f64::from(high)).contains(x) && libm::floor(*x) == *x
                }
                (Kind::Choice(names), Value::Text(text)) => names.contains(&text.as_str()),
                _ => false,
            };
            if !fits {
                return Err(Refusal {
                    option: key.clone(),
                    found: value.to_string(),
                    allowed: parameter.kind.to_string(),
                });
            }
        }
        Ok(Checked(options.clone()))
    }

    /// A flag, `default` if not given.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        match self.0.get(name) {
            Some(Value::Flag(on)) => *on,
            _ => default,
        }
    }

    /// A number, `default` if not given.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        match self.0.get(name) {
            Some(Value::Number(x)) => *x,
            _ => default,
        }
    }

    /// A whole number, `default` if not given.
    pub fn whole(&self, name: &str, default: u32) -> u32 {
        self.number(name, f64::from(default)) as u32
    }

    /// A name, if given.
    pub fn choice(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}
