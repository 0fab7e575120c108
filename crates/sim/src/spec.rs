//! The scenario as the engine reads it: JSON with SI units in whole nanoseconds, bits per second and bytes. The Python
//! front validates and explains; here unknown keys and impossible values are refused once more, tersely.

mod network;

use std::collections::BTreeMap;

use ackclock_core::schema::{Described, Family, Table, Value};
use ackclock_core::Distribution;
use ackclock_net::host::{GateConfig, HostParams};
use ackclock_net::link::LinkParams;
use ackclock_net::{CapacityConfig, LossConfig, QueueConfig, Reorder};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub use crate::stack::{MetricsCache, Stack};
use crate::workload::video::adaptation::AdaptationConfig;
pub use crate::workload::{ArrivalsConfig, WorkloadConfig};
pub use network::{NamedLink, Network, Path, Reverse, Topology};

/// Every family of tables between which a scenario chooses by `kind`.
pub const FAMILIES: &[&Family] = &[
    QueueConfig::FAMILY,
    LossConfig::FAMILY,
    CapacityConfig::FAMILY,
    WorkloadConfig::FAMILY,
    ArrivalsConfig::FAMILY,
    GateConfig::FAMILY,
    AdaptationConfig::FAMILY,
];

/// Every table that a scenario has besides.
pub const TABLES: &[&Table] = &[Reorder::TABLE, LinkParams::TABLE, HostParams::TABLE, Stack::TABLE];

/// What its mechanism describes (`ackclock_core::schema`).
fn described<'de, T: Described, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(&value(Deserialize::deserialize(deserializer)?)).map_err(D::Error::custom)
}

fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Table(Vec::new()),
        serde_json::Value::Bool(on) => Value::Flag(on),
        serde_json::Value::Number(n) => match n.as_u64() {
            Some(whole) => Value::Whole(whole),
            None => Value::Number(n.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(entries) => Value::List(entries.into_iter().map(value).collect()),
        serde_json::Value::Object(entries) => {
            Value::Table(entries.into_iter().map(|(key, entry)| (key, value(entry))).collect())
        }
    }
}

/// A whole scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name, for messages only (not part of the result).
    #[serde(default)]
    pub name: String,
    /// Simulated time, ns.
    pub duration_ns: u64,
    /// The network.
    #[serde(deserialize_with = "described")]
    pub network: Network,
    /// Flow groups; flow ids count through them in order.
    pub flows: Vec<FlowGroup>,
    /// Hosts that are not perfect; flow groups name them.
    #[serde(default, deserialize_with = "described")]
    pub hosts: Vec<HostParams>,
    /// What to record.
    #[serde(default)]
    pub record: Record,
}

/// `count` flows that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// How many.
    #[serde(default = "one_flow")]
    pub count: u32,
    /// Host profile: see `ackclock_tcp::Config::profile`.
    pub profile: String,
    /// Congestion controller's registry name.
    pub congestion_control: String,
    /// Options of the controller.
    #[serde(default)]
    pub congestion_control_options: BTreeMap<String, OptionValue>,
    /// Recovery rule's registry name; absent = the profile's.
    #[serde(default)]
    pub recovery: Option<String>,
    /// Single settings that differ from the profile.
    #[serde(default, deserialize_with = "described")]
    pub stack: Stack,
    /// What the application does.
    #[serde(deserialize_with = "described")]
    pub workload: WorkloadConfig,
    /// Start of the first flow, ns.
    #[serde(default)]
    pub start_ns: u64,
    /// Drawn anew for each flow instead, and counted from where the stagger has come to, s.
    #[serde(default, deserialize_with = "described")]
    pub start_s: Option<Distribution>,
    /// Start of each further flow after the one before it, ns.
    #[serde(default)]
    pub stagger_ns: u64,
    /// Drawn anew for each further flow instead, s.
    #[serde(default, deserialize_with = "described")]
    pub stagger_s: Option<Distribution>,
    /// The application stops writing here, ns; absent = at the end.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// Graph: name of the path; absent = the first.
    #[serde(default)]
    pub path: Option<String>,
    /// Host of the sending ends; absent = perfect ones.
    #[serde(default)]
    pub host: Option<String>,
    /// Host of the receiving ends; absent = perfect ones.
    #[serde(default)]
    pub peer_host: Option<String>,
}

/// Value of a controller's option.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "one type of TOML each")]
pub enum OptionValue {
    Flag(bool),
    Number(f64),
    Text(String),
}

fn one_flow() -> u32 {
    1
}

/// What is recorded besides the running sums.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Per-ACK trace: "none", "flow" (flow 0 only) or "all".
    pub trace: TraceLevel,
    /// The controllers' own variables, a row per ACK, or, of PCC, per monitor interval: "none", "flow" (flow 0 only) or
    /// "all".
    pub controller: TraceLevel,
    /// Least time between two such rows of a flow, ns.
    pub controller_interval_ns: u64,
    /// Capture of every packet at the hosts of one side (pcapng).
    pub capture: CapturePoint,
    /// TCP_INFO-like samples of each open flow, ns; 0 = off.
    pub sample_interval_ns: u64,
    /// Queue occupancy samples, ns; 0 = off.
    pub queue_interval_ns: u64,
    /// Goodput per flow and interval, ns; 0 = off.
    pub goodput_interval_ns: u64,
    /// Transactions: a row for each, or their summary alone.
    pub transactions: TransactionLevel,
    /// Links, and the summary of transactions, count from here on, ns: what was before is a warm-up.
    pub warm_up_ns: u64,
    /// A row for each dropped packet.
    pub drops: bool,
    /// What each flow, each group and the run got after the warm-up.
    pub performance: bool,
}

/// Where packets are captured. One side at a time: what both see would look like retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum CapturePoint {
    #[default]
    None,
    Sender,
    Receiver,
}

/// How much of transactions is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum TransactionLevel {
    #[default]
    Rows,
    Summary,
}

/// How much of the per-ACK trace is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum TraceLevel {
    #[default]
    None,
    Flow,
    All,
}

#[cfg(test)]
mod tests {
    use ackclock_core::schema::Absent;

    use super::*;

    #[test]
    fn every_default_is_one_that_a_scenario_may_give() {
        for table in FAMILIES.iter().flat_map(|family| family.tables).chain(TABLES) {
            for key in table.keys {
                if let Absent::Is(value) = (key.absent)() {
                    assert_eq!(key.takes.refuses(&value), None, "{} {}", table.kind, key.name);
                }
            }
        }
    }

    #[test]
    fn a_key_is_refused_with_its_place_and_what_is_allowed() {
        let read = |text| QueueConfig::read(&value(serde_json::from_str(text).expect("JSON")));
        let refused = |text| read(text).expect_err("refused").to_string();
        assert_eq!(
            refused(r#"{"kind": "pie", "update": 0}"#),
            "update: found 0, allowed: nanoseconds of at least 1"
        );
        assert_eq!(
            refused(r#"{"kind": "pie", "updates": 5}"#),
            "updates: found an unknown key, allowed: limit, target, update, max_burst, ecn"
        );
        assert_eq!(refused(r#"{"kind": "netem-limit"}"#), "limit: found nothing, allowed: a value");
        assert!(refused(r#"{"kind": "codle"}"#).starts_with("kind: found \"codle\", allowed: drop-tail, "));
        assert_eq!(read(r#"{"kind": "drop-tail"}"#), Ok(QueueConfig::UNLIMITED));
        let kept = QueueConfig::packets(7);
        assert_eq!(QueueConfig::read(&kept.write()), Ok(kept));
    }
}
