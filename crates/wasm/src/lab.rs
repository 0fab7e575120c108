//! Requests of a page: whether a text is a valid scenario, and the results of its run. Replies are JSON; columns
//! remain in linear memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use ackclock_cc::conformance;
use ackclock_cc::controller::{Maker, Recipe};
use ackclock_core::{Digest, Time};
use ackclock_schema::toml::{self, Position};
use ackclock_sim::runs::film::{film, Film};
use ackclock_sim::scenario::spec::files::Embedded;
use ackclock_sim::scenario::spec::read::{read, Refused};
use ackclock_sim::scenario::spec::{FlowGroup, TraceLevel};
use ackclock_sim::{
    estimate_memory, estimate_time, run_tracing, Bounds, Column, Customs, Error, Output, Scenario, Table,
};
use serde_json::{json, Value};

/// Default number of samples over the run.
const STEPS: u64 = 1200;
/// Default number of goodput intervals over the run.
const PARTS: u64 = 150;
/// Minimum time between two samples, ns.
const SHORTEST_NS: u64 = 1_000_000;
/// Maximum number of flows for which all ACKs are recorded; if there are more flows, only the first ones are
/// recorded.
const TRACED: u64 = 3;
/// Trace columns drawn in figures: `DRAWN` in `web/worker.js`.
const TRACED_COLUMNS: &[&str] =
    &["t_s", "flow", "event", "seq", "sack0_end", "cwnd", "ssthresh", "ca_state", "srtt_s"];
/// Maximum memory of a trace, bytes. A trace that may need more is not recorded.
const TRACE_BYTES: u64 = 512 << 20;

/// Simulator of one page: its files, the last scenario read, and the tables of the last run.
pub struct Lab {
    files: Embedded,
    customs: Customs,
    scenario: Option<Arc<Scenario>>,
    tables: Vec<Table>,
}

impl Default for Lab {
    fn default() -> Lab {
        let (files, customs) = (Embedded(BTreeMap::new()), Customs::new());
        Lab { files, customs, scenario: None, tables: Vec::new() }
    }
}

/// Records of a run for the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The scenario's own records only.
    Nothing,
    /// The scenario's records and those for the page's figures; from the trace, only the columns drawn.
    Figures,
    /// The scenario's records and those for the figures, with every column, for saving.
    Whole,
}

/// Callbacks from a run to the page.
pub struct Asks<'a> {
    /// Called with the fraction of the run completed; returns whether to stop.
    pub tell: &'a dyn Fn(f64) -> bool,
    /// Returns the error raised by a page's controller, if any.
    pub failure: &'a dyn Fn() -> Option<String>,
}

impl Lab {
    /// Add a file that scenarios may refer to: a Mahimahi trace.
    pub fn add_file(&mut self, name: String, data: Vec<u8>) {
        self.files.0.insert(name, data);
    }

    /// Add a controller available to flows as `custom:NAME`.
    pub fn add_controller(&mut self, name: String, maker: Maker) {
        self.customs.controllers.insert(name, maker);
    }

    /// Check that a controller obeys the rules for all controllers: `{"ok": true}`, or the violated rule.
    pub fn conform(&self, name: &str, failure: &dyn Fn() -> Option<String>) -> Value {
        let Some(maker) = self.customs.controllers.get(name) else {
            return json!({ "ok": false, "message": format!("no controller is called {name}") });
        };
        let recipe = Recipe::own(maker.clone());
        let outcome = conformance::check(|| recipe.make(), || failure().is_none());
        match (failure(), outcome) {
            (Some(message), _) => json!({ "ok": false, "message": message }),
            (None, Err(broken)) => {
                json!({ "ok": false, "rule": broken.rule, "hook": broken.hook, "found": broken.found })
            }
            (None, Ok(())) => json!({ "ok": true }),
        }
    }

    /// Read a scenario: `{"ok": true, "name", "duration_s", "flows", "groups", "memory_bytes", "time_s", "places"}`,
    /// where `places` gives the position of each value by its dotted key; or `{"ok": false, "refusals": [{"key",
    /// "found", "allowed", "line", "column", "length"}]}`. Lines and columns are 1-based and count characters; an
    /// error with no position has line 0.
    pub fn read(&mut self, text: &str) -> Value {
        self.scenario = None;
        let compiled = match read(text, &self.files) {
            Ok(compiled) => compiled,
            Err(refusals) => {
                let refusals: Vec<Value> = refusals.iter().map(refused).collect();
                return json!({ "ok": false, "refusals": refusals });
            }
        };
        let scenario = compiled.scenario;
        let name = |group: &FlowGroup| group.name.clone().unwrap_or_else(|| group.congestion_control.clone());
        let places = toml::read(text).map(|read| read.places).unwrap_or_default();
        let place = |key: &str, at: Position| json!([key, at.line, at.column, at.length]);
        let answer = json!({
            "ok": true,
            "name": scenario.name,
            "duration_s": scenario.duration_ns as f64 * 1e-9,
            "flows": scenario.flow_count(),
            "groups": scenario.flows.iter().map(name).collect::<Vec<_>>(),
            "memory_bytes": estimate_memory(&scenario),
            "time_s": estimate_time(&scenario),
            "places": places.iter().map(|placed| place(&placed.key, placed.value)).collect::<Vec<_>>(),
        });
        self.scenario = Some(scenario);
        answer
    }

