//! Quantities written with their unit: "1.2 Mbit/s", "25 ms", "64 KiB", "100 packets", "1.5 BDP", "1 %". A string is
//! parsed exactly, as a fraction, and rounded once, to whole ns, bit/s, bytes or packets, or to the nearest `f64`.
//!
//! Length: units, reading and what was meant by a unit that there is not share their tables.

pub use crate::exact::Exact;
use crate::nat::Nat;
use crate::words::{general, nearest, quote, quoted};
use crate::Written;
use crate::{Refusal, LONGEST_NS, MOST_BPS, MOST_BYTES, MOST_PACKETS};

/// Kind of quantity.
#[derive(Debug)]
pub struct Dimension {
    /// Name of this kind of quantity.
    pub name: &'static str,
    /// Name with an article, for messages.
    pub noun: &'static str,
    /// Units, each with its number of base units.
    pub units: &'static [(&'static str, u64)],
    /// Example, for messages.
    pub example: &'static str,
    /// Maximum, in base units.
    pub largest: u64,
    /// Maximum as text.
    pub shown: &'static str,
    /// Whether fractions of a base unit are rejected, as for packets; otherwise they are rounded, as for nanoseconds.
    pub indivisible: bool,
}

/// Base unit: nanoseconds.
pub const DURATION: Dimension = Dimension {
    name: "duration",
    noun: "a duration",
    units: &[
        ("ns", 1),
        ("us", 1000),
        ("µs", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    example: "25 ms",
    largest: LONGEST_NS,
    shown: "1000 h",
    indivisible: false,
};

/// Base unit: bits per second.
pub const RATE: Dimension = Dimension {
    name: "rate",
    noun: "a rate",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
    example: "1.2 Mbit/s",
    largest: MOST_BPS,
    shown: "100 Tbit/s",
    indivisible: false,
};

/// Base unit: bytes.
pub const SIZE: Dimension = Dimension {
    name: "size",
    noun: "a size",
    units: &[
        ("byte", 1),
        ("bytes", 1),
        ("B", 1),
        ("KB", 1000),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    example: "64 KiB",
    largest: MOST_BYTES,
    shown: "1000000 GB",
    indivisible: true,
};

/// Base unit: packets.
pub const PACKETS: Dimension = Dimension {
    name: "packets",
    noun: "a number of packets",
    units: &[("packet", 1), ("packets", 1)],
    example: "100 packets",
    largest: MOST_PACKETS,
    shown: "1000000000 packets",
    indivisible: true,
};

/// Base unit: the bandwidth-delay product of flow 0's path.
pub const BDP: Dimension = Dimension {
    name: "BDP",
    noun: "a multiple of the bandwidth-delay product",
    units: &[("BDP", 1)],
    example: "1.5 BDP",
    largest: 1_000_000,
    shown: "1000000 BDP",
    indivisible: false,
};

/// All dimensions.
pub const DIMENSIONS: [&Dimension; 5] = [&DURATION, &RATE, &SIZE, &PACKETS, &BDP];

/// Permitted values of a probability, for messages.
pub const SHARE: &str = "a number from 0 to 1 without quotes, or \"0 %\" to \"100 %\"";

/// Requirements on a quantity.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Permitted dimensions.
    pub dimensions: &'a [&'static Dimension],
    /// Whether zero is allowed. Negative values are always rejected.
    pub zero: bool,
    /// Whether fractions of a packet or byte are allowed, as in a mean.
    pub parts: bool,
}

impl<'a> Asked<'a> {
    /// Require one of these dimensions, above zero unless `zero`.
    pub const fn one(dimension: &'a [&'static Dimension], zero: bool) -> Asked<'a> {
        Asked { dimensions: dimension, zero, parts: false }
    }

    /// Read a quantity in base units, with its dimension.
    pub fn read(&self, value: &Written) -> Result<(Exact, &'static Dimension), Refusal> {
        match value {
            Written::Text(text) => self.parse(text),
            other => {
                let without = if other.is_number() { " without a unit" } else { "" };
                Err(Refusal::new(format_args!("{}{without}", quote(other)), self.describe()))
            }
        }
    }

    /// Parse a string as a quantity in base units, with its dimension.
    pub fn parse(&self, text: &str) -> Result<(Exact, &'static Dimension), Refusal> {
        let shown = || quoted(text);
        let (number, unit) = match split(text) {
            Some((number, Some(unit))) => (number, unit),
            Some((_, None)) => {
                return Err(Refusal::new(format_args!("{} without a unit", shown()), self.describe()))
            }
            None => {
                return Err(
                    overlong(text, self.dimensions).unwrap_or_else(|| Refusal::new(shown(), self.describe()))
                );
            }
        };
        let of = |dimension: &&'static Dimension| {
            let (_, factor) = dimension.units.iter().find(|(name, _)| *name == unit)?;
            Some((*dimension, *factor))
        };
        let Some((dimension, factor)) = self.dimensions.iter().find_map(of) else {
            let units: Vec<&str> = self.units().collect();
            let found = match meant(text, unit, &units) {
                Some(meant) => format!("{}; did you mean \"{meant}\"?", shown()),
                None => format!("{} with the unit {}", shown(), quoted(unit)),
            };
            return Err(Refusal::new(found, self.describe()));
        };
        let value = number.times(factor);
        let zero = value.numerator.is_zero();
        if number.negative && !zero {
            let found = format!("{}, which is negative", shown());
            return Err(Refusal::new(found, self.describe()));
        }
        if zero && !self.zero {
            return Err(Refusal::new(shown(), self.describe()));
        }
        if value > Exact::whole(dimension.largest as u128) {
            return Err(too_large(&shown(), dimension));
        }
        if dimension.indivisible && !self.parts && factor == 1 && !value.is_whole() {
            let base = match unit {
                "B" => "bytes".to_string(),
                plural if plural.ends_with('s') => plural.to_string(),
                one => format!("{one}s"),
            };
            return Err(Refusal::new(shown(), format_args!("{} in whole {base}", dimension.noun)));
        }
        if !zero && dimension.name != BDP.name && value < Exact::ratio(1, 2) {
            return Err(too_small(&shown(), dimension));
        }
        Ok((value, dimension))
    }

    /// Describe the permitted values, for messages.
    pub fn describe(&self) -> String {
        let nouns: Vec<&str> = self.dimensions.iter().map(|d| d.noun).collect();
        let kinds = match nouns.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => nouns.concat(),
        };
        let sign = if self.zero { "" } else { " above zero" };
        let examples: Vec<String> = self.dimensions.iter().map(|d| format!("\"{}\"", d.example)).collect();
        let units: Vec<&str> = self.units().collect();
        let (examples, units) = (examples.join(", "), units.join(", "));
        format!("{kinds}{sign} with its unit written out, e.g. {examples} (units: {units})")
    }

    fn units(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.dimensions.iter().flat_map(|d| d.units.iter().map(|(unit, _)| *unit))
    }
}

