//! Controllers in shared libraries, passed from Python.

use std::sync::Arc;

use ackclock_cc::controller::Maker;
use ackclock_core::Time;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::controller::{Failure, Slot};

pyo3::create_exception!(_engine, Fault, PyRuntimeError, "What a controller in a library did wrong.");

/// Loaded controller library; its code runs in this process.
#[pyclass(name = "Library", module = "ackclock", frozen)]
pub struct PyLibrary {
    library: ackclock_native::Library,
    file: String,
}

#[pymethods]
impl PyLibrary {
    /// Load the library at `path` and initialise it with `options` (lines NAME=VALUE). `file` is its name in
    /// messages.
    #[new]
    fn new(path: &str, options: &str, file: &str) -> PyResult<PyLibrary> {
        let library = ackclock_native::Library::load(path, options).map_err(PyValueError::new_err)?;
        Ok(PyLibrary { library, file: file.to_string() })
    }

    /// Name reported by the controller.
    #[getter]
    fn name(&self) -> &'static str {
        self.library.name()
    }

    /// Names of the files read by the controllers.
    #[getter]
    fn reads(&self) -> Vec<&'static str> {
        self.library.reads().collect()
    }

    /// Controller name in messages.
    #[getter]
    fn __name__(&self) -> &str {
        &self.file
    }
}

impl PyLibrary {
    /// Return a factory for the library's controllers, which record failures in `slot`.
    pub fn maker(&self, slot: &Slot) -> Maker {
        let (slot, class) = (slot.clone(), self.file.clone());
        let report = Arc::new(move |hook: &'static str, time: Time, said: String| {
            let error = Fault::new_err(said);
            if let Ok(mut slot) = slot.lock() {
                slot.get_or_insert(Failure { class: class.clone(), hook, time, error });
            }
        });
        ackclock_native::maker(&self.library, &(report as ackclock_native::Report))
    }
}
