//! `ackclock._engine`: the simulator for Python. Takes text and numbers, returns columns as raw buffers. Contains no
//! logic of the simulation.
//!
//! Length: one function for each that Python calls; they contain no logic.

mod capture;
mod controller;
mod interrupt;
mod many;
mod native;
mod prove;
mod scenario;
mod schema;
mod stack;
mod steer;
mod tables;
mod toml;
mod utility;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use ackclock_cc::controller::options::listed;
use ackclock_cc::ideal::{self, IdealConfig};
use ackclock_cc::recovery::{self, Rule};
use ackclock_core::Time;
use ackclock_script::{Outcome, Verdict};
use ackclock_sim::capture::write_pcapng;
use ackclock_sim::{Bounds, Column, Customs, Error, Scenario, Shortcuts};
use controller::{Failure, Slot};
use interrupt::{wall_clock, Interrupt, PyStop};
use scenario::Given;
use tables::PyTables;

#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::capture::read_capture;
    #[pymodule_export]
    use super::controller::{PyAck, PyRate, PyWindow};
    #[pymodule_export]
    use super::interrupt::{end_with_parent, share_calls, PyStop};
    #[pymodule_export]
    use super::many::{run_batch, run_many};
    #[pymodule_export]
    use super::native::{Fault, PyLibrary};
    #[pymodule_export]
    use super::prove::{prove, prove_case, prove_tasks};
    #[pymodule_export]
    use super::scenario::{
        compiled_unjudged, describe_quantity, dimensions, mean_bps, path_facts, quantity, read_share,
        read_table, shown, PyScenario, PyTrace,
    };
    #[pymodule_export]
    use super::schema::{columns, netem, qdisc, schema};
    #[pymodule_export]
    use super::stack::{check_stack, load_stack, loaded_stacks, stack_checks};
    #[pymodule_export]
    use super::steer::PySteering;
    #[pymodule_export]
    use super::tables::PyTables;
    #[pymodule_export]
    use super::toml::read_toml;
    #[pymodule_export]
    use super::Refusal;
    #[pymodule_export]
    use super::{
        build, check_conformance, contract, controller_options, cpu_time, estimate_capture, estimate_memory,
        estimate_time, ideal_path, peak_rss_bytes, play_script, profile, registry, run, run_each, shortcuts,
        version, yardstick,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        pyo3::types::PyMapping::register::<super::tables::PyTables>(module.py())
    }
}

pyo3::create_exception!(
    _engine,
    Refusal,
    PyValueError,
    "A value that a scenario may not have: key, what was found, what is allowed."
);

/// Engine version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Hash of the engine's sources.
#[pyfunction]
fn build() -> &'static str {
    env!("ACKCLOCK_BUILD")
}

/// Cargo profile of the engine's build, followed by `", trained"` after `tools/train.py`.
#[pyfunction]
fn profile() -> &'static str {
    env!("ACKCLOCK_PROFILE")
}

/// Names allowed in a scenario, with a one-line description of each.
#[pyfunction]
fn registry(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let quinn = ackclock_sim::scenario::names::quinn_controllers();
    let controllers = [ackclock_cc::controller::REGISTRY, ackclock_pcc::REGISTRY, quinn].concat();
    let metrics = ackclock_sim::report::summary::registry();
    let all: [(&str, &[(&str, &str)]); 5] = [
        ("controllers", &controllers),
        ("recovery", recovery::REGISTRY),
        ("profiles", ackclock_tcp::PROFILES),
        ("topologies", ackclock_sim::scenario::topology::REGISTRY),
        ("metrics", &metrics),
    ];
    let dict = PyDict::new(py);
    for family in ackclock_sim::FAMILIES {
        dict.set_item(family.name, family.registry())?;
    }
    for (kind, entries) in all {
        dict.set_item(kind, entries.to_vec())?;
    }
    Ok(dict)
}

/// Options of each controller that has any: name, accepted values, default, and one line of text.
#[pyfunction]
fn controller_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let tcp = ackclock_cc::controller::ENTRIES.iter().map(|e| (e.name, listed(e.options, &(e.usual)())));
    let pcc = ackclock_pcc::control::ENTRIES.iter().map(|e| (e.name, listed(e.options, &(e.usual)())));
    #[cfg(feature = "quinn")]
    let quinn = ackclock_quinn::ENTRIES.iter().map(|e| (e.name, listed(e.options, &(e.usual)())));
    #[cfg(not(feature = "quinn"))]
    let quinn = std::iter::empty();
    for (name, options) in tcp.chain(pcc).chain(quinn).filter(|(_, options)| !options.is_empty()) {
        dict.set_item(name, options)?;
    }
    Ok(dict)
}

