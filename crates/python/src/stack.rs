//! Stacks behind a C header, for Python: loading, listing, checking.

#[cfg(feature = "stack")]
mod there {
    use std::path::PathBuf;

    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    /// Name, release and controllers.
    type Listed = (String, String, Vec<String>);

    fn listed(library: &ackclock_stack::Library) -> Listed {
        (library.name.clone(), library.version.clone(), library.controllers.clone())
    }

    /// Load a library, which is never unloaded. Returns its name, release and controllers. The library's code runs in
    /// this process.
    #[pyfunction]
    pub fn load_stack(file: PathBuf) -> PyResult<Listed> {
        ackclock_stack::load(&file).map(listed).map_err(PyValueError::new_err)
    }

    /// Return the name, release and controllers of each loaded stack.
    #[pyfunction]
    pub fn loaded_stacks() -> Vec<Listed> {
        ackclock_stack::loaded().into_iter().map(listed).collect()
    }

    /// Names of a stack's checks, with one line about each.
    #[pyfunction]
    pub fn stack_checks() -> Vec<(&'static str, &'static str)> {
        ackclock_stack::check::CHECKS.to_vec()
    }

    /// Run one check on a loaded stack. Returns whether it passed, and the measurement or the error.
    #[pyfunction]
    pub fn check_stack(
        py: Python<'_>,
        name: &str,
        controller: &str,
        what: &str,
        pauses: bool,
    ) -> PyResult<(bool, String)> {
        let there = ackclock_stack::loaded();
        let library = there.into_iter().find(|library| library.name == name);
        let library = library.ok_or_else(|| PyValueError::new_err(format!("{name:?} is not loaded")))?;
        let said = py.detach(|| ackclock_stack::check::check(library, controller, what, pauses));
        Ok(match said {
            Ok(measured) => (true, measured),
            Err(wrong) => (false, wrong),
        })
    }
}

#[cfg(not(feature = "stack"))]
mod there {
    use std::path::PathBuf;

    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    const NONE: &str =
        "found an engine that was built without stacks of others; allowed: one with the feature `stack`";

    /// Reject every library: this engine was built without stacks.
    #[pyfunction]
    pub fn load_stack(_file: PathBuf) -> PyResult<(String, String, Vec<String>)> {
        Err(PyValueError::new_err(NONE))
    }

    /// Return no stacks.
    #[pyfunction]
    pub fn loaded_stacks() -> Vec<(String, String, Vec<String>)> {
        Vec::new()
    }

    /// Return no checks.
    #[pyfunction]
    pub fn stack_checks() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Reject every check: this engine was built without stacks.
    #[pyfunction]
    pub fn check_stack(
        _name: &str,
        _controller: &str,
        _what: &str,
        _pauses: bool,
    ) -> PyResult<(bool, String)> {
        Err(PyValueError::new_err(NONE))
    }
}

pub use there::*;
