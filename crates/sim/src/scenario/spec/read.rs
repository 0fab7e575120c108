//! The only path from a written scenario to a run: [`read`] takes the text of a file, [`compile`] its values. Both
//! check everything. Neither needs Python or a disk: files that a scenario refers to are read through [`Files`].

use std::sync::Arc;

use ackclock_core::schema::front::{Files, Front};
use ackclock_core::schema::quantity::Exact;
#[cfg(feature = "toml")]
use ackclock_core::schema::toml;
use ackclock_core::schema::words::float;
use ackclock_core::schema::{Described, Place, Refusal, Registry, Value, Written};

use super::Scenario;
use crate::workload::{Carried, WorkloadConfig};

/// Preset for all hosts of a scenario, also the name of the sending hosts.
pub const MODERN: &str = "modern";
const MODERN_PEER: &str = "modern-peer";
/// Size of a full IP packet, bytes; the unit of a bandwidth-delay product.
const MTU: u128 = 1500;
/// Bandwidth-delay product, in packets, assumed for a path that has none, so that the rules can still be checked
/// and report the reason.
const ANY_BDP: u128 = 1000;

/// Registry of host profiles.
pub static PROFILES: Registry =
    Registry { name: "profiles", names: || names(ackclock_tcp::PROFILES), others: &[], files: false };
/// Registry of recovery rules.
pub static RECOVERY: Registry = Registry {
    name: "recovery",
    names: || names(ackclock_cc::recovery::REGISTRY),
    others: &[],
    files: false,
};
/// Registry of congestion controllers. Names of kernel controllers have at most 15 characters (TCP_CA_NAME_MAX).
pub static CONTROLLERS: Registry = Registry {
    name: "controllers",
    names: || {
        let quinn = crate::scenario::names::quinn_controllers();
        names(&[ackclock_cc::controller::REGISTRY, ackclock_pcc::REGISTRY, quinn].concat())
    },
    others: &[
        ("custom:", ".+", |rest| !rest.is_empty()),
        ("stack:", "[A-Za-z0-9_.-]{1,40}:[A-Za-z0-9_.-]{1,40}", |rest| {
            let part = |text: &str| {
                let known = |c: u8| c.is_ascii_alphanumeric() || b"_.-".contains(&c);
                (1..=40).contains(&text.len()) && text.bytes().all(known)
            };
            rest.split_once(':').is_some_and(|(stack, controller)| part(stack) && part(controller))
        }),
        ("kernel:", "[A-Za-z0-9_-]{1,15}", |rest| {
            rest.len() <= 15 && rest.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-')
        }),
    ],
    files: true,
};

