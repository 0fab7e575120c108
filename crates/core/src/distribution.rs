//! Random distributions. Each component draws from its own stream.

use crate::rng::Stream;
use crate::schema::{Described, Refusal, Value};

/// Distribution of a random quantity, in its owner's unit.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "parameters of a distribution, by the name that statistics gives them")]
pub enum Distribution {
    /// Constant.
    Constant { value: f64 },
    /// Uniform distribution between two values.
    Uniform { low: f64, high: f64 },
    /// ln X is normal; `median` = exp(mu).
    Lognormal { median: f64, sigma: f64 },
    /// Exponential.
    Exponential { mean: f64 },
    /// One of several values, all equally likely.
    Choice { values: Vec<f64> },
}

impl Distribution {
    /// Whether all parameters are finite and not negative, and a choice has at least one value.
    pub fn is_drawable(&self) -> bool {
        let fine = |x: f64| x.is_finite() && x >= 0.0;
        match self {
            &Distribution::Constant { value } => fine(value),
            &Distribution::Uniform { low, high } => fine(low) && fine(high) && low <= high,
            &Distribution::Lognormal { median, sigma } => fine(median) && fine(sigma),
            &Distribution::Exponential { mean } => fine(mean),
            Distribution::Choice { values } => !values.is_empty() && values.iter().all(|&v| fine(v)),
        }
    }

    /// Upper bound that draws rarely exceed.
    pub fn greatest(&self) -> f64 {
        match self {
            &Distribution::Constant { value } => value,
            &Distribution::Uniform { high, .. } => high,
            &Distribution::Lognormal { median, sigma } => median * libm::exp(4.0 * sigma),
            &Distribution::Exponential { mean } => 10.0 * mean,
            Distribution::Choice { values } => values.iter().copied().fold(0.0, f64::max),
        }
    }

    /// Draw a value. The number of values taken from the stream depends only on the kind.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            &Distribution::Constant { value } => value,
            &Distribution::Uniform { low, high } => low + (high - low) * stream.unit(),
            &Distribution::Lognormal { median, sigma } => median * libm::exp(sigma * stream.normal()),
            &Distribution::Exponential { mean } => mean * stream.exponential(),
            Distribution::Choice { values } => values[stream.below(values.len() as u64) as usize],
        }
    }

    /// Draw the residual time of a stay observed at a random instant: longer stays are more likely to be
    /// observed, and every instant within a stay is equally likely. The number of values taken from the stream
    /// depends only on the kind.
    pub fn remainder(&self, stream: &mut Stream) -> f64 {
        let met = match self {
            &Distribution::Exponential { .. } => return self.draw(stream), // the exponential distribution is memoryless
            &Distribution::Constant { value } => value,
            &Distribution::Uniform { low, high } => {
                libm::sqrt(low * low + (high * high - low * low) * stream.unit())
            }
            &Distribution::Lognormal { median, sigma } => {
                median * libm::exp(sigma * sigma + sigma * stream.normal())
            }
            Distribution::Choice { values } => {
                let at = stream.unit() * values.iter().sum::<f64>();
                let mut sum = 0.0;
                let met = values.iter().find(|&&value| {
                    sum += value;
                    at < sum
                });
                met.or(values.last()).copied().unwrap_or(0.0)
            }
        };
        met * stream.unit()
    }

    /// Mean of the distribution.
    pub fn mean(&self) -> f64 {
        match self {
            &Distribution::Constant { value } => value,
            &Distribution::Uniform { low, high } => (low + high) / 2.0,
            &Distribution::Lognormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
            &Distribution::Exponential { mean } => mean,
            Distribution::Choice { values } => values.iter().sum::<f64>() / values.len().max(1) as f64,
        }
    }
}