/// Read a probability: a number from 0 to 1, or a percentage as a string.
pub fn share(value: &Written) -> Result<f64, Refusal> {
    let refused = |without| Refusal::new(format_args!("{}{without}", quote(value)), SHARE);
    match value {
        Written::Text(text) => match split(text) {
            Some((number, Some("%"))) => {
                let share = number.times(1).times(&Exact::ratio(1, 100));
                let fits = (!number.negative || share.numerator.is_zero()) && share <= Exact::whole(1);
                if fits {
                    Ok(share.to_f64())
                } else {
                    Err(refused(""))
                }
            }
            Some((_, None)) => Err(refused(" without a unit")),
            _ => Err(refused("")),
        },
        Written::Whole(n @ (0 | 1)) => Ok(*n as f64),
        Written::Number(x) if (0.0..=1.0).contains(x) => Ok(x.abs()),
        _ => Err(refused("")),
    }
}

/// The number in a string, without its unit: `figures` times 10 to the power of `power`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    negative: bool,
    figures: u128,
    /// Power of ten of the last digit.
    power: i32,
}

impl Decimal {
    /// Return the number times a whole number.
    fn times(&self, factor: u64) -> Exact {
        let figures = Nat::from(self.figures).times(&Nat::from(factor as u128));
        let power = Nat::power_of_ten(self.power.unsigned_abs());
        match self.power {
            0.. => Exact { numerator: figures.times(&power), denominator: 1.into() },
            _ => Exact { numerator: figures, denominator: power },
        }
    }
}

/// Maximum number of digits before and after the point, and of an exponent. A hostile "1e999999999" must not be
/// expanded to that many digits.
const DIGITS: usize = 18;
const EXPONENT: usize = 2;

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t'..=b'\r')
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|c| c.is_ascii_digit()).count()
}

fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|&&c| is_space(c)).count()
}