fn names(registry: &[(&'static str, &str)]) -> Vec<&'static str> {
    registry.iter().map(|(name, _)| *name).collect()
}

/// A valid scenario, with its values in base units.
pub struct Compiled {
    /// The scenario to run.
    pub scenario: Arc<Scenario>,
    /// All values in base units. They identify the run; see [`Compiled::text`].
    pub values: Value,
}

/// Reason why a file is not a valid scenario.
#[cfg(feature = "toml")]
#[derive(Clone, Debug)]
pub struct Refused {
    /// The error.
    pub refusal: Refusal,
    /// Position of the error in the text; `None` if it has none.
    pub place: Option<toml::Position>,
}

/// Read a scenario from the text of a file.
#[cfg(feature = "toml")]
pub fn read(text: &str, files: &dyn Files) -> Result<Compiled, Vec<Refused>> {
    let file = toml::read(text).map_err(|(position, why)| {
        let refusal = Refusal::new(format_args!("no valid TOML ({why})"), "TOML");
        vec![Refused { refusal, place: Some(position) }]
    })?;
    compile(&file.written, files).map_err(|refusals| {
        let placed = |refusal: Refusal| Refused { place: file.place(&refusal), refusal };
        refusals.into_iter().map(placed).collect()
    })
}

/// Compile a scenario from its written values: read them, resolve sizes in BDPs, and check all rules.
pub fn compile(written: &Written, files: &dyn Files) -> Result<Compiled, Vec<Refusal>> {
    let (compiled, unsized_by) = unjudged(written, files)?;
    let mut broken = Vec::new();
    compiled.scenario.judge(&Place::whole(Some(written)), &mut broken);
    if broken.is_empty() {
        broken.extend(unsized_by);
    }
    match broken.is_empty() {
        true => Ok(compiled),
        false => Err(broken),
    }
}

/// Compile a scenario without checking the rules that relate several keys. If a size is in BDPs of a path that has
/// no bandwidth-delay product, that error is returned as well, because a rule may report a better reason.
pub fn unjudged(written: &Written, files: &dyn Files) -> Result<(Compiled, Option<Refusal>), Vec<Refusal>> {
    let mut front = Front::new(files);
    let mut values = front.table(written, Scenario::TABLE, false);
    if !front.wrong.is_empty() {
        return Err(front.wrong);
    }
    values.remove("format"); // the format version is not part of the content
    own_controllers(&mut values, written, files).map_err(|refusal| vec![refusal])?;
    modern_hosts(&mut values);
    let network = values.get_mut("network").expect("invariant: it is required");
    mirrors(network);
    let path = written.get("flows").and_then(|flows| match flows {
        Written::List(groups) => groups.first()?.get("path")?.text(),
        _ => None,
    });
    let bdp = Facts::of(network, path).bdp();
    let sized =
        |bdp: &Exact| front.multiples.iter().map(|multiple| multiple.of(bdp)).collect::<Result<Vec<_>, _>>();
    let (numbers, unsized_by) = match sized(&bdp) {
        Ok(numbers) => (numbers, None),
        Err(refusal) => match sized(&Exact::whole(ANY_BDP)) {
            Ok(numbers) => (numbers, Some(refusal)),
            Err(_) => return Err(vec![refusal]),
        },
    };
    if !numbers.is_empty() {
        fill(network, &numbers);
    }
    let scenario = Scenario::read(&values).map_err(|refusal| vec![refusal])?;
    Ok((Compiled { scenario: Arc::new(scenario), values }, unsized_by))
}

/// Replace a user's own controllers by their engine-internal names, which include the options.
fn own_controllers(values: &mut Value, written: &Written, files: &dyn Files) -> Result<(), Refusal> {
    let (Some(Value::List(groups)), Some(Written::List(given))) =
        (values.get_mut("flows"), written.get("flows"))
    else {
        return Ok(());
    };
    for (group, given) in groups.iter_mut().zip(given) {
        let name = given.get("congestion_control").and_then(Written::text).unwrap_or_default();
        if !name.starts_with("custom:") && ackclock_core::schema::is_own(name) {
            let none = Written::Table(Vec::new());
            let key = files.controller(name, given.get("congestion_control_options").unwrap_or(&none))?;
            group.set("congestion_control", Value::Text(format!("custom:{key}")));
            group.set("congestion_control_options", Value::Table(Vec::new()));
        }
    }
    Ok(())
}

/// Expand `hosts = "modern"`.
fn modern_hosts(values: &mut Value) {
    if values.get("hosts") != Some(&Value::Text(MODERN.to_string())) {
        return;
    }
    let text = |text: &str| Written::Text(text.to_string());
    let host = |name: &str| {
        let given = [("name", text(name)), ("shared", Written::Flag(false)), ("preset", text(MODERN))];
        let given = Written::Table(given.into_iter().map(|(key, value)| (key.to_string(), value)).collect());
        Front::new(&ackclock_core::schema::front::NoFiles).table(
            &given,
            ackclock_net::host::HostParams::TABLE,
            false,
        )
    };
    values.set("hosts", Value::List(vec![host(MODERN), host(MODERN_PEER)]));
    let Some(Value::List(groups)) = values.get_mut("flows") else { return };
    for group in groups {
        let kind = match group.get("workload").and_then(|workload| workload.get("kind")) {
            Some(Value::Text(kind)) => kind.as_str(),
            _ => "",
        };
        let plain = WorkloadConfig::carried_by(Carried::ByDatagrams).contains(&kind);
        let other =
            |name: &str| crate::scenario::names::is_pcc(name) || crate::scenario::names::is_foreign(name);
        let other = matches!(group.get("congestion_control"), Some(Value::Text(name)) if other(name));
        if let (false, Some(Value::Table(stack))) = (plain || other, group.get_mut("stack")) {
            let tso = stack.iter().position(|(key, _)| key == "tso").map(|at| stack.remove(at).1);
            stack.insert(0, ("tso".to_string(), tso.unwrap_or(Value::Flag(true))));
        }
        group.set("host", Value::Text(MODERN.to_string()));
        group.set("peer_host", Value::Text(MODERN_PEER.to_string()));
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let Some(Value::List(entries)) = list else { return Vec::new() };
    let text = |entry: &Value| match entry {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    entries.iter().filter_map(text).collect()
}

fn list<'a>(network: &'a Value, key: &str) -> &'a [Value] {
    match network.get(key) {
        Some(Value::List(entries)) => entries,
        _ => &[],
    }
}

fn named<'a>(entries: &'a [Value], name: &str) -> Option<&'a Value> {
    entries.iter().rev().find(|entry| matches!(entry.get("name"), Some(Value::Text(own)) if own == name))
}

/// Add the return paths that a graph does not list: copies of the forward links, in reverse order.
fn mirrors(network: &mut Value) {
    let mut links = list(network, "links").to_vec();
    let mut paths = list(network, "paths").to_vec();
    for path in paths.iter_mut().filter(|path| list(path, "backward").is_empty()) {
        let mut back = Vec::new();
        for name in texts(path.get("forward")).iter().rev() {
            let mirror = Value::Text(format!("{name}.backward"));
            let copy = named(&links, name).cloned();
            if let (None, Some(mut copy)) = (named(&links, &format!("{name}.backward")), copy) {
                copy.set("name", mirror.clone());
                links.push(copy);
            }
            back.push(mirror);
        }
        path.set("backward", Value::List(back));
    }
    network.set("links", Value::List(links));
    network.set("paths", Value::List(paths));
}

/// Properties of a path through a network.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Round-trip propagation delay, ns.
    pub rtt_ns: u128,
    /// Bottleneck rate, bit/s: the rate of `bottleneck`, or of the slowest link on a graph's path; `None` if all
    /// rates are infinite.
    pub bps: Option<u128>,
    framing: u128,
}