/// User-defined controller classes and utility functions, by name. The key that refers to one determines its kind.
type Classes = BTreeMap<String, Py<PyAny>>;

fn customs(py: Python<'_>, classes: &Classes, slot: &Slot) -> Customs {
    let controllers =
        classes.iter().map(|(name, class)| (name.clone(), controller::maker(py, class, slot))).collect();
    let utilities =
        classes.iter().map(|(name, function)| (name.clone(), utility::maker(py, name, function, slot)));
    Customs { controllers, utilities: utilities.collect() }
}

/// Return the failure of a user's controller as a dict: class, hook, seconds, exception.
fn failure_as_dict(py: Python<'_>, failure: Failure) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let Failure { class, hook, time, error } = failure;
    dict.set_item("failure", (class, hook, time.as_secs(), error.into_value(py)))?;
    Ok(dict)
}

/// Contract of a controller: rows of hooks, fields and needs, and the version of the C interface.
#[pyfunction]
fn contract(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    use ackclock_cc::controller::{FIELDS, HOOKS, HOOK_TEXTS, NEEDS};

    let (hooks, fields, needs) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
    for (row, text) in HOOKS.iter().zip(HOOK_TEXTS) {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        dict.set_item("own", row.own)?;
        dict.set_item("about", text.about)?;
        dict.set_item("linux", text.linux)?;
        dict.set_item("after", row.after)?;
        dict.set_item("arguments", text.arguments)?;
        dict.set_item("answer", row.answer)?;
        dict.set_item("required", row.required)?;
        dict.set_item("is_event", row.is_event)?;
        hooks.append(dict)?;
    }
    for row in FIELDS {
        let dict = PyDict::new(py);
        dict.set_item("part", row.part)?;
        dict.set_item("name", row.name)?;
        dict.set_item("kind", row.kind)?;
        dict.set_item("about", row.about)?;
        dict.set_item("linux", row.linux)?;
        dict.set_item("over", row.over)?;
        fields.append(dict)?;
    }
    for row in NEEDS {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        dict.set_item("about", row.about)?;
        dict.set_item("bit", row.bit)?;
        dict.set_item("hook", row.hook)?;
        dict.set_item("most", row.most)?;
        needs.append(dict)?;
    }
    let all = PyDict::new(py);
    all.set_item("hooks", hooks)?;
    all.set_item("fields", fields)?;
    all.set_item("needs", needs)?;
    all.set_item("abi", ackclock_native::abi::ABI)?;
    Ok(all)
}

/// Run the conformance test on a user's controller. Returns the violated rule or the controller's error, or None.
#[pyfunction]
fn check_conformance<'py>(py: Python<'py>, class_: Py<PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let slot = Slot::default();
    let maker = controller::maker(py, &class_, &slot);
    let outcome = ackclock_cc::conformance::check(
        || ackclock_cc::Controller::Custom(maker.make()),
        || !controller::failed(&slot) && py.check_signals().is_ok(),
    );
    py.check_signals()?;
    let failure = slot.lock().ok().and_then(|mut slot| slot.take());
    if let Some(failure) = failure {
        return failure_as_dict(py, failure).map(Some);
    }
    let Err(broken) = outcome else { return Ok(None) };
    let dict = PyDict::new(py);
    dict.set_item("broken", (broken.rule, broken.hook, broken.found))?;
    Ok(Some(dict))
}

