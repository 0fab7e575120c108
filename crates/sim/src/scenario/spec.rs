//! The scenario as read by the engine: JSON with values in whole nanoseconds, bits per second and bytes. Unknown
//! keys and out-of-range values are rejected on reading. [`check`] applies the rules that relate several
//! keys: those of each mechanism and those of the whole scenario (`rules`).

pub mod files;
mod network;
pub mod read;
mod readers;
mod rules;

use ackclock_cc::SlowStartConfig;
use ackclock_core::options::{usual, Options};
use ackclock_core::schema::{
    usual as usual_kind, Described, Family, Table, Takes, Unit, Value, COUNT, DURATION, DURATION_OR_ZERO,
    FLAG,
};
use ackclock_core::{choice, table, Distribution, Span};
use ackclock_net::host::{DisciplineConfig, GateConfig, HostParams};
use ackclock_net::{CapacityConfig, LossConfig, QueueConfig};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub use crate::tables::tally::TransactionLevel;
use crate::workload::video::adaptation::AdaptationConfig;
pub use crate::workload::{ArrivalsConfig, WorkloadConfig};
use crate::workload::{Place, ReaderParams};
pub use ackclock_tcp::{MetricsCache, Stack};
pub use rules::{check, MOST_FLOWS};

pub use network::{NamedLink, Network, Path, Reverse, Topology};

/// All table families, from which a scenario selects by `kind`.
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

/// All tables of a scenario, the scenario itself first.
pub fn tables() -> Vec<&'static Table> {
    let mut found = vec![Scenario::TABLE];
    Scenario::TABLE.note(&mut found);
    for table in FAMILIES.iter().flat_map(|family| family.tables) {
        table.note(&mut found);
    }
    found
}

impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scenario, D::Error> {
        let scenario = Scenario::read(&value(Deserialize::deserialize(deserializer)?));
        let scenario = scenario.map_err(D::Error::custom)?;
        match check(&scenario, None).into_iter().next() {
            Some(refusal) => Err(D::Error::custom(refusal)),
            None => Ok(scenario),
        }
    }
}

