//! Descriptions of the engine's mechanisms, for Python.

use ackclock_core::schema::{Described, Value};
use ackclock_core::Span;
use ackclock_net::host::DisciplineConfig;
use ackclock_net::netem_jitter::NetemJitter;
use ackclock_net::qdisc::Netem;
use ackclock_net::QueueConfig;
use ackclock_sim::workload::{Carried, WorkloadConfig};
use ackclock_sim::FAMILIES;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Return the tables of each family, with the tables outside families under `tables`, the transports' parameters
/// under `pcc` and `quinn`, and the workloads of plain datagrams under `datagrams`. Each table has its kind and text,
/// and for each key its name, text, unit, range and default.
#[pyfunction]
pub fn schema(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for family in FAMILIES.iter().chain([&ackclock_schema::front::DISTRIBUTIONS]) {
        dict.set_item(family.name, object(py, &family.described())?)?;
    }
    let tables = Value::List(ackclock_sim::tables().iter().map(|table| table.described()).collect());
    dict.set_item("tables", object(py, &tables)?)?;
    let controllers: Vec<&str> = ackclock_pcc::REGISTRY.iter().map(|&(name, _)| name).collect();
    let pcc = PyDict::new(py);
    pcc.set_item("controllers", controllers)?;
    pcc.set_item("workloads", ackclock_sim::scenario::names::pcc_workloads())?;
    pcc.set_item("payload", ackclock_pcc::Config::default().payload)?;
    dict.set_item("pcc", pcc)?;
    let quinn = PyDict::new(py);
    let names: Vec<&str> =
        ackclock_sim::scenario::names::quinn_controllers().iter().map(|&(name, _)| name).collect();
    quinn.set_item("controllers", names)?;
    quinn.set_item("workloads", WorkloadConfig::carried_by_quic())?;
    dict.set_item("quinn", quinn)?;
    dict.set_item("datagrams", WorkloadConfig::carried_by(Carried::ByDatagrams))?;
    Ok(dict)
}

/// Column of a table: name, type, unit, meaning, and meaning of null.
type ColumnLine = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Return every table of a run: name, content, and columns.
#[pyfunction]
pub fn columns() -> Vec<(&'static str, &'static str, Vec<ColumnLine>)> {
    let types = ackclock_sim::report::columns::types();
    let lines = ackclock_sim::report::columns::TABLES.iter().zip(types).map(|(table, (_, types))| {
        // controller variables, which are floats, are missing from `types`
        let kinds = types.iter().map(|(_, kind)| *kind).chain(std::iter::repeat("f8"));
        let columns = table.columns.iter().zip(kinds);
        let line = |(column, kind): (&ackclock_sim::tables::columns::ColumnAbout, _)| {
            (column.name, kind, column.unit, column.meaning, column.null)
        };
        (table.name, table.about, columns.map(line).collect())
    });
    lines.collect()
}

/// Convert a value in base units to Python's types.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Flag(on) => on.into_pyobject(py)?.to_owned().into_any(),
        Value::Whole(n) => n.into_pyobject(py)?.into_any(),
        Value::Number(x) => x.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::List(entries) => {
            let entries: Vec<_> = entries.iter().map(|entry| object(py, entry)).collect::<PyResult<_>>()?;
            PyList::new(py, entries)?.into_any()
        }
        Value::Counts(counts) => PyList::new(py, counts.iter())?.into_any(),
        Value::Pending(_) => py.None().into_bound(py),
        Value::Table(entries) => {
            let dict = PyDict::new(py);
            for (key, entry) in entries {
                dict.set_item(key, object(py, entry)?)?;
            }
            dict.into_any()
        }
    })
}

/// Return the kernel's queueing discipline for the queue of a link (family "queues") or of a host's device
/// ("disciplines"), given in base units.
#[pyfunction]
pub fn qdisc<'py>(
    py: Python<'py>,
    family: &str,
    queue: &Bound<'py, PyAny>,
    delay_ns: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let queue = crate::scenario::based(&crate::scenario::written(queue, 0)?);
    let made = match family {
        "disciplines" => DisciplineConfig::read(&queue).map(|queue| queue.qdisc()),
        _ => QueueConfig::read(&queue).and_then(|queue| queue.qdisc(Span(delay_ns))),
    };
    object(py, &made.map_err(crate::scenario::raised)?.value())
}

/// Return the kernel's netem with these settings.
#[pyfunction]
#[pyo3(signature = (*, limit, delay_ns, rate, overhead, loss, gemodel, seed, duplicate=0, corrupt=0, jitter=None))]
#[allow(clippy::too_many_arguments, reason = "the settings of netem")]
pub fn netem<'py>(
    py: Python<'py>,
    limit: u32,
    delay_ns: u64,
    rate: u64,
    overhead: i32,
    loss: u32,
    gemodel: Option<[u32; 4]>,
    seed: u64,
    duplicate: u32,
    corrupt: u32,
    jitter: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let jitter = match jitter {
        Some(jitter) => Some(
            NetemJitter::read(&crate::scenario::based(&crate::scenario::written(jitter, 0)?))
                .map_err(crate::scenario::raised)?
                .netem(),
        ),
        None => None,
    };
    let seed = Some(seed);
    let netem =
        Netem { limit, delay_ns, jitter, rate, overhead, loss, duplicate, corrupt, model: gemodel, seed };
    object(py, &netem.qdisc().value())
}