/// Execute one run. With `pcap`, every packet selected by the scenario's `record.capture` is written to that file, at
/// most the first `snaplen` bytes of each. The run fails if it needs more than `memory` bytes, and ends with
/// KeyboardInterrupt when `stop` is set. `progress` is called from time to time with the fraction of the run
/// completed. `shortcuts`: the shortcuts to use; they affect only the speed.
#[pyfunction]
#[pyo3(signature = (scenario, seed, pcap = None, controllers = None, memory = None, stop = None, snaplen = None, progress = None, shortcuts = "all"))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
fn run<'py>(
    py: Python<'py>,
    scenario: Given<'py>,
    seed: u64,
    pcap: Option<&str>,
    controllers: Option<Classes>,
    memory: Option<u64>,
    stop: Option<&Bound<'py, PyStop>>,
    snaplen: Option<u32>,
    progress: Option<Py<PyAny>>,
    shortcuts: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let shortcuts = Shortcuts::parse(shortcuts).map_err(refusal)?;
    let slot = Slot::default();
    let customs = customs(py, &controllers.unwrap_or_default(), &slot);
    let interrupt = Interrupt::new(stop.map(Bound::get));
    let scenario = scenario.scenario();
    let output = guarded(py, || {
        let scenario = scenario?;
        let asked = Cell::new(wall_clock());
        let whole = scenario.duration_ns.max(1) as f64;
        let tell = |py: Python<'_>, now: Time| match &progress {
            Some(call) => call.call1(py, (now.0 as f64 / whole,)).map(drop),
            None => Ok(()),
        };
        let stop = |now| controller::failed(&slot) || interrupt.comes(&asked, |py| tell(py, now));
        let bounds = Bounds { memory, cpu_s: None, stop: &stop };
        ackclock_sim::run_taking(&scenario, seed, &customs, &bounds, shortcuts)
    })?;
    interrupt.check()?;
    let failure = slot.lock().ok().and_then(|mut slot| slot.take());
    if let Some(failure) = failure {
        return failure_as_dict(py, failure);
    }
    let output = output.map_err(refusal)?;
    if let Some(path) = pcap {
        let written = guarded(py, || {
            let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
            write_pcapng(&mut file, &output.captured, snaplen)
        })?;
        written.map_err(|error| PyOSError::new_err(format!("{path}: {error}")))?;
    }
    let dict = PyDict::new(py);
    dict.set_item("digest", output.digest.hex())?;
    dict.set_item("tables", PyTables::of(output.tables))?;
    Ok(dict)
}

/// Tables to store: name, and the columns unless all are stored.
type Wanted = Vec<(String, Option<Vec<String>>)>;

/// Execute a list of runs (position in `scenarios`, seed) on the calling thread, and reduce them to metrics and to
/// the named tables. After `budget_s` of CPU time, or when `stop` is set, the remaining runs are skipped and the
/// returned lists are shorter. A run that needs more than `memory` bytes or more than `limit_s` of CPU time fails.
#[pyfunction]
#[pyo3(signature = (scenarios, runs, metrics, tables, budget_s, memory = None, stop = None, controllers = None, limit_s = None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
fn run_each<'py>(
    py: Python<'py>,
    scenarios: Vec<String>,
    runs: Vec<(usize, u64)>,
    metrics: Vec<String>,
    tables: Wanted,
    budget_s: f64,
    memory: Option<u64>,
    stop: Option<&Bound<'py, PyStop>>,
    controllers: Option<Classes>,
    limit_s: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let interrupt = Interrupt::new(stop.map(Bound::get));
    let slot = Slot::default();
    let customs = customs(py, &controllers.unwrap_or_default(), &slot);
    let kept = guarded(py, || {
        let asked = Cell::new(wall_clock());
        let stop = |_| controller::failed(&slot) || interrupt.comes(&asked, |_| Ok(()));
        ackclock_sim::report::summary::check_tables(&tables)?;
        let known = ackclock_sim::Metrics::parse(&metrics)?;
        let parsed = scenarios.iter().map(|s| ackclock_sim::parse(s)).collect::<Result<Vec<_>, _>>()?;
        let place = |at: usize| Error::value("runs", at, format_args!("a position below {}", parsed.len()));
        let list = runs
            .iter()
            .map(|&(at, seed)| parsed.get(at).map(|s| (s, seed)).ok_or_else(|| place(at)))
            .collect::<Result<Vec<_>, _>>()?;
        let bounds = Bounds { memory, cpu_s: limit_s, stop: &stop };
        let one = |scenario: &Scenario, seed, wanted: &dyn Fn(&str) -> bool| {
            let output = ackclock_sim::run_for(scenario, seed, &customs, &bounds, wanted);
            let failure = slot.lock().ok().and_then(|mut slot| slot.take());
            failure.map_or(output, |failure| Err(Error::Own(failure.told())))
        };
        Ok(ackclock_sim::run_each(&list, &known, &tables, budget_s, one))
    })?
    .map_err(refusal)?;
    if stop.is_none() {
        interrupt.check()?; // a caller that passed a flag sees that the lists are shorter
    }

    let dict = PyDict::new(py);
    let hex = |outcome: &Result<ackclock_core::Digest, String>| outcome.as_ref().ok().map(|d| d.hex());
    dict.set_item("digests", kept.outcomes.iter().map(hex).collect::<Vec<_>>())?;
    let errors: Vec<_> = kept.outcomes.iter().map(|o| o.as_ref().err()).collect();
    dict.set_item("errors", errors)?;
    let values = PyDict::new(py);
    for (at, name) in metrics.iter().enumerate() {
        let column = Column::F8(kept.metrics.iter().map(|row| row[at]).collect());
        values.set_item(name, tables::column(py, column)?)?;
    }
    dict.set_item("metrics", values)?;
    dict.set_item("tables", PyTables::of(kept.tables))?;
    Ok(dict)
}

