//! Linux queueing disciplines: netlink attributes and `tc` arguments.
//!
//! Each queue of a scenario defines its kernel form once, in a function `qdisc` beside its `table!`. The guest of the
//! linux backend passes the attributes to the kernel; `ackclock export` writes the arguments. Neither needs to know
//! the discipline.
//!
//! Attribute numbers are those of `include/uapi/linux/pkt_sched.h`.

use std::fmt::Display;

use ackclock_core::schema::{Refusal, Value};
use ackclock_core::Span;

/// Limit, in packets, of a queue that never drops.
pub const ENOUGH: u32 = 1_000_000;

/// Bytes of a full frame with its Ethernet header, as counted by the kernel's disciplines.
pub const FULL_FRAME: u32 = 1514;

/// A kernel queueing discipline with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Qdisc {
    kind: &'static str,
    /// First bytes of the options: a kernel struct.
    head: Vec<u8>,
    attributes: Vec<(u16, Vec<u8>)>,
    /// Whether the options are flagged as nested.
    nested: bool,
    /// Whether the discipline is reinstalled when the run begins, because its clock runs while no packets are sent.
    renews: bool,
    words: String,
}

impl Qdisc {
    /// Return a discipline without options. `kind` is its name in the kernel.
    pub fn new(kind: &'static str) -> Qdisc {
        let words = kind.to_string();
        Qdisc { kind, head: Vec::new(), attributes: Vec::new(), nested: false, renews: false, words }
    }

    /// Add an attribute with its `tc` arguments, in which `{}` is replaced by the value; "" if `tc` needs none.
    pub fn row<T: Number>(mut self, attribute: u16, value: T, words: &str) -> Qdisc {
        self.attributes.push((attribute, value.bytes()));
        self.says(&words.replace("{}", &value.text()))
    }

    /// Add an attribute if it has a value.
    pub fn some<T: Number>(self, attribute: u16, value: Option<T>, words: &str) -> Qdisc {
        match value {
            Some(value) => self.row(attribute, value, words),
            None => self,
        }
    }

    /// Add a Boolean attribute, with the arguments for true and false.
    pub fn flag(self, attribute: u16, on: bool, words: [&str; 2]) -> Qdisc {
        self.row(attribute, on as u32, words[!on as usize])
    }

    /// Add `tc` arguments without an attribute. `{bits}` is replaced by the rate of the shaper above, bit/s.
    pub fn says(mut self, words: &str) -> Qdisc {
        if !words.is_empty() {
            self.words.push(' ');
            self.words.push_str(words);
        }
        self
    }

    /// Append whole numbers to the head of the options.
    pub fn begins(mut self, words: &[u32]) -> Qdisc {
        self.head.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        self
    }

    /// Append bytes to the head of the options.
    pub fn bytes(mut self, bytes: &[u8]) -> Qdisc {
        self.head.extend(bytes);
        self
    }

    /// Flag the options as nested.
    pub fn nested(mut self) -> Qdisc {
        self.nested = true;
        self
    }

    /// Set whether the discipline is reinstalled when the run begins.
    pub fn renews(mut self, it_is_so: bool) -> Qdisc {
        self.renews = it_is_so;
        self
    }

    /// Return the discipline as plain values, for the guest's job and for `tc`.
    pub fn value(&self) -> Value {
        let bytes = |bytes: &[u8]| Value::List(bytes.iter().map(|&byte| Value::Whole(byte.into())).collect());
        let attribute = |(number, value): &(u16, Vec<u8>)| {
            Value::List(vec![Value::Whole((*number).into()), bytes(value)])
        };
        Value::table([
            ("kind", Value::Text(self.kind.to_string())),
            ("head", bytes(&self.head)),
            ("attributes", Value::List(self.attributes.iter().map(attribute).collect())),
            ("nested", Value::Flag(self.nested)),
            ("renews", Value::Flag(self.renews)),
            ("words", Value::Text(self.words.clone())),
        ])
    }
}