fn number(table: &Value, key: &str) -> Option<u128> {
    match table.get(key) {
        Some(Value::Whole(n)) => Some(*n as u128),
        _ => None,
    }
}

impl Facts {
    /// Facts about a network in base units; its return paths must be complete. The first path is used if none is
    /// called `path`.
    pub fn of(network: &Value, path: Option<&str>) -> Facts {
        let graph = network.get("topology") == Some(&Value::Text("graph".to_string()));
        let (out, back): (Vec<&Value>, Vec<&Value>) = if graph {
            let paths = list(network, "paths");
            let is_it = |one: &&Value| matches!((one.get("name"), path), (Some(Value::Text(own)), Some(name)) if own == name);
            let chosen = paths.iter().find(is_it).or(paths.first());
            let way = |key| {
                let names = chosen.map_or(Vec::new(), |path| texts(path.get(key)));
                let links = names.iter().filter_map(|name| named(list(network, "links"), name)?.get("link"));
                links.collect()
            };
            (way("forward"), way("backward"))
        } else {
            let access = list(network, "access_list").first().or_else(|| network.get("access"));
            let reverse = |key| network.get("reverse").and_then(|reverse| reverse.get(key));
            let out = [access, network.get("bottleneck"), network.get("egress")];
            let keys = ["access", "bottleneck", "egress"];
            let back = keys.iter().zip(out).filter_map(|(key, link)| reverse(key).or(link));
            (out.into_iter().flatten().collect(), back.collect())
        };
        let delays = out.iter().chain(&back).filter_map(|link| number(link, "delay"));
        let slowest = || out.iter().filter_map(|link| mean_bps(link)).min();
        Facts {
            rtt_ns: delays.sum(),
            bps: network.get("bottleneck").and_then(mean_bps).or_else(slowest),
            framing: number(network, "framing_bytes").unwrap_or(0),
        }
    }

    /// Facts about a network as written.
    pub fn written(network: &Written, path: Option<&str>, files: &dyn Files) -> Facts {
        let mut values = Front::new(files).table(network, super::Network::TABLE, false);
        mirrors(&mut values);
        Facts::of(&values, path)
    }

    /// Bandwidth-delay product in full packets, as charged by the links; 0 if no link has a rate.
    pub fn bdp(&self) -> Exact {
        let bits = Exact::whole(self.bps.unwrap_or(0)).times(&Exact::whole(self.rtt_ns));
        bits.times(&Exact::ratio(1, 1_000_000_000 * 8 * (MTU + self.framing)))
    }
}

