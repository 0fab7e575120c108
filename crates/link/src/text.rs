//! Parsing of a link's text.

use std::fmt;

use ackclock_core::schema::front::{Front, NoFiles};
use ackclock_core::schema::quantity::Exact;
use ackclock_core::schema::{toml, Described, Place, Refusal, Value};
use ackclock_net::link::LinkParams;
use ackclock_net::LinkConfig;

/// Names and definitions of the presets: round numbers for tests, one direction each.
pub const PRESETS: &[(&str, &str)] = &[
    ("dsl", "rate = '16 Mbit/s'\ndelay = '15 ms'\nqueue = { kind = 'drop-tail', limit = '100 packets' }"),
    ("cable", "rate = '100 Mbit/s'\ndelay = '10 ms'\nqueue = { kind = 'pie' }"),
    ("fibre", "rate = '1 Gbit/s'\ndelay = '5 ms'\nqueue = { kind = 'drop-tail', limit = '1 BDP' }"),
    ("bufferbloat", "rate = '10 Mbit/s'\ndelay = '20 ms'\nqueue = { kind = 'drop-tail', limit = '1000 packets' }"),
    ("shallow", "rate = '100 Mbit/s'\ndelay = '20 ms'\nqueue = { kind = 'drop-tail', limit = '10 packets' }"),
    ("fq-codel", "rate = '50 Mbit/s'\ndelay = '10 ms'\nqueue = { kind = 'fq-codel', ecn = true }"),
    ("l4s", "rate = '40 Mbit/s'\ndelay = '5 ms'\nqueue = { kind = 'dualpi2', limit = '10000 packets' }"),
    ("datacentre", "rate = '10 Gbit/s'\ndelay = '20 us'\nqueue = { kind = 'threshold', mark = '65 packets', limit = '1000 packets' }"),
    ("wifi", "rate = '50 Mbit/s'\ndelay = '3 ms'\nwifi = { mean = '7 ms' }\nqueue = { kind = 'drop-tail', limit = '500 packets' }"),
    ("mobile", "rate = '20 Mbit/s'\ndelay = '25 ms'\njitter = '10 ms'\nqueue = { kind = 'drop-tail', limit = '300 packets' }"),
    ("satellite", "rate = '50 Mbit/s'\ndelay = '280 ms'\nloss = { kind = 'bernoulli', p = '0.1 %' }\nqueue = { kind = 'drop-tail', limit = '1 BDP' }"),
    ("policed", "rate = '100 Mbit/s'\ndelay = '10 ms'\nloss = { kind = 'policer', rate = '10 Mbit/s', bucket = '100 kB' }\nqueue = { kind = 'drop-tail', limit = '1 BDP' }"),
    ("lossy", "rate = '10 Mbit/s'\ndelay = '20 ms'\nloss = { kind = 'bernoulli', p = '2 %' }\nqueue = { kind = 'drop-tail', limit = '1 BDP' }"),
    ("outages", "rate = '20 Mbit/s'\ndelay = '20 ms'\noutage = { at = '5 s', every = '10 s', lasts = '500 ms' }\nqueue = { kind = 'drop-tail', limit = '1 BDP' }"),
];

/// Error in the text of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Dotted key; empty for the entire text.
    pub key: String,
    /// Value found there.
    pub found: String,
    /// Values allowed there.
    pub allowed: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { key, found, allowed } = self;
        let key = if key.is_empty() { "link" } else { key };
        write!(f, "{key}: found {found}; allowed: {allowed}")
    }
}

impl std::error::Error for Mistake {}

impl From<Refusal> for Mistake {
    fn from(refusal: Refusal) -> Mistake {
        Mistake { key: refusal.key, found: refusal.found, allowed: refusal.allowed }
    }
}

/// Keys that need TCP headers, which are invisible to a link.
const OF_TCP: [&str; 2] = ["thin_acks", "merging"];

/// Return the configuration for a link's text or the name of a preset.
pub(crate) fn config(text: &str) -> Result<LinkConfig, Mistake> {
    let trimmed = text.trim();
    let preset = PRESETS.iter().find(|(name, _)| *name == trimmed);
    let is_name =
        !trimmed.is_empty() && trimmed.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let text = match preset {
        Some((_, text)) => text,
        None if is_name => {
            let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            let allowed = format!("text of a link, or a preset: {}", names.join(", "));
            return Err(Mistake { key: String::new(), found: format!("{trimmed:?}"), allowed });
        }
        None => text,
    };
    let written = toml::read(text)
        .map_err(|(_, why)| Refusal::new(format_args!("no valid TOML ({why})"), "TOML"))?
        .written;
    if let Some(key) = OF_TCP.iter().find(|key| written.get(key).is_some()) {
        let allowed = "no such key: it needs headers of TCP, which this link does not see";
        return Err(Refusal::new("a value", allowed).within(key).into());
    }
    let which = written.get("loss").and_then(|loss| loss.get("applies_to"));
    if let Some(which @ ("syn" | "originals")) = which.and_then(|which| which.text()) {
        let allowed = "\"all\" or \"data\": SYNs and retransmissions are told by headers of TCP, which this link does not see";
        return Err(Refusal::new(format_args!("{which:?}"), allowed)
            .within("applies_to")
            .within("loss")
            .into());
    }
    let mut front = Front::new(&NoFiles);
    let mut value = front.table(&written, LinkParams::TABLE, false);
    if let Some(wrong) = front.wrong.into_iter().next() {
        return Err(wrong.into());
    }
    let bdp = bdp(&value);
    let numbers = front.multiples.iter().map(|multiple| multiple.of(&bdp)).collect::<Result<Vec<_>, _>>()?;
    fill(&mut value, &numbers);
    let params = LinkParams::read(&value)?;
    let mut broken = Vec::new();
    params.judge(&Place::whole(Some(&written)), &mut broken);
    match broken.into_iter().next() {
        Some(refusal) => Err(refusal.into()),
        None => Ok(params.named("link".to_string())),
    }
}

