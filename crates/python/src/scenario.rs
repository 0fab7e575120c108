//! Scenarios for Python: takes values as written, returns a valid scenario, text and values.

use std::sync::Arc;

use ackclock_schema::front::{Files, Front, DISTRIBUTIONS};
use ackclock_schema::quantity::{share, Asked, Dimension, DIMENSIONS};
use ackclock_schema::{Refusal, Table, Value, Written};
use ackclock_sim::scenario::spec::read::{compile, unjudged, Compiled, Facts};
use ackclock_sim::scenario::spec::CapturePoint;
use ackclock_sim::{parse, tables, Error, Scenario, FAMILIES};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::schema::object;
use crate::toml::written_object;

/// Errors of a scenario: key, value found, values allowed.
pub type Wrong = Vec<(String, String, String)>;

fn wrong(refusals: Vec<Refusal>) -> Wrong {
    refusals.into_iter().map(|Refusal { key, found, allowed }| (key, found, allowed)).collect()
}

/// Maximum nesting of tables, deeper than in any scenario. Needed because a Python value may contain itself.
const DEEPEST: usize = 100;

/// Convert a Python value to a scenario value.
pub fn written(value: &Bound<'_, PyAny>, deep: usize) -> PyResult<Written> {
    if deep > DEEPEST {
        return Ok(Written::Nothing);
    }
    let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((key.str()?.to_str()?.to_string(), written(&value, deep + 1)?))
    };
    Ok(if let Ok(text) = value.cast::<PyString>() {
        Written::Text(text.to_str()?.to_string())
    } else if let Ok(table) = value.cast::<PyDict>() {
        Written::Table(table.iter().map(pair).collect::<PyResult<_>>()?)
    } else if value.is_none() {
        Written::Nothing
    } else if let Ok(on) = value.cast::<PyBool>() {
        Written::Flag(on.is_true())
    } else if value.is_instance_of::<PyInt>() {
        match value.extract::<i64>() {
            Ok(n) => Written::Whole(n),
            Err(_) if value.call_method0("bit_length")?.extract::<u64>()? > 210 => {
                Written::Huge("9".repeat(64))
            }
            Err(_) => Written::Huge(value.str()?.to_str()?.to_string()),
        }
    } else if let Ok(x) = value.cast::<PyFloat>() {
        Written::Number(x.value())
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let entries = value.try_iter()?.map(|entry| written(&entry?, deep + 1));
        Written::List(entries.collect::<PyResult<_>>()?)
    } else if let Ok(table) = value.cast::<PyMapping>() {
        let pairs = table.items()?.iter().map(|one| pair(one.extract()?));
        Written::Table(pairs.collect::<PyResult<_>>()?)
    } else if let Ok(table) = value.getattr("_given") {
        written(&table, deep + 1)?
    } else {
        Written::Date(value.str()?.to_str()?.to_string())
    })
}

/// Files and values referred to by a scenario, provided by Python.
struct Found<'py>(Bound<'py, PyAny>);

impl Found<'_> {
    /// Call a method of Python. If it raises `ScenarioError`, return it as an error.
    fn ask<T>(
        &self,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
        source: bool,
    ) -> Result<T, Refusal> {
        call(&self.0).map_err(|error| {
            let value = error.value(self.0.py());
            let part =
                |name| value.getattr(name).and_then(|part| part.extract::<String>()).unwrap_or_default();
            let (found, file) = (part("found"), part("source"));
            let found = if source { format!("{found} in {file}") } else { found };
            Refusal { key: part("key"), found, allowed: part("allowed") }
        })
    }
}

impl Files for Found<'_> {
    fn trace(&self, name: &str) -> Result<Arc<[u32]>, Refusal> {
        self.ask(
            |files| {
                files
                    .call_method1("trace", (name,))?
                    .extract::<PyRef<'_, PyTrace>>()
                    .map(|t| t.0.clone())
                    .map_err(Into::into)
            },
            true,
        )
    }
    fn controller(&self, name: &str, options: &Written) -> Result<String, Refusal> {
        let call = |files: &Bound<'_, PyAny>| {
            let options = written_object(files.py(), options)?;
            files.call_method1("controller", (name, options))?.extract()
        };
        self.ask(call, false)
    }
}

/// Number of packets that may be sent in each millisecond of a Mahimahi trace.
#[pyclass(frozen, name = "Trace")]
pub struct PyTrace(Arc<[u32]>);

