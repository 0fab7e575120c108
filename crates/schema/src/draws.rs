//! Distribution tables. A distribution's quantity is determined by the containing key.

use crate::{Absent, Family, Key, Table, Takes};

/// Distributions of values; the containing key defines their quantity.
pub const DISTRIBUTIONS: &Family = &Family {
    name: "distributions",
    tables: &[
        &Table::new(
            "constant",
            "Always the same value.",
            &[amount_key("value", "The value with its unit; a probability may be a bare number.")],
        ),
        &Table::new(
            "uniform",
            "Uniform distribution between two values.",
            &[
                amount_key("low", "Minimum, with its unit; a probability may be a bare number."),
                amount_key("high", "Maximum, with its unit; a probability may be a bare number."),
            ],
        ),
        &Table::new(
            "lognormal",
            "Lognormal distribution.",
            &[
                amount_key("median", "Median, with its unit; a probability may be a bare number."),
                required("sigma", "Standard deviation of the natural logarithm.", crate::POSITIVE),
            ],
        ),
        &Table::new(
            "exponential",
            "Exponential distribution.",
            &[amount_key("mean", "Mean, with its unit; a probability may be a bare number.")],
        ),
        &Table::new(
            "choice",
            "One of several values, all equally likely.",
            &[required(
                "values",
                "The values with their units; probabilities may be bare numbers.",
                Takes::List(&Takes::Amount, 1),
            )],
        ),
    ],
};

const fn amount_key(name: &'static str, about: &'static str) -> Key {
    required(name, about, Takes::Amount)
}

const fn required(name: &'static str, about: &'static str, takes: Takes) -> Key {
    Key { name, compiled: name, about, takes, absent: || Absent::Required }
}
