//! What the engine's mechanisms say of themselves, for Python.

use ackclock_core::schema::{Described, Value};
use ackclock_net::LinuxRedParams;
use ackclock_sim::workload::{Carried, WorkloadConfig};
use ackclock_sim::FAMILIES;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The tables of each family, under `tables` those that are in none, under `pcc` what that transport carries, under `datagrams` the workloads that plain datagrams carry: kind, text, and for each key its name, text, unit, range and default.
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
    pcc.set_item("workloads", ackclock_sim::hosts::pcc_workloads())?;
    pcc.set_item("payload", ackclock_pcc::Config::default().payload)?;
    dict.set_item("pcc", pcc)?;
    dict.set_item("datagrams", WorkloadConfig::carried_by(Carried::ByDatagrams))?;
    Ok(dict)
}

/// A column: name, type, unit, meaning, and what null means.
type ColumnLine = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Every table of a run: name, what it holds, and its columns.
#[pyfunction]
pub fn columns() -> Vec<(&'static str, &'static str, Vec<ColumnLine>)> {
    let types = ackclock_sim::columns::types();
    let lines = ackclock_sim::columns::TABLES.iter().zip(types).map(|(table, (_, types))| {
        // the variables of controllers, of which that run has none, are floats
        let kinds = types.iter().map(|(_, kind)| *kind).chain(std::iter::repeat("f8"));
        let columns = table.columns.iter().zip(kinds);
        let line = |(column, kind): (&ackclock_sim::columns::ColumnAbout, _)| {
            (column.name, kind, column.unit, column.meaning, column.null)
        };
        (table.name, table.about, columns.map(line).collect())
    });
    lines.collect()
}

/// A value in base units, in Python's types.
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

/// `min` and `max` of a queue `linux-red` in base units, bytes, and the weight that `tc red` finds for it.
#[pyfunction]
pub fn red_weight(queue: &Bound<'_, PyAny>) -> PyResult<(u64, u64, u8)> {
    let params = LinuxRedParams::read(&crate::scenario::based(&crate::scenario::written(queue, 0)?));
    let params = params.map_err(crate::scenario::raised)?;
    let (min, max) = params.band();
    Ok((min, max, params.wlog().map_err(crate::scenario::raised)?))
}

/// The burst for which `tc red` finds a weight, beside a `min` of so many packets.
#[pyfunction]
pub fn red_burst(wlog: u8, min: f64) -> u32 {
    ackclock_net::queue::tc_burst(wlog, min)
}