/// Link rate, bit/s; the mean rate for a trace; `None` if the rate is infinite.
pub fn mean_bps(link: &Value) -> Option<u128> {
    let capacity = link.get("capacity");
    if let Some(Value::Counts(counts)) = capacity.and_then(|capacity| capacity.get("file")) {
        let total: u128 = counts.iter().map(|&count| count as u128).sum();
        let bytes = capacity.and_then(|capacity| number(capacity, "opportunity")).unwrap_or(0);
        let period = (counts.len() as u128).saturating_sub(1).max(1);
        return Some(libm::rint(Exact::ratio(total * bytes * 8000, period).to_f64()) as u128);
    }
    number(link, "rate").or_else(|| number(list(capacity?, "steps").first()?, "rate"))
}

/// Replace multiples of the bandwidth-delay product by these numbers.
fn fill(value: &mut Value, numbers: &[Value]) {
    match value {
        Value::Pending(waits) => *value = numbers[*waits].clone(),
        Value::List(entries) => entries.iter_mut().for_each(|entry| fill(entry, numbers)),
        Value::Table(entries) => entries.iter_mut().for_each(|(_, entry)| fill(entry, numbers)),
        _ => {}
    }
}

impl Compiled {
    /// Return the values that identify a run: without descriptive names, and without values determined by
    /// controllers and workloads.
    pub fn canonical(&self) -> Value {
        let Value::Table(entries) = &self.values else { return Value::Table(Vec::new()) };
        let mut kept: Vec<(String, Value)> =
            entries.iter().filter(|(key, _)| key != "name").cloned().collect();
        kept.retain(|(key, value)| key != "hosts" || *value != Value::List(Vec::new()));
        let mut kept = Value::Table(kept);
        if let Some(Value::List(groups)) = kept.get_mut("flows") {
            for group in groups {
                if let Value::Table(entries) = group {
                    entries.retain(|(key, _)| key != "name" && key != "transport");
                }
            }
        }
        if let Some(record) = kept.get_mut("record") {
            if record.get("performance").is_none() {
                record.set("performance", Value::Flag(false));
            }
        }
        kept
    }

    /// Canonical values as JSON, with the scenario's name, byte for byte as written by Python's `json`. Stores use
    /// hashes of this text as keys.
    pub fn text(&self, capture: Option<&str>) -> String {
        let mut values = self.canonical();
        if let (Some(side), Some(record)) = (capture, values.get_mut("record")) {
            record.set("capture", Value::Text(side.to_string()));
        }
        let Value::Table(mut entries) = values else { return String::new() };
        entries.insert(0, ("name".to_string(), Value::Text(self.scenario.name.clone())));
        let mut out = String::new();
        json(&Value::Table(entries), &mut out);
        out
    }
}

impl Compiled {
    /// All values as JSON, including those that do not identify the run.
    pub fn whole(&self) -> String {
        let mut out = String::new();
        json(&self.values, &mut out);
        out
    }
}

fn json(value: &Value, out: &mut String) {
    let separated = |out: &mut String, i: usize| {
        if i > 0 {
            out.push_str(", ");
        }
    };
    match value {
        Value::Flag(on) => out.push_str(if *on { "true" } else { "false" }),
        Value::Whole(n) => out.push_str(&n.to_string()),
        Value::Number(x) => out.push_str(&float(*x)),
        Value::Text(text) => json_text(text, out),
        Value::List(entries) => {
            out.push('[');
            for (i, entry) in entries.iter().enumerate() {
                separated(out, i);
                json(entry, out);
            }
            out.push(']');
        }
        Value::Counts(counts) => {
            out.push('[');
            for (i, count) in counts.iter().enumerate() {
                separated(out, i);
                out.push_str(&count.to_string());
            }
            out.push(']');
        }
        Value::Table(entries) => {
            out.push('{');
            for (i, (key, entry)) in entries.iter().enumerate() {
                separated(out, i);
                json_text(key, out);
                out.push_str(": ");
                json(entry, out);
            }
            out.push('}');
        }
        Value::Pending(_) => unreachable!("invariant: all are filled"),
    }
}

/// Write a JSON string in ASCII; other characters become UTF-16 escapes.
fn json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7e}' => out.push(c),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out.push('"');
}