/// Convert JSON to a value of `ackclock_core::schema`.
pub fn value(json: serde_json::Value) -> Value {
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

/// Current version of the scenario format. A key whose meaning changes requires a new version; a new key does not.
pub const FORMAT: u64 = 1;

table! {
    /// A network, its hosts and flows, and the records of the run.
    pub struct Scenario "scenario" {
        /// Descriptive name of the scenario; it does not affect the result.
        name: String = Takes::Text, String::new();
        /// Simulated time.
        duration_ns as "duration": u64 = DURATION;
        /// Links of the network and the paths of flows across them.
        network: Network = Takes::Table(Network::TABLE);
        /// Groups of flows. Flows are numbered from 0, group after group.
        flows: Vec<FlowGroup> = Takes::List(&Takes::Table(FlowGroup::TABLE), 1);
        /// Imperfect hosts, to which flows refer by name. "modern" gives each end of each flow a separate host with the
        /// preset "modern", and TCP sends packets of several segments (`stack.tso`) unless a group specifies otherwise.
        hosts: Vec<HostParams> = Takes::ListOr(&Takes::Table(HostParams::TABLE), read::MODERN), Vec::new();
        /// Records of the run.
        record: Record = Takes::Table(Record::TABLE), usual();
        /// Version of the scenario's format. It does not affect the run; a version of ackclock that does not know the
        /// format refuses the scenario.
        format: Option<u32> = Takes::Whole(1, FORMAT);
    }
    rules Scenario::judge_whole
}

table! {
    /// A group of identical flows.
    pub struct FlowGroup "flows" {
        /// Number of flows.
        count: u32 = COUNT, 1;
        /// Name of the group in tables and figures. Default: the name of its controller or, for a group without a
        /// controller, of its workload.
        name: Option<String> = Takes::Label(60);
        /// Transport protocol. Default: the one that the controller and the workload need.
        transport: Option<Transport> = Transport::TAKES;
        /// TCP behaviour of the hosts: that of an operating system, or that of the RFCs.
        profile: String = Takes::Named(&read::PROFILES), USUAL_PROFILE.to_string();
        /// Congestion controller. "FILE.py:CLASS" is your own class, "FILE.c" your own Linux module, "custom:NAME" a
        /// class that you pass to the run under this name, "kernel:NAME" a controller that only the kernel of the linux
        /// backend has, "quinn:NAME" a controller of quinn, a QUIC stack, and "stack:NAME:CONTROLLER" a controller of a
        /// library that you pass to the run (`--stack`).
        congestion_control: String = Takes::Named(&read::CONTROLLERS), USUAL_CONTROLLER.to_string();
        /// Options of the controller, by name; `ackclock list` shows them. For a controller of your own: keyword arguments
        /// of its class, or parameters of the module.
        congestion_control_options: Options = Takes::Options, Options::new();
        /// Recovery rule. Default: the profile's.
        recovery: Option<String> = Takes::Named(&read::RECOVERY);
        /// Settings of TCP that differ from the profile.
        stack: Stack = Takes::Table(Stack::TABLE), Stack::default();
        /// Data that the application sends, and when.
        workload: WorkloadConfig = Takes::OneOf(WorkloadConfig::FAMILY), usual_kind("bulk");
        /// Application that reads slowly. Default: data is read as soon as it arrives.
        reader: Option<ReaderParams> = Takes::Table(ReaderParams::TABLE);
        /// Start of the first flow: a duration or a distribution. From a distribution each flow of the group draws its own
        /// offset, which is added to the staggered start; averages over seeds then do not depend on how the flows' phases
        /// happen to align.
        start_ns as "start": u64 = Takes::DurationOr("start_s"), 0;
        /// The distribution, s.
        start_s as "": Option<Distribution> = Takes::Drawn(Unit::Duration);
        /// Time from the start of one flow of the group to that of the next: a duration, or a distribution of durations
        /// (`exponential` makes a Poisson process). With drawn times, flows that would start after the end of the run do not
        /// run.
        stagger_ns as "stagger": u64 = Takes::DurationOr("stagger_s"), 0;
        /// The distribution, s.
        stagger_s as "": Option<Distribution> = Takes::Drawn(Unit::Duration);
        /// Time at which the application stops writing, from the start of the run. Default: the end of the run.
        stop_ns as "stop": Option<u64> = DURATION;
        /// Graph: name of the path. Default: the first one.
        path: Option<String> = Takes::Text;
        /// Name in `hosts` of the host on which the senders run. Default: perfect hosts.
        host: Option<String> = Takes::Text;
        /// Name of the host on which the receivers run. The same name in `host` and `peer_host` puts both ends on one
        /// machine. Default: perfect hosts.
        peer_host: Option<String> = Takes::Text;
    }
    elsewhere ELSEWHERE
    rules FlowGroup::judge_group
}

const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["access", "rtt", "delay", "rate", "loss"],
        "network.access_list with topology \"wishbone\": the senders' links, which the flows take in turn",
    ),
    (&["duration"], "start and stop"),
    (&["bytes"], "workload, of kind transfer or fetch"),
    (&["controller"], "congestion_control"),
    (&["initial_window"], "stack.initial_window"),
];

