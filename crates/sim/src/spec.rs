//! The scenario as the engine reads it: JSON with SI units in whole nanoseconds, bits per second and bytes. The Python
//! front validates and explains; here unknown keys and impossible values are refused once more, tersely.

mod network;

use ackclock_cc::SlowStartConfig;
use ackclock_core::options::{usual, Options};
use ackclock_core::schema::{Described, Family, Table, Takes, Unit, Value, DURATION, DURATION_OR_ZERO, FLAG};
use ackclock_core::{choice, table, Distribution};
use ackclock_net::host::{DisciplineConfig, GateConfig, HostParams};
use ackclock_net::link::LinkParams;
use ackclock_net::{CapacityConfig, EcnFault, LossConfig, Merging, Outage, QueueConfig, Reorder, WifiJitter};
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
    DisciplineConfig::FAMILY,
    AdaptationConfig::FAMILY,
    SlowStartConfig::FAMILY,
];

/// Every table that a scenario has besides.
pub const TABLES: &[&Table] = &[
    Reorder::TABLE,
    WifiJitter::TABLE,
    EcnFault::TABLE,
    Outage::TABLE,
    Merging::TABLE,
    LinkParams::TABLE,
    HostParams::TABLE,
    Stack::TABLE,
];

impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scenario, D::Error> {
        Scenario::read(&value(Deserialize::deserialize(deserializer)?)).map_err(D::Error::custom)
    }
}

/// From JSON, as `ackclock_core::schema` reads it.
pub(crate) fn value(json: serde_json::Value) -> Value {
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

table! {
    /// A whole scenario.
    pub struct Scenario "scenario" {
        /// Name, for messages only (not part of the result).
        name: String = Takes::Text, String::new();
        /// Simulated time, ns.
        duration_ns: u64 = DURATION;
        /// The links and how flows cross them.
        network: Network = Takes::Table(Network::TABLE);
        /// Flow groups; flow ids count through them in order.
        flows: Vec<FlowGroup> = Takes::List(&Takes::Table(FlowGroup::TABLE), 0);
        /// Hosts that are not perfect; flow groups name them.
        hosts: Vec<HostParams> = Takes::List(&Takes::Table(HostParams::TABLE), 0), Vec::new();
        /// What to record.
        record: Record = Takes::Table(Record::TABLE), usual();
    }
}

table! {
    /// `count` flows that are alike.
    pub struct FlowGroup "flows" {
        /// Number of flows.
        count: u32 = Takes::Whole(0, u32::MAX as u64), 1;
        /// Host profile: see `ackclock_tcp::Config::profile`.
        profile: String = Takes::Text;
        /// Congestion controller's registry name.
        congestion_control: String = Takes::Text;
        /// Options of the controller.
        congestion_control_options: Options = Takes::Options, Options::new();
        /// Recovery rule's registry name; absent = the profile's.
        recovery: Option<String> = Takes::Text;
        /// Settings of TCP that differ from the profile.
        stack: Stack = Takes::Table(Stack::TABLE), Stack::default();
        /// What the application sends, and when.
        workload: WorkloadConfig = Takes::OneOf(WorkloadConfig::FAMILY);
        /// Start of the first flow, ns.
        start_ns: u64 = DURATION_OR_ZERO, 0;
        /// Drawn anew for each flow instead, and counted from where the stagger has come to, s.
        start_s: Option<Distribution> = Takes::Drawn(Unit::Duration);
        /// Start of each further flow after the one before it, ns.
        stagger_ns: u64 = DURATION_OR_ZERO, 0;
        /// Drawn anew for each further flow instead, s.
        stagger_s: Option<Distribution> = Takes::Drawn(Unit::Duration);
        /// The application stops writing here, ns; absent = at the end.
        stop_ns: Option<u64> = DURATION_OR_ZERO;
        /// Graph: name of the path; absent = the first.
        path: Option<String> = Takes::Text;
        /// Host of the sending ends; absent = perfect ones.
        host: Option<String> = Takes::Text;
        /// Host of the receiving ends; absent = perfect ones.
        peer_host: Option<String> = Takes::Text;
    }
}

table! {
    /// What is recorded besides the running sums.
    pub struct Record "record" {
        /// Per-ACK trace: of none, of flow 0 only, or of all.
        trace: TraceLevel = TraceLevel::TAKES, TraceLevel::None;
        /// The controllers' own variables, a row per ACK, or, of PCC, per monitor interval: of none, of flow 0 only, or of
        /// all.
        controller: TraceLevel = TraceLevel::TAKES, TraceLevel::None;
        /// Least time between two such rows of a flow, ns.
        controller_interval_ns: u64 = DURATION_OR_ZERO, 0;
        /// Capture of every packet at the hosts of one side (pcapng).
        capture: CapturePoint = CapturePoint::TAKES, CapturePoint::None;
        /// TCP_INFO-like samples of each open flow, ns; 0 = off.
        sample_interval_ns: u64 = DURATION_OR_ZERO, 0;
        /// Queue occupancy samples, ns; 0 = off.
        queue_interval_ns: u64 = DURATION_OR_ZERO, 0;
        /// Goodput per flow and interval, ns; 0 = off.
        goodput_interval_ns: u64 = DURATION_OR_ZERO, 0;
        /// Transactions: a row for each, or their summary alone.
        transactions: TransactionLevel = TransactionLevel::TAKES, TransactionLevel::Rows;
        /// Links, and the summary of transactions, count from here on, ns: what was before is a warm-up.
        warm_up_ns: u64 = DURATION_OR_ZERO, 0;
        /// Record each dropped packet (table `drops`).
        drops: bool = FLAG, false;
        /// What each flow, each group and the run got after the warm-up.
        performance: bool = FLAG, false;
    }
}

/// Where packets are captured. One side at a time: what both see would look like retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum CapturePoint {
    None,
    Sender,
    Receiver,
}

