//! Tables of a run, converted for Python on first use. Most columns of many tiny runs are never read, and Python's
//! garbage collector scans all objects that it owns.

use std::sync::{Mutex, PoisonError};

use ackclock_sim::{Column, Table};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyString};

/// Tables of a run: {table: {column: (dtype, buffer or list of str)}}, an immutable `Mapping`.
#[pyclass(frozen, mapping, module = "ackclock._engine", name = "Tables")]
pub struct PyTables {
    names: Vec<&'static str>,
    held: Mutex<Vec<Held>>,
}

enum Held {
    Here(Table),
    Given(Py<PyDict>),
}

impl PyTables {
    pub fn of(tables: Vec<Table>) -> Self {
        let names = tables.iter().map(|table| table.name).collect();
        PyTables { names, held: Mutex::new(tables.into_iter().map(Held::Here).collect()) }
    }

    /// Return a table, converted on its first use.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyDict>>> {
        let Some(at) = self.names.iter().position(|&known| known == name) else { return Ok(None) };
        let mut held = self.held.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Held::Here(table) = &mut held[at] {
            let columns = PyDict::new(py);
            for (name, column) in std::mem::take(&mut table.columns) {
                columns.set_item(name, self::column(py, column)?)?;
            }
            held[at] = Held::Given(columns.unbind());
        }
        match &held[at] {
            Held::Given(columns) => Ok(Some(columns.clone_ref(py))),
            Held::Here(_) => unreachable!("given above"),
        }
    }

    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in &self.names {
            dict.set_item(name, self.table(py, name)?)?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl PyTables {
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyDict>> {
        self.table(py, name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    #[pyo3(signature = (name, default = None))]
    fn get(&self, py: Python<'_>, name: &str, default: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.table(py, name)?.map(Py::into_any).or(default))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    fn __len__(&self) -> usize {
        self.names.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.names)
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.dict(py)?.values())
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.dict(py)?.items())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<PyTables>() {
            Ok(other) => self.dict(py)?.eq(other.get().dict(py)?),
            Err(_) => self.dict(py)?.eq(other),
        }
    }

    /// Convert to a plain dict, for `pickle` and copies.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        Ok((py.get_type::<PyDict>().into_any(), (self.dict(py)?,)))
    }
}

/// Return the type of a column, and its values as a buffer or a list of str.
pub fn column(py: Python<'_>, column: Column) -> PyResult<(&'static str, Bound<'_, PyAny>)> {
    let raw = |bytes: &[u8]| PyBytes::new(py, bytes).into_any();
    let kind = column.kind();
    let values = match column {
        Column::F8(v) => raw(bytemuck::cast_slice(&v)),
        Column::I8(v) => raw(bytemuck::cast_slice(&v)),
        Column::U4(v) | Column::N4(v) => raw(bytemuck::cast_slice(&v)),
        Column::U1(v) | Column::Bool(v) => raw(&v),
        Column::Text { codes, names } => {
            let names: Vec<_> = names.iter().map(|name| PyString::new(py, name)).collect();
            PyList::new(py, codes.iter().map(|&code| &names[code as usize]))?.into_any()
        }
    };
    Ok((kind, values))
}

#[cfg(target_endian = "big")]
compile_error!("columns are handed out as little-endian buffers");