impl Described for Distribution {
    fn read(value: &Value) -> Result<Distribution, Refusal> {
        let kind = match value.get("kind") {
            Some(Value::Text(kind)) => kind.as_str(),
            _ => "",
        };
        let part = |key| match value.get(key) {
            Some(part) => f64::read(part).map_err(|refusal| refusal.within(key)),
            None => Err(Refusal::new("nothing", "a number").within(key)),
        };
        let read = match kind {
            "constant" => Distribution::Constant { value: part("value")? },
            "uniform" => Distribution::Uniform { low: part("low")?, high: part("high")? },
            "lognormal" => Distribution::Lognormal { median: part("median")?, sigma: part("sigma")? },
            "exponential" => Distribution::Exponential { mean: part("mean")? },
            "choice" => {
                let values = value.get("values").unwrap_or(&Value::Flag(false));
                Distribution::Choice {
                    values: Vec::read(values).map_err(|refusal| refusal.within("values"))?,
                }
            }
            _ => {
                let kinds = "constant, uniform, lognormal, exponential, choice";
                return Err(Refusal::new(format_args!("{kind:?}"), kinds).within("kind"));
            }
        };
        let (Value::Table(given), Value::Table(known)) = (value, read.write()) else {
            unreachable!("invariant: it has a kind")
        };
        if let Some((key, _)) = given.iter().find(|(key, _)| known.iter().all(|(name, _)| name != key)) {
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Refusal::new("an unknown key", names.join(", ")).within(key));
        }
        match read.is_drawable() {
            true => Ok(read),
            false => Err(Refusal::new(format_args!("{read:?}"), "finite values that are not negative")),
        }
    }

    fn write(&self) -> Value {
        let of = |kind: &str, parts: &[(&str, f64)]| {
            let kind = ("kind".to_string(), Value::Text(kind.to_string()));
            let parts = parts.iter().map(|(key, part)| (key.to_string(), Value::Number(*part)));
            Value::Table(std::iter::once(kind).chain(parts).collect())
        };
        match self {
            &Distribution::Constant { value } => of("constant", &[("value", value)]),
            &Distribution::Uniform { low, high } => of("uniform", &[("low", low), ("high", high)]),
            &Distribution::Lognormal { median, sigma } => {
                of("lognormal", &[("median", median), ("sigma", sigma)])
            }
            &Distribution::Exponential { mean } => of("exponential", &[("mean", mean)]),
            Distribution::Choice { values } => {
                Value::table([("kind", Value::Text("choice".to_string())), ("values", values.write())])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_of_their_distribution() {
        let all = [
            Distribution::Constant { value: 3.0 },
            Distribution::Uniform { low: 1.0, high: 4.0 },
            Distribution::Lognormal { median: 2.0, sigma: 0.5 },
            Distribution::Exponential { mean: 5.0 },
            Distribution::Choice { values: vec![1.0, 2.0, 9.0] },
        ];
        for distribution in all {
            let mut stream = Stream::new(3, "test");
            let n = 100_000;
            let mean = (0..n).map(|_| distribution.draw(&mut stream)).sum::<f64>() / n as f64;
            assert!((mean / distribution.mean() - 1.0).abs() < 0.02, "{distribution:?}: {mean}");
            assert!(distribution.is_drawable());
            assert_eq!(Distribution::read(&distribution.write()), Ok(distribution));
        }
        assert!(!Distribution::Uniform { low: 2.0, high: 1.0 }.is_drawable());
        assert!(!Distribution::Choice { values: vec![] }.is_drawable());
        assert!(!Distribution::Exponential { mean: f64::NAN }.is_drawable());
    }

    /// The expected mean is E[X^2] / (2 E[X]).
    #[test]
    fn what_is_left_of_a_stay_has_the_mean_of_renewal_theory() {
        let cases = [
            (Distribution::Constant { value: 3.0 }, 1.5),
            (Distribution::Uniform { low: 1.0, high: 3.0 }, (13.0 / 3.0) / 4.0),
            (Distribution::Exponential { mean: 2.0 }, 2.0),
            (Distribution::Choice { values: vec![0.0, 1.0, 5.0] }, (26.0 / 3.0) / 4.0),
            (Distribution::Lognormal { median: 1.0, sigma: 0.5 }, libm::exp(0.5) / (2.0 * libm::exp(0.125))),
        ];
        for (distribution, expected) in cases {
            let mut stream = Stream::new(1, "test");
            let mean = (0..100_000).map(|_| distribution.remainder(&mut stream)).sum::<f64>() / 1e5;
            assert!((mean / expected - 1.0).abs() < 0.02, "{distribution:?}: {mean}, {expected}");
        }
    }
}