/// Names of the shortcuts, which affect only the speed of a run.
#[pyfunction]
fn shortcuts() -> Vec<&'static str> {
    Shortcuts::names().collect()
}

/// Upper estimate of the size of one run's capture, bytes: the traffic forwarded by the bottleneck or sent by
/// the applications.
#[pyfunction]
fn estimate_capture(py: Python<'_>, scenario: Given<'_>) -> PyResult<u64> {
    let scenario = scenario.scenario();
    guarded(py, || scenario.map(|scenario| ackclock_sim::estimate_capture(&scenario)))?.map_err(refusal)
}

/// Upper estimate of a run's memory, bytes.
#[pyfunction]
fn estimate_memory(py: Python<'_>, scenario: Given<'_>) -> PyResult<u64> {
    let scenario = scenario.scenario();
    guarded(py, || scenario.map(|scenario| ackclock_sim::estimate_memory(&scenario)))?.map_err(refusal)
}

/// Upper estimate of a run's CPU time, seconds.
#[pyfunction]
fn estimate_time(py: Python<'_>, scenario: Given<'_>) -> PyResult<f64> {
    let scenario = scenario.scenario();
    guarded(py, || scenario.map(|scenario| ackclock_sim::estimate_time(&scenario)))?.map_err(refusal)
}

/// Ideal path of RFC 6937, ACK by ACK: {"rows": [...], "summary": {...}}.
#[pyfunction]
#[pyo3(signature = (rule, window, lost, ssthresh = None, recover_fs = None, more_data = true))]
fn ideal_path<'py>(
    py: Python<'py>,
    rule: &str,
    window: u32,
    lost: Vec<u32>,
    ssthresh: Option<u32>,
    recover_fs: Option<u32>,
    more_data: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let known = Rule::by_name(rule).ok_or_else(|| refusal(Error::name("rule", rule, recovery::REGISTRY)))?;
    if window == 0 {
        return Err(refusal(Error::value("window", 0, "at least 1 segment")));
    }
    let config = IdealConfig { lost, ssthresh, recover_fs, more_data, ..IdealConfig::new(known, window) };
    let table = guarded(py, || ideal::run(&config))?;

    let rows = PyList::empty(py);
    for row in &table.rows {
        let dict = PyDict::new(py);
        dict.set_item("time_rtts", row.time_rtts)?;
        dict.set_item("ack", row.ack)?;
        dict.set_item("trigger", row.trigger)?;
        dict.set_item("trigger_is_retransmission", row.trigger_is_retransmission)?;
        dict.set_item("snd_una", row.snd_una)?;
        dict.set_item("delivered", row.delivered)?;
        dict.set_item("newly_lost", row.newly_lost)?;
        dict.set_item("state", ackclock_core::trace::CaState::NAMES[row.state as usize])?;
        dict.set_item("cwnd", row.cwnd)?;
        dict.set_item("ssthresh", row.ssthresh)?;
        dict.set_item("pipe", row.pipe)?;
        dict.set_item("sent_new", row.sent_new)?;
        dict.set_item("sent_retransmissions", row.sent_retransmissions)?;
        dict.set_item("sent", &row.sent)?;
        dict.set_item("rb", &row.rb)?;
        dict.set_item("branch", ackclock_core::trace::Branch::NAMES[row.rule.branch as usize])?;
        dict.set_item("sndcnt", row.rule.sndcnt)?;
        dict.set_item("prr_delivered", row.rule.prr_delivered)?;
        dict.set_item("prr_out", row.rule.prr_out)?;
        dict.set_item("recover_fs", row.rule.recover_fs)?;
        rows.append(dict)?;
    }
    let s = &table.summary;
    let summary = PyDict::new(py);
    summary.set_item("entered", s.entered)?;
    summary.set_item("completed", s.completed)?;
    summary.set_item("recovery_rtts", s.recovery_rtts)?;
    summary.set_item("pipe_at_entry", s.pipe_at_entry)?;
    summary.set_item("ssthresh", s.ssthresh)?;
    summary.set_item("pipe_at_exit", s.pipe_at_exit)?;
    summary.set_item("cwnd_before_exit", s.cwnd_before_exit)?;
    summary.set_item("cwnd_after_exit", s.cwnd_after_exit)?;
    summary.set_item("burst_at_entry", s.burst_at_entry)?;
    summary.set_item("max_burst", s.max_burst)?;
    summary.set_item("burst_at_exit", s.burst_at_exit)?;
    summary.set_item("retransmissions", s.retransmissions)?;

    let dict = PyDict::new(py);
    dict.set_item("rows", rows)?;
    dict.set_item("summary", summary)?;
    Ok(dict)
}

