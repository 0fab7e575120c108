//! Errors that a caller can cause.

use std::fmt::Display;

use ackclock_core::schema::Refusal;

/// Reason why a run was rejected or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a valid scenario.
    #[error("the scenario is not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// A value is not allowed.
    #[error("{place}: found {found}; allowed: {allowed}")]
    Value {
        /// Position in the scenario.
        place: String,
        /// The value found.
        found: String,
        /// The values allowed.
        allowed: String,
    },
    /// A user's own controller or an external stack failed.
    #[error("{0}")]
    Own(String),
    /// The caller stopped a batch.
    #[error("stopped by the caller")]
    Stopped,
}

impl Error {
    /// Return an error for a value that is not allowed.
    pub fn value(place: impl Display, found: impl Display, allowed: impl Display) -> Error {
        Error::Value { place: place.to_string(), found: found.to_string(), allowed: allowed.to_string() }
    }

    /// Return the error for a value rejected by a table at `place`.
    pub fn refused(place: impl Display, refusal: Refusal) -> Error {
        let place =
            [place.to_string(), refusal.key].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let place = place.join(".");
        Error::Value { place, found: refusal.found, allowed: refusal.allowed }
    }

    /// Return the error for a name that is not in a registry.
    pub fn name(place: impl Display, found: &str, registry: &[(&str, &str)]) -> Error {
        let names: Vec<&str> = registry.iter().map(|(name, _)| *name).collect();
        Error::value(place, format_args!("{found:?}"), names.join(", "))
    }
}