/// Split a string into a number and an optional unit. The unit begins at the first character that cannot belong to the
/// number, so `1.x` is 1 with the unit `.x`.
fn split(text: &str) -> Option<(Decimal, Option<&str>)> {
    let bytes = text.as_bytes();
    let mut at = spaces(bytes);
    let negative = bytes.get(at) == Some(&b'-');
    at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let whole = at..at + digits(&bytes[at..]).min(DIGITS);
    if whole.is_empty() {
        return None;
    }
    let point = whole.end;
    let behind = match bytes.get(point) {
        Some(b'.') => digits(&bytes[point + 1..]).min(DIGITS),
        _ => 0,
    };
    let fractions = [behind, 0];
    for fraction in &fractions[usize::from(behind == 0)..] {
        let end = if *fraction > 0 { point + 1 + fraction } else { point };
        let mut exponents = vec![(end, 0)];
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let first = end + 1 + sign;
            let held = bytes.get(first..).map_or(0, digits).min(EXPONENT);
            for many in 1..=held {
                let power: i32 = text[first..first + many].parse().ok()?;
                exponents
                    .push((first + many, if bytes[end + 1] == b'-' && sign == 1 { -power } else { power }));
            }
        }
        for (end, exponent) in exponents.into_iter().rev() {
            let Some(unit) = unit(text, end) else { continue };
            let behind: u128 = match fraction {
                0 => 0,
                many => text[point + 1..point + 1 + many].parse().ok()?,
            };
            let before: u128 = text[whole.clone()].parse().ok()?;
            let figures = before * 10u128.pow(*fraction as u32) + behind;
            let decimal = Decimal { negative, figures, power: exponent - *fraction as i32 };
            return Some((decimal, unit));
        }
    }
    None
}

/// Return the rest of the string without surrounding spaces, if it is a unit or empty.
#[allow(clippy::option_option, reason = "no match, no unit, a unit")]
fn unit(text: &str, from: usize) -> Option<Option<&str>> {
    let rest = &text.as_bytes()[from..];
    let before = spaces(rest);
    let run = rest[before..].iter().take_while(|&&c| !is_space(c)).count();
    if before + run + spaces(&rest[before + run..]) != rest.len() {
        return None;
    }
    match (run, rest.get(before)) {
        (0, _) => Some(None),
        (_, Some(c)) if !c.is_ascii_digit() => Some(Some(&text[from + before..from + before + run])),
        _ if before > 0 => Some(Some(&text[from + before - 1..from + before + run])),
        _ => None,
    }
}

/// Return the quantity probably meant. Bytes per second are converted if bits per second are required.
fn meant(text: &str, unit: &str, units: &[&str]) -> Option<String> {
    let written = text.trim().strip_suffix(unit)?.trim();
    let prefix = unit.strip_suffix("B/s").or_else(|| unit.strip_suffix("Bps"));
    let bits = prefix.and_then(|prefix| {
        let (factor, unit) = match prefix {
            "" => (8.0, "bit/s"),
            "k" | "K" => (8.0, "kbit/s"),
            "M" => (8.0, "Mbit/s"),
            "G" => (8.0, "Gbit/s"),
            "Ki" => (8.0 * 1024.0, "bit/s"),
            "Mi" => (8.0 * 1_048_576.0, "bit/s"),
            "Gi" => (8.0 * 1_073_741_824.0, "bit/s"),
            _ => return None,
        };
        units.contains(&unit).then_some((factor, unit))
    });
    match bits {
        Some((factor, unit)) => {
            let number: f64 = written.parse().ok()?;
            Some(format!("{} {unit}", number * factor))
        }
        None => Some(format!("{written} {}", nearest(unit, units)?)),
    }
}

/// Whether a string is a number without a unit.
pub fn is_bare(text: &str) -> bool {
    matches!(split(text), Some((_, None)))
}

/// Return the refusal of a number with more digits than are supported.
fn overlong(text: &str, dimensions: &[&'static Dimension]) -> Option<Refusal> {
    let bytes = text.as_bytes();
    let mut at = spaces(bytes);
    let negative = bytes.get(at) == Some(&b'-');
    at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let whole = &text[at..at + digits(&bytes[at..])];
    at += whole.len();
    let mut fraction = "";
    if bytes.get(at) == Some(&b'.') {
        fraction = &text[at + 1..at + 1 + digits(&bytes[at + 1..])];
        at += if fraction.is_empty() { 0 } else { 1 + fraction.len() };
    }
    let mut exponent = "";
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let held = bytes.get(at + 1 + sign..).map_or(0, digits);
        if held > 0 {
            exponent = &text[at + 1..at + 1 + sign + held];
            at += 1 + exponent.len();
        }
    }
    let unit = unit(text, at)??;
    let dimension = dimensions.iter().find(|d| d.units.iter().any(|(name, _)| *name == unit))?;
    let figures = format!("{whole}{fraction}");
    let first = figures.find(|c| c != '0')?;
    if whole.is_empty() || negative {
        return None;
    }
    // Power of ten of the first nonzero digit. If an exponent is very long, only its sign matters.
    let mut power = whole.len() as i64 - 1 - first as i64;
    if !exponent.is_empty() {
        let far = exponent.trim_start_matches(['+', '-', '0']).len() > 9;
        let sign = if exponent.starts_with('-') { -1 } else { 1 };
        power += if far { sign * 1_000_000_000 } else { exponent.parse().unwrap_or(0) };
    }
    let shown = quoted(text);
    Some(match power {
        19.. => too_large(&shown, dimension),
        ..-18 => too_small(&shown, dimension),
        _ => Refusal::new(
            shown,
            format_args!(
                "{} with at most 18 digits before and after the point and an exponent of at most two",
                dimension.noun
            ),
        ),
    })
}