#[pymethods]
impl PyTrace {
    /// Read a trace from the bytes of a file. The key of an error is the number of the invalid line.
    #[staticmethod]
    fn read(py: Python<'_>, data: &[u8]) -> PyResult<PyTrace> {
        let read = py.detach(|| ackclock_sim::read_trace(data));
        read.map(PyTrace).map_err(|(line, refusal)| raised(refusal.within(line)))
    }

    /// Counts, as a tuple.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.iter())
    }
}

/// Convert an error to Python's exception.
pub fn raised(Refusal { key, found, allowed }: Refusal) -> PyErr {
    crate::Refusal::new_err((key, found, allowed))
}

/// A valid scenario.
#[pyclass(frozen, name = "Scenario")]
pub struct PyScenario {
    compiled: Compiled,
    written: Written,
}

#[pymethods]
impl PyScenario {
    /// Make a scenario from plain values, or return all errors. `files` provides the files that they refer to.
    #[staticmethod]
    fn read(values: &Bound<'_, PyAny>, files: Bound<'_, PyAny>) -> PyResult<(Option<PyScenario>, Wrong)> {
        let given = written(values, 0)?;
        Ok(match compile(&given, &Found(files)) {
            Ok(compiled) => {
                let written = ackclock_sim::Scenario::TABLE.ordered(given, false);
                (Some(PyScenario { compiled, written }), Vec::new())
            }
            Err(refusals) => (None, wrong(refusals)),
        })
    }

    /// Keys set, in the order of the tables.
    fn written<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        written_object(py, &self.written)
    }

    /// Values in base units, without descriptive names.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.compiled.canonical())
    }

    /// Canonical values as JSON, with the scenario's name.
    #[pyo3(signature = (capture = None))]
    fn text(&self, capture: Option<&str>) -> String {
        self.compiled.text(capture)
    }

    /// Copy of the scenario that captures the packets of one side.
    fn capturing(&self, side: &str) -> PyScenario {
        let mut scenario = Scenario::clone(&self.compiled.scenario);
        scenario.record.capture = match side {
            "sender" => CapturePoint::Sender,
            _ => CapturePoint::Receiver,
        };
        let compiled = Compiled { scenario: Arc::new(scenario), values: self.compiled.values.clone() };
        PyScenario { compiled, written: self.written.clone() }
    }

    /// Number of flows in the run. Each client of a population is one flow.
    fn flow_count(&self) -> u64 {
        self.compiled.scenario.flow_count()
    }
}

/// Return a scenario's values as JSON with these transports, before its rules are checked.
#[pyfunction]
#[pyo3(name = "unjudged")]
pub fn compiled_unjudged(values: &Bound<'_, PyAny>, files: Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let given = written(values, 0)?;
    Ok(unjudged(&given, &Found(files)).ok().map(|(compiled, _)| compiled.whole()))
}

/// Return a table described by the engine, by its kind and, if it belongs to a family, the family's name.
fn described(family: Option<&str>, kind: &str) -> PyResult<&'static Table> {
    let held = match family {
        Some(name) => {
            let mut families = FAMILIES.iter().chain([&DISTRIBUTIONS]);
            families.find(|family| family.name == name).map_or(Vec::new(), |family| family.tables.to_vec())
        }
        None => tables(),
    };
    let found = held.into_iter().find(|table| table.kind == kind);
    found.ok_or_else(|| PyKeyError::new_err(kind.to_string()))
}

/// Scenario passed from Python: an object, or JSON in base units.
#[derive(FromPyObject)]
pub enum Given<'py> {
    /// Object made by `Scenario.read`.
    Made(PyRef<'py, PyScenario>),
    /// Text of `Scenario.text`, possibly from another process.
    Text(String),
}

impl Given<'_> {
    /// Return the scenario to run.
    pub fn scenario(&self) -> Result<Arc<Scenario>, Error> {
        match self {
            Given::Made(made) => Ok(made.compiled.scenario.clone()),
            Given::Text(text) => parse(text).map(Arc::new),
        }
    }
}

/// Read a single table. Returns the errors in its values, the keys given in order, and the table in base units,
/// without multiples of the bandwidth-delay product.
#[pyfunction]
pub fn read_table<'py>(
    py: Python<'py>,
    family: Option<&str>,
    kind: &str,
    values: &Bound<'py, PyAny>,
    files: Bound<'py, PyAny>,
) -> PyResult<(Wrong, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let table = described(family, kind)?;
    let given = written(values, 0)?;
    let files = Found(files);
    let mut front = Front::new(&files);
    let made = front.table(&given, table, family.is_some());
    let given = table.ordered(given, family.is_some());
    Ok((wrong(front.wrong), written_object(py, &given)?, object(py, &made)?))
}