/// Return the rate times twice the delay, in 1,500-byte packets; 0 without a rate or a delay.
fn bdp(link: &Value) -> Exact {
    let number = |key| match link.get(key) {
        Some(Value::Whole(n)) => Exact::whole(u128::from(*n)),
        _ => Exact::whole(0),
    };
    number("rate").times(&number("delay")).times(&Exact::ratio(2, 1_000_000_000 * 8 * 1500))
}

/// Replace pending multiples of the bandwidth-delay product by their values.
fn fill(value: &mut Value, numbers: &[Value]) {
    match value {
        Value::Pending(waits) => *value = numbers[*waits].clone(),
        Value::List(entries) => entries.iter_mut().for_each(|entry| fill(entry, numbers)),
        Value::Table(entries) => entries.iter_mut().for_each(|(_, entry)| fill(entry, numbers)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_net::QueueConfig;

    #[test]
    fn every_preset_is_a_link() {
        for (name, text) in PRESETS {
            assert_eq!(config(name), config(text), "{name}");
            assert!(config(name).is_ok(), "{name}: {:?}", config(name));
        }
    }

    /// Check that a link accepts every example in the crate documentation's table of keys.
    #[test]
    fn the_page_tells_the_truth_about_keys() {
        let page = include_str!("lib.rs").split("//! # Presets").next().expect("text ahead of it");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("//! | `")).collect();
        let mut seen = 0;
        for row in rows {
            let cells: Vec<&str> = row.split('|').collect();
            let code = |cell: &str| -> Vec<String> {
                cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
            };
            for (key, example) in code(cells[1]).iter().zip(code(cells[2])) {
                let text = match key.as_str() {
                    "rate" | "delay" => format!("{key} = {example}"),
                    _ => format!("rate = '10 Mbit/s'\ndelay = '5 ms'\n{key} = {example}"),
                };
                assert!(config(&text).is_ok(), "{text}: {:?}", config(&text));
                seen += 1;
            }
        }
        assert_eq!(seen, 11);
        for kind in ["codel", "fq-codel", "pie", "cake"] {
            let text = format!("rate = '10 Mbit/s'\nqueue = {{ kind = '{kind}' }}");
            assert!(config(&text).is_ok(), "{text}: {:?}", config(&text));
        }
    }

    /// Check that the crate documentation has a row for each preset, with its rate and delay.
    #[test]
    fn the_page_tells_the_truth_about_presets() {
        let page = include_str!("lib.rs");
        let rows = page.split_once("//! # Presets").expect("a section").1;
        let rows = rows.split_once("//! # Seeds").expect("a section").0;
        for (name, text) in PRESETS {
            let quoted: Vec<&str> = text.split('\'').skip(1).step_by(2).collect();
            let row = format!("| `{name}` | {} | {} |", quoted[0], quoted[1]);
            assert!(rows.contains(&row), "{row}");
        }
        assert_eq!(rows.matches("//! | `").count(), PRESETS.len());
    }

    #[test]
    fn a_product_of_rate_and_delay_goes_there_and_back() {
        let link =
            config("rate = '12 Mbit/s'\ndelay = '10 ms'\nqueue = { kind = 'drop-tail', limit = '1.5 BDP' }");
        assert_eq!(link.expect("a link").queue, QueueConfig::packets(30));
    }

    #[test]
    fn a_mistake_names_key_and_what_is_allowed() {
        let said = |text: &str| config(text).expect_err("refused").to_string();
        assert!(said("rate = '12 Mbit/s'\ndelai = '10 ms'").starts_with("delai: found an unknown key"));
        assert!(
            said("queue = { kind = 'codle' }").starts_with("queue.kind: found"),
            "{}",
            said("queue = { kind = 'codle' }")
        );
        assert!(said("queue = { kind = 'drop-tail', limit = '1 BDP' }").contains("no delay or no rate"));
        assert!(said("thin_acks = 3").contains("headers of TCP"));
        for which in ["syn", "originals"] {
            assert!(said(&format!("loss = {{ kind = 'bernoulli', p = '1 %', applies_to = '{which}' }}"))
                .starts_with("loss.applies_to: found"));
        }
        assert!(said("rate = ").contains("no valid TOML"));
        assert!(said("dls").contains("a preset: dsl, cable"), "{}", said("dls"));
    }
}