/// How much of transactions is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum TransactionLevel {
    #[default]
    Rows,
    Summary,
}

/// How much of the per-ACK trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum TraceLevel {
    None,
    Flow,
    All,
}

choice! { CapturePoint: None "none", Sender "sender", Receiver "receiver" }
choice! { TransactionLevel: Rows "rows", Summary "summary" }
choice! { TraceLevel: None "none", Flow "flow", All "all" }

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

    #[test]
    fn a_value_deep_in_a_scenario_is_refused_with_its_whole_path() {
        let place = |network: &str, workload: &str| {
            let text = format!(
                r#"{{"duration_ns": 1, "network": {{"topology": "chain", "bottleneck": {{{network}}}}},
                    "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "workload": {{{workload}}}}}]}}"#
            );
            let built = crate::parse(&text).and_then(|read| crate::run(&read, 1).map(drop));
            match built.expect_err("refused") {
                crate::Error::Value { place, .. } => place,
                other => panic!("{other}"),
            }
        };
        let (link, bulk) = (r#""rate": 1000, "delay": 5"#, r#""kind": "bulk""#);
        assert_eq!(place(link, r#""kind": "transfer", "bytes": 0"#), "flows.0.workload.bytes");
        assert_eq!(place(link, r#""kind": "bulk", "byte": 0"#), "flows.0.workload.byte");
        let steps = r#""kind": "schedule", "steps": [{"at": 1}, {"at": 2, "loss": 2}]"#;
        let place_of_loss = "network.bottleneck.capacity.steps.1.loss";
        assert_eq!(place(&format!(r#"{link}, "capacity": {{{steps}}}"#), bulk), place_of_loss);
        let dummynet = r#""capacity": {"kind": "dummynet"}"#;
        assert_eq!(place(dummynet, bulk), "network.bottleneck.capacity");
    }
}