/// Play a packet script from a file. Returns its code blocks, each with the socket's state at that point.
#[pyfunction]
#[pyo3(signature = (path, profile, hz, tolerance_us, sysctls, defines, strict))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
fn play_script<'py>(
    py: Python<'py>,
    path: &str,
    profile: &str,
    hz: u32,
    tolerance_us: Option<u64>,
    sysctls: Vec<(String, String)>,
    defines: Vec<(String, String)>,
    strict: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let profile = ackclock_script::Profile {
        name: profile.to_string(),
        hz,
        tolerance: tolerance_us.map(ackclock_core::Span::from_us),
        sysctls,
        strict,
    };
    let limits = ackclock_script::Limits::default();
    let played = guarded(py, || {
        let text = ackclock_script::read(std::path::Path::new(path), &limits)?;
        ackclock_script::play(&ackclock_script::parse(&text, &defines, &limits)?, &profile)
    })?;
    let dict = PyDict::new(py);
    let outcome = match played {
        Ok(outcome) => outcome,
        Err(ackclock_script::Error::Unsupported { at, what }) => Outcome {
            verdict: Verdict::Unsupported { line: at.line, what },
            blocks: Vec::new(),
            deviation: ackclock_core::Span::ZERO,
            trace: Vec::new(),
        },
        Err(error @ ackclock_script::Error::File { .. }) => {
            return Err(PyOSError::new_err(error.to_string()))
        }
        Err(error) => return Err(PyValueError::new_err(error.to_string())),
    };
    let (verdict, line, expected, actual, unsupported) = match outcome.verdict {
        Verdict::Pass => ("pass", 0, None, None, None),
        Verdict::Fail { line, expected, actual } => ("fail", line, Some(expected), Some(actual), None),
        Verdict::Unsupported { line, what } => ("unsupported", line, None, None, Some(what)),
    };
    dict.set_item("verdict", verdict)?;
    dict.set_item("line", line)?;
    dict.set_item("expected", expected)?;
    dict.set_item("actual", actual)?;
    dict.set_item("unsupported", unsupported)?;
    let blocks = PyList::empty(py);
    for block in outcome.blocks {
        let names = PyDict::new(py);
        for (name, value) in block.names {
            names.set_item(name, value)?;
        }
        blocks.append((block.line, block.text, names))?;
    }
    dict.set_item("blocks", blocks)?;
    dict.set_item("deviation_s", outcome.deviation.as_secs())?;
    dict.set_item("trace", outcome.trace)?;
    Ok(dict)
}

/// Run the yardstick loop. Returns its CPU time per data packet, ns.
#[pyfunction]
fn yardstick(py: Python<'_>, flows: u32, packets: u64) -> PyResult<f64> {
    guarded(py, || ackclock_sim::yardstick::yardstick(flows, packets))
}

/// User CPU time of this process, seconds.
#[pyfunction]
fn cpu_time() -> f64 {
    ackclock_sim::cpu::user_seconds()
}

/// Maximum resident set size of this process so far, bytes.
#[pyfunction]
fn peak_rss_bytes() -> u64 {
    ackclock_sim::cpu::peak_rss_bytes()
}

/// Do work without the GIL. A panic, which only a bug in the engine can cause, becomes a RuntimeError.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| {
        let message = ackclock_sim::runs::batch::panic_message(&*panic);
        PyRuntimeError::new_err(format!("the engine failed, please report this: {message}"))
    })
}

fn refusal(error: Error) -> PyErr {
    match error {
        Error::Value { place, found, allowed } => Refusal::new_err((place, found, allowed)),
        error => PyValueError::new_err(error.to_string()),
    }
}