/// Number that can be the value of an attribute.
pub trait Number {
    /// Bytes in the kernel's representation.
    fn bytes(&self) -> Vec<u8>;
    /// Text for `tc`.
    fn text(&self) -> String;
}

macro_rules! numbers {
    ($($kind:ty),+) => {$(
        impl Number for $kind {
            fn bytes(&self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
            fn text(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
numbers! { u8, u32, u64, i32 }

impl<const N: usize> Number for [u8; N] {
    fn bytes(&self) -> Vec<u8> {
        self.to_vec()
    }
    fn text(&self) -> String {
        String::new()
    }
}

/// netem's jitter.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// Deviation, ns.
    pub deviation_ns: u64,
    /// Correlation in 2^-32.
    pub rho: u32,
    /// Quantiles of the distribution; `None` = uniform.
    pub table: Option<&'static [i16]>,
    /// Arguments of `tc` after the delay.
    pub words: String,
}

/// netem: loss, then rate, then delay.
#[derive(Clone, Debug)]
pub struct Netem {
    /// Maximum number of packets.
    pub limit: u32,
    /// Delay, ns.
    pub delay_ns: u64,
    /// Jitter around the delay.
    pub jitter: Option<Jitter>,
    /// Rate, bytes per second; 0 = infinite.
    pub rate: u64,
    /// Bytes charged on top of the frame.
    pub overhead: i32,
    /// Loss probability, in 2^-32.
    pub loss: u32,
    /// Probability of duplication, in 2^-32.
    pub duplicate: u32,
    /// Probability of a flipped bit, in 2^-32.
    pub corrupt: u32,
    /// Gilbert-Elliott model instead of `loss`: p, r, 1 - loss in the bad state, loss in the good state, in 2^-32.
    pub model: Option<[u32; 4]>,
    /// Seed for random losses.
    pub seed: Option<u64>,
}

impl Netem {
    /// A netem that changes nothing.
    pub const PLAIN: Netem = Netem {
        limit: ENOUGH,
        delay_ns: 0,
        jitter: None,
        rate: 0,
        overhead: 0,
        loss: 0,
        duplicate: 0,
        corrupt: 0,
        model: None,
        seed: None,
    };

    /// Return the discipline for netlink and `tc`.
    pub fn qdisc(&self) -> Qdisc {
        // latency in us is superseded by LATENCY64
        let made = Qdisc::new("netem").begins(&[0, self.limit, self.loss, 0, self.duplicate, 0]);
        let delay = match (&self.jitter, self.delay_ns) {
            (None, 0) => String::new(),
            (None, delay) => format!("delay {}", time(delay)),
            (Some(jitter), delay) => format!("delay {} {}", time(delay), jitter.words),
        };
        let mut made = made.says(&format!("limit {}", self.limit)).row(10, self.delay_ns, &delay);
        if let Some(jitter) = &self.jitter {
            let correlations = [jitter.rho, 0, 0].into_iter().flat_map(u32::to_ne_bytes); // delay, loss, duplicate
            made = made.row(11, jitter.deviation_ns, "");
            made.attributes.push((1, correlations.collect()));
            if let Some(table) = jitter.table {
                made.attributes.push((2, table.iter().flat_map(|entry| entry.to_ne_bytes()).collect()));
            }
        }
        made = made.some(14, self.seed, "");
        if self.loss > 0 {
            made = made.says(&format!("loss random {}", percent(self.loss)));
        }
        if let Some(model) = self.model {
            // tc takes the loss in the bad state, not its complement
            let [p, r, kept, good] = model;
            let words = [p, r, u32::MAX - kept, good].map(percent).join(" ");
            let inner = [20u16, 2].into_iter().flat_map(u16::to_ne_bytes); // NETEM_LOSS_GE
            let inner: Vec<u8> = inner.chain(model.into_iter().flat_map(u32::to_ne_bytes)).collect();
            made.attributes.push((5, inner));
            made = made.says(&format!("loss gemodel {words}"));
        }
        if self.duplicate > 0 {
            made = made.says(&format!("duplicate {}", percent(self.duplicate)));
        }
        if self.corrupt > 0 {
            let uncorrelated = [self.corrupt, 0].into_iter().flat_map(u32::to_ne_bytes);
            made.attributes.push((4, uncorrelated.collect()));
            made = made.says(&format!("corrupt {}", percent(self.corrupt)));
        }
        if self.rate > 0 {
            let slow = self.rate.min(u32::MAX as u64) as u32;
            let spec = [slow, self.overhead as u32, 0, 0].into_iter().flat_map(u32::to_ne_bytes);
            made.attributes.push((6, spec.collect()));
            if self.rate > u32::MAX as u64 {
                made = made.row(8, self.rate, "");
            }
            made = made.says(&format!("rate {}bit {}", 8 * self.rate, self.overhead));
        }
        made
    }
}

/// Convert to microseconds, the unit of attributes.
pub fn us(span: Span) -> u32 {
    (span.0 / 1000).min(u32::MAX as u64) as u32
}

/// Convert a probability to 2^-32.
pub fn share(p: f64) -> u32 {
    libm::rint(p * 4_294_967_296.0).min(u32::MAX as f64) as u32
}

/// Format a probability for `tc` as the shortest percentage that `tc` reads as this one.
fn percent(share: u32) -> String {
    let exact = 100.0 * share as f64 / 4_294_967_296.0;
    let read = |text: &str| text.parse::<f64>().map(|x| libm::rint(x / 100.0 * u32::MAX as f64) as u32);
    let mut words = (3..11).map(|digits| general(exact, digits));
    let shortest = words.find(|text| read(text) == Ok(share));
    format!("{}%", shortest.unwrap_or_else(|| general(exact, 10)))
}

/// Format a time for `tc`.
pub fn time(ns: u64) -> String {
    match ns % 1000 {
        0 => format!("{}us", ns / 1000),
        _ => format!("{ns}ns"),
    }
}

/// Error for a value of `key` that the kernel does not support.
pub fn refused(key: &str, found: impl Display) -> Refusal {
    Refusal::new(found, "what the kernel's queueing disciplines can do").within(key)
}

/// Format a number with this many significant digits, without trailing zeros, like `%g`.
pub fn general(x: f64, digits: usize) -> String {
    let exact = format!("{x:.*e}", digits - 1);
    let (mantissa, exponent) = exact.split_once('e').expect("invariant: as it was written");
    let exponent: i32 = exponent.parse().expect("invariant: as it was written");
    let plain = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match (-4..digits as i32).contains(&exponent) {
        true => plain(&format!("{x:.*}", (digits as i32 - 1 - exponent).max(0) as usize)),
        false => format!("{}e{}{:02}", plain(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_printf_writes_them() {
        let cases = [
            (0.1, 6, "0.1"),
            (0.160_156_25, 6, "0.160156"),
            (3.199_218_75, 6, "3.19922"),
            (100.0, 7, "100"),
            (1e-5, 6, "1e-05"),
            (1_234_567.0, 6, "1.23457e+06"),
            (0.0, 7, "0"),
        ];
        for (x, digits, text) in cases {
            assert_eq!(general(x, digits), text);
        }
    }

    #[test]
    fn percentages_are_read_by_tc_as_they_were() {
        let cases = [
            (0.001, "0.1%"),
            (0.2, "20%"),
            (0.8, "80%"),
            (1.0, "100%"),
            (0.0, "0%"),
            (1.0 / 3.0, "33.33333333%"),
        ];
        for (p, text) in cases {
            assert_eq!(percent(share(p)), text);
        }
    }

    #[test]
    fn an_attribute_and_its_words_are_one_row() {
        let made = Qdisc::new("x")
            .row(2, 7u32, "limit {}")
            .flag(4, false, ["ecn", "noecn"])
            .some(5, None::<u8>, "n");
        assert_eq!(made.words, "x limit 7 noecn");
        assert_eq!(made.attributes, [(2, vec![7, 0, 0, 0]), (4, vec![0; 4])]);
    }
}