fn too_large(quoted: &str, dimension: &Dimension) -> Refusal {
    let allowed = format_args!("{} of at most {}", dimension.noun, dimension.shown);
    Refusal::new(format_args!("{quoted}, which is too large"), allowed)
}

fn too_small(quoted: &str, dimension: &Dimension) -> Refusal {
    let allowed = format_args!("{} of at least 1 {}", dimension.noun, dimension.units[0].0);
    Refusal::new(format_args!("{quoted}, which is too small"), allowed)
}

/// Format a multiple of the bandwidth-delay product for messages.
pub fn few_digits(x: &Exact) -> String {
    general(x.to_f64(), 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dimension: &'static Dimension) -> Result<u128, String> {
        let asked = Asked { dimensions: &[dimension], zero: false, parts: false };
        asked.parse(text).map(|(number, _)| number.half_up()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_text_is_read_exactly_and_rounded_once() {
        for (text, dimension, whole) in [
            ("1.2 Mbit/s", &RATE, 1_200_000),
            ("  64 KiB ", &SIZE, 65_536),
            ("0.1 us", &DURATION, 100),
            ("1.5e2 s", &DURATION, 150_000_000_000),
            ("2.5 ns", &DURATION, 3),
            ("0.000000000000000001e18 s", &DURATION, 1_000_000_000),
            ("+5ms", &DURATION, 5_000_000),
        ] {
            assert_eq!(read(text, dimension), Ok(whole), "{text}");
        }
        for (text, dimension, words) in [
            ("5", &RATE, "without a unit"),
            ("5 Mbps", &RATE, "did you mean \"5 Mbit/s\"?"),
            ("10 MB/s", &RATE, "did you mean \"80 Mbit/s\"?"),
            ("1.5 KiB/s", &RATE, "did you mean \"12288 bit/s\"?"),
            ("-20 ms", &DURATION, "which is negative"),
            ("1e99 s", &DURATION, "too large"),
            ("0.4 ns", &DURATION, "too small"),
            ("1.5 packets", &PACKETS, "in whole packets"),
            ("1234567890123456789 ns", &DURATION, "at most 18 digits"),
            ("1e999999999999 s", &DURATION, "too large"),
            ("1 2", &DURATION, "with the unit \" 2\""),
        ] {
            let refused = read(text, dimension).expect_err(text);
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    #[test]
    fn floats_are_the_nearest() {
        // decimals as parsed by the standard library, with up to 36 digits and products beyond 128 bits
        let mut state = 1u64;
        let mut next = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..100_000 {
            let (whole, many) = (next(1 << 31) * next(1 << 31) % 10u64.pow(18), 1 + next(18) as usize);
            let behind: String = (0..many).map(|_| (b'0' + next(10) as u8) as char).collect();
            let text = format!("{whole}.{behind}e{}", next(120) as i64 - 60);
            let (decimal, _) = split(&text).expect("a number");
            assert_eq!(decimal.times(1).to_f64(), text.parse::<f64>().expect("a number"), "{text}");
        }
        // a tie is rounded to even; a number 10^-36 above it is not
        let tie = Exact::whole((1 << 53) + 1);
        assert_eq!(tie.to_f64(), 9_007_199_254_740_992.0);
        let beyond = Exact {
            numerator: tie.numerator.times(&Nat::power_of_ten(36)).plus(&1.into()),
            denominator: Nat::power_of_ten(36),
        };
        assert_eq!(beyond.to_f64(), 9_007_199_254_740_994.0);
    }

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        let of = |text: &str| share(&Written::Text(text.to_string()));
        assert_eq!(of("1 %"), Ok(0.01));
        assert_eq!(of("100%"), Ok(1.0));
        assert!(of("100.1 %").is_err() && of("-1 %").is_err() && of("0.5").is_err());
        assert_eq!(share(&Written::Whole(1)), Ok(1.0));
        assert!(share(&Written::Number(f64::NAN)).is_err());
    }
}