table! {
    /// Records of a run. An interval of "0 s" turns its record off.
    pub struct Record "record" {
        /// Record every ACK, transmission and timer event (table `acks`): of no flow, of flow 0, or of all flows.
        trace: TraceLevel = TraceLevel::TAKES, TraceLevel::None;
        /// Record the controller's own variables at each ACK (PCC: at the end of each monitor interval): of no flow, of flow
        /// 0, or of all flows.
        controller: TraceLevel = TraceLevel::TAKES, TraceLevel::None;
        /// Minimum time between two rows of a flow in the record of `controller`. "0 s" records every ACK.
        controller_interval_ns as "controller_interval": u64 = DURATION_OR_ZERO, 0;
        /// Side at which packets are captured (pcapng); set by the run.
        capture as "": CapturePoint = CapturePoint::TAKES, CapturePoint::None;
        /// Time between samples of each open flow (cwnd, ssthresh, RTT, state).
        sample_interval_ns as "sample_interval": u64 = DURATION_OR_ZERO, 0;
        /// Time between samples of each queue's length.
        queue_interval_ns as "queue_interval": u64 = DURATION_OR_ZERO, 0;
        /// Length of the intervals over which the goodput of each flow is measured.
        goodput_interval_ns as "goodput_interval": u64 = DURATION_OR_ZERO, 0;
        /// Length of the intervals for which table `limits` reports what limited each TCP flow (the sums are columns of
        /// `flows`).
        limits_interval_ns as "limits_interval": u64 = DURATION_OR_ZERO, 0;
        /// "rows": a row for each transaction, and the summary. "summary": only totals and a histogram, whose size does not
        /// depend on the number of transactions.
        transactions: TransactionLevel = TransactionLevel::TAKES, TransactionLevel::Rows;
        /// Warm-up, from the start of the run. The tables of links, `performance` and the summary of transactions
        /// exclude it; a client that arrives during the warm-up appears only in `transactions`.
        warm_up_ns as "warm_up": u64 = DURATION_OR_ZERO, 0;
        /// Record each dropped packet (table `drops`).
        drops: bool = FLAG, false;
        /// Record the performance of each flow, each group and the whole run after the warm-up, with quantiles of RTT
        /// and one-way delay. The size of this table does not grow with the run; measuring takes 5 to 10 % more time.
        /// Default: on in sweeps and comparisons with up to 100 flows, off elsewhere.
        performance: Option<bool> = FLAG;
    }
}

/// Default profile and controller of a group.
const USUAL_PROFILE: &str = "linux-6";
const USUAL_CONTROLLER: &str = "cubic";

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum Transport {
    Tcp,
    Udp,
    Pcc,
    Quinn,
    Stack,
}

/// Capture point. Only one side can be captured: a packet seen twice would look like a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum CapturePoint {
    None,
    Sender,
    Receiver,
}

/// Extent of the per-ACK trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum TraceLevel {
    None,
    Flow,
    All,
}

choice! { CapturePoint: None "none", Sender "sender", Receiver "receiver" }
impl Scenario {
    /// Facts about a group needed by its workload.
    pub fn place(&self, index: usize) -> Place {
        let group = &self.flows[index];
        Place {
            bottleneck_bps: self.network.bottleneck_bps(group.path.as_deref()),
            framing_bytes: self.network.framing_bytes,
            count: group.count,
            duration: Span(self.duration_ns),
            index,
            transactions: self.record.transactions,
        }
    }
}

impl Record {
    /// Whether the performance of flows and groups is measured.
    pub fn measures(&self) -> bool {
        self.performance == Some(true)
    }
}

impl Transport {
    /// Name in a scenario.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Pcc => "pcc",
            Transport::Quinn => "quinn",
            Transport::Stack => "stack",
        }
    }
}

choice! { Transport: Tcp "tcp", Udp "udp", Pcc "pcc", Quinn "quinn", Stack "stack" }
choice! { TraceLevel: None "none", Flow "flow", All "all" }

#[cfg(test)]
mod tests {
    use ackclock_core::schema::Absent;

    use super::*;

    #[test]
    fn every_default_is_one_that_a_scenario_may_give() {
        for table in FAMILIES.iter().flat_map(|family| family.tables).copied().chain(tables()) {
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
            "update: found 0; allowed: nanoseconds from 1 to 3600000000000000"
        );
        assert_eq!(
            refused(r#"{"kind": "pie", "updates": 5}"#),
            "updates: found an unknown key; allowed: limit, target, update, max_burst, ecn"
        );
        assert_eq!(refused(r#"{"kind": "netem-limit"}"#), "limit: found nothing; allowed: a value");
        assert!(refused(r#"{"kind": "codle"}"#).starts_with("kind: found \"codle\"; allowed: drop-tail, "));
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
        assert_eq!(place(dummynet, bulk), "network.bottleneck.rate");
    }
}