    /// Run the scenario read last: `{"ok": true, "digest", "tables": [{"name", "rows", "columns": [[name, type,
    /// address, names]]}]}`, or `{"ok": false, "message"}`. `watch` selects additional records, which do not change
    /// the run. `memory`: limit in bytes.
    pub fn run(&mut self, seed: u64, watch: Watch, memory: u64, asks: &Asks<'_>) -> Value {
        self.tables = Vec::new();
        let Some(scenario) = &self.scenario else {
            return json!({ "ok": false, "message": "no scenario was read" });
        };
        let watched = (watch != Watch::Nothing).then(|| watched(scenario));
        let scenario = watched.as_ref().unwrap_or(scenario);
        let whole = scenario.duration_ns.max(1) as f64;
        let stop = |now: Time| (asks.failure)().is_some() || (asks.tell)(now.0 as f64 / whole);
        let bounds = Bounds { memory: Some(memory), cpu_s: None, stop: &stop };
        let columns = if watch == Watch::Figures { TRACED_COLUMNS } else { &[] };
        let outcome = run_tracing(scenario, seed, &self.customs, &bounds, columns);
        if let Some(message) = (asks.failure)() {
            return json!({ "ok": false, "message": message });
        }
        match outcome {
            Ok(Output { digest, tables, .. }) => self.answer(digest, tables),
            Err(Error::Stopped) => json!({ "ok": false, "stopped": true, "message": "stopped" }),
            Err(error) => json!({ "ok": false, "message": error.to_string() }),
        }
    }

    /// Record the packets on the links of the scenario read last, from `from_s` (s) on, up to `most` legs: `{"ok":
    /// true, "until_s", "names", "ways", "tables"}`, see [`Film`]; or `{"ok": false, "message"}`. The tables of the
    /// previous run are discarded.
    pub fn film(&mut self, seed: u64, from_s: f64, most: usize, memory: u64, asks: &Asks<'_>) -> Value {
        self.tables = Vec::new();
        let Some(scenario) = &self.scenario else {
            return json!({ "ok": false, "message": "no scenario was read" });
        };
        let whole = scenario.duration_ns.max(1) as f64;
        let stop = |now: Time| (asks.failure)().is_some() || (asks.tell)(now.0 as f64 / whole);
        let bounds = Bounds { memory: Some(memory), cpu_s: None, stop: &stop };
        let from = Time((from_s.max(0.0) * 1e9) as u64);
        let outcome = film(scenario, seed, &self.customs, &bounds, from, most);
        if let Some(message) = (asks.failure)() {
            return json!({ "ok": false, "message": message });
        }
        match outcome {
            Ok(Film { until, names, ways, tables }) => {
                self.tables = tables.into();
                let until_s = until.as_secs();
                json!({ "ok": true, "until_s": until_s, "names": names, "ways": ways, "tables": self.described() })
            }
            Err(error) => json!({ "ok": false, "message": error.to_string() }),
        }
    }

    fn answer(&mut self, digest: Digest, tables: Vec<Table>) -> Value {
        self.tables = tables;
        json!({ "ok": true, "digest": digest.hex(), "tables": self.described() })
    }

    fn described(&self) -> Vec<Value> {
        let table = |table: &Table| {
            let columns: Vec<Value> =
                table.columns.iter().map(|(name, values)| column(name, values)).collect();
            json!({ "name": table.name, "rows": table.rows(), "columns": columns })
        };
        self.tables.iter().map(table).collect()
    }
}

fn refused(refused: &Refused) -> Value {
    let at = refused.place.map_or((0, 0, 0), |at| (at.line, at.column, at.length));
    json!({
        "key": refused.refusal.key,
        "found": refused.refusal.found,
        "allowed": refused.refusal.allowed,
        "line": at.0,
        "column": at.1,
        "length": at.2,
    })
}

/// Return the scenario with the records needed by the figures.
fn watched(scenario: &Scenario) -> Arc<Scenario> {
    let mut scenario = scenario.clone();
    let step = (scenario.duration_ns / STEPS).max(SHORTEST_NS);
    let part = scenario.duration_ns.div_ceil(PARTS).max(step);
    let usual = |interval: &mut u64, step| {
        if *interval == 0 {
            *interval = step;
        }
    };
    usual(&mut scenario.record.sample_interval_ns, step);
    usual(&mut scenario.record.queue_interval_ns, step);
    usual(&mut scenario.record.goodput_interval_ns, part);
    scenario.record.drops = true;
    if scenario.record.trace == TraceLevel::None {
        let levels = [TraceLevel::All, TraceLevel::Flow];
        for level in levels.into_iter().skip(usize::from(scenario.flow_count() > TRACED)) {
            scenario.record.trace = level;
            if estimate_memory(&scenario) <= TRACE_BYTES {
                return Arc::new(scenario);
            }
        }
        scenario.record.trace = TraceLevel::None;
    }
    Arc::new(scenario)
}

/// Return a column's name, type, address of the first value, and the names for its codes.
fn column(name: &str, values: &Column) -> Value {
    let none: &[String] = &[];
    let (address, names) = match values {
        Column::F8(values) => (values.as_ptr() as usize, none),
        Column::I8(values) => (values.as_ptr() as usize, none),
        Column::U4(values) | Column::N4(values) => (values.as_ptr() as usize, none),
        Column::U1(values) | Column::Bool(values) => (values.as_ptr() as usize, none),
        Column::Text { codes, names } => (codes.as_ptr() as usize, names.as_slice()),
    };
    json!([name, values.kind(), address, names])
}