/// Convert a value in base units to its form in a scenario. The key belongs to a table without a family, or to the
/// table of kind `kind` in one.
#[pyfunction]
pub fn shown<'py>(
    py: Python<'py>,
    family: Option<&str>,
    kind: &str,
    key: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let known = described(family, kind)?.keys().find(|known| known.name == key);
    let known = known.ok_or_else(|| PyKeyError::new_err(key.to_string()))?;
    object(py, &known.takes.shown(&based(&written(value, 0)?)))
}

/// Convert a value passed by Python in base units.
pub fn based(written: &Written) -> Value {
    match written {
        Written::Flag(on) => Value::Flag(*on),
        Written::Whole(n) => u64::try_from(*n).map_or(Value::Number(*n as f64), Value::Whole),
        Written::Number(x) => Value::Number(*x),
        Written::Text(text) | Written::Date(text) | Written::Huge(text) => Value::Text(text.clone()),
        Written::List(entries) => Value::List(entries.iter().map(based).collect()),
        Written::Table(entries) => {
            Value::Table(entries.iter().map(|(key, value)| (key.clone(), based(value))).collect())
        }
        Written::Nothing => Value::Table(Vec::new()),
    }
}

/// Return three properties of a path of a network: round-trip propagation delay (ns), bottleneck rate (bit/s), and
/// bandwidth-delay product in packets, as numerator and denominator.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "as Python unpacks it")]
pub fn path_facts<'py>(
    py: Python<'py>,
    network: &Bound<'py, PyAny>,
    path: Option<&str>,
    files: Bound<'py, PyAny>,
) -> PyResult<(u128, Option<u128>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let given = written(network, 0)?;
    let facts = Facts::written(&given, path, &Found(files));
    let bdp = facts.bdp();
    Ok((facts.rtt_ns, facts.bps, natural(py, &bdp.numerator)?, natural(py, &bdp.denominator)?))
}

/// Return the rate of a link in bit/s, or the mean rate of its trace; None if it is infinite.
#[pyfunction]
pub fn mean_bps(link: &Bound<'_, PyAny>, files: Bound<'_, PyAny>) -> PyResult<Option<u128>> {
    let given = written(link, 0)?;
    let files = Found(files);
    let made = Front::new(&files).table(&given, ackclock_net::link::LinkParams::TABLE, false);
    Ok(ackclock_sim::scenario::spec::read::mean_bps(&made))
}

fn natural<'py>(py: Python<'py>, n: &ackclock_schema::nat::Nat) -> PyResult<Bound<'py, PyAny>> {
    py.get_type::<PyInt>().call_method1("from_bytes", (n.to_bytes().as_slice(), "little"))
}

/// Description of each quantity kind: name, noun, units, example, maximum, maximum as text, and whether it is
/// indivisible.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "as Python unpacks it")]
pub fn dimensions(
) -> Vec<(&'static str, &'static str, Vec<(&'static str, u64)>, &'static str, u64, &'static str, bool)> {
    let one = |d: &&'static Dimension| {
        (d.name, d.noun, d.units.to_vec(), d.example, d.largest, d.shown, d.indivisible)
    };
    DIMENSIONS.iter().map(one).collect()
}

/// Read a quantity of one of these kinds. Returns numerator, denominator, nearest whole number, and kind.
#[pyfunction]
pub fn quantity<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    dimensions: Vec<String>,
    zero: bool,
    parts: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, u128, &'static str)> {
    let kinds = named(&dimensions);
    let asked = Asked { dimensions: &kinds, zero, parts };
    let (number, dimension) = asked.read(&written(value, 0)?).map_err(raised)?;
    let (numerator, denominator) = (natural(py, &number.numerator)?, natural(py, &number.denominator)?);
    Ok((numerator, denominator, number.half_up(), dimension.name))
}

fn named(dimensions: &[String]) -> Vec<&'static Dimension> {
    let known = |name: &String| DIMENSIONS.iter().find(|d| d.name == name).copied();
    dimensions.iter().filter_map(known).collect()
}

/// Describe, for messages, the values permitted for a quantity of these kinds.
#[pyfunction]
pub fn describe_quantity(dimensions: Vec<String>, zero: bool) -> String {
    Asked { dimensions: &named(&dimensions), zero, parts: false }.describe()
}

/// Read a probability.
#[pyfunction]
pub fn read_share(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    share(&written(value, 0)?).map_err(raised)
}
