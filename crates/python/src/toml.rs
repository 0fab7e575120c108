//! TOML for Python: values and their positions.

use ackclock_schema::toml::{self, Position};
use ackclock_schema::Written;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Position in a text: line, column and length.
type Place = (usize, usize, usize);

fn place(position: Position) -> Place {
    (position.line, position.column, position.length)
}

/// Read a TOML text. Returns its contents and, for each dotted key, the positions of its name and value; or the
/// position of an error and its reason.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "as Python unpacks it")]
pub fn read_toml<'py>(
    py: Python<'py>,
    text: &str,
) -> PyResult<(Bound<'py, PyAny>, Vec<(String, Place, Place)>, Option<(Place, String)>)> {
    match toml::read(text) {
        Ok(read) => {
            let places = read.places.into_iter().map(|one| (one.key, place(one.name), place(one.value)));
            Ok((written_object(py, &read.written)?, places.collect(), None))
        }
        Err((position, why)) => Ok((PyDict::new(py).into_any(), Vec::new(), Some((place(position), why)))),
    }
}

/// Convert a value in its written form to Python's types.
pub fn written_object<'py>(py: Python<'py>, written: &Written) -> PyResult<Bound<'py, PyAny>> {
    Ok(match written {
        Written::Nothing => py.None().into_bound(py),
        Written::Huge(figures) => py.get_type::<pyo3::types::PyInt>().call1((figures,))?,
        Written::Flag(on) => on.into_pyobject(py)?.to_owned().into_any(),
        Written::Whole(n) => n.into_pyobject(py)?.into_any(),
        Written::Number(x) => x.into_pyobject(py)?.into_any(),
        Written::Text(text) => text.into_pyobject(py)?.into_any(),
        Written::Date(text) => {
            let module = py.import("datetime")?;
            let made = ["date", "time", "datetime"].iter().find_map(|kind| {
                let kind = module.getattr(*kind).ok()?;
                kind.call_method1("fromisoformat", (text,)).ok()
            });
            made.unwrap_or(py.None().into_bound(py))
        }
        Written::List(entries) => {
            let entries: Vec<_> =
                entries.iter().map(|entry| written_object(py, entry)).collect::<PyResult<_>>()?;
            PyList::new(py, entries)?.into_any()
        }
        Written::Table(entries) => {
            let dict = PyDict::new(py);
            for (key, entry) in entries {
                dict.set_item(key, written_object(py, entry)?)?;
            }
            dict.into_any()
        }
    })
}
