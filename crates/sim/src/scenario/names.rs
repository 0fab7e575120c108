//! The transport to which a controller belongs, by its name.

use ackclock_core::options::Options;
use ackclock_core::schema::Refusal;

use crate::workload::{Carried, WorkloadConfig};

/// Whether a controller belongs to PCC's transport.
pub(crate) fn is_pcc(controller: &str) -> bool {
    ackclock_pcc::REGISTRY.iter().any(|(name, _)| *name == controller)
}

/// Prefix of the names of quinn's QUIC controllers.
pub const QUINN: &str = "quinn:";

/// Controllers of QUIC of quinn, with a line about each; none in a build without it.
pub fn quinn_controllers() -> &'static [(&'static str, &'static str)] {
    #[cfg(feature = "quinn")]
    return ackclock_quinn::REGISTRY;
    #[cfg(not(feature = "quinn"))]
    &[]
}

/// Whether a controller belongs to QUIC of quinn.
pub(crate) fn is_quinn(controller: &str) -> bool {
    quinn_controllers().iter().any(|(name, _)| *name == controller)
}

/// Prefix of the names of controllers that belong to a stack behind the C header: `stack:NAME:CONTROLLER`.
pub const STACK: &str = "stack:";

/// Whether a controller belongs to a stack behind the C header.
pub(crate) fn is_stack(controller: &str) -> bool {
    controller.starts_with(STACK)
}

/// Whether a controller belongs to a stack that others have written.
pub(crate) fn is_foreign(controller: &str) -> bool {
    is_quinn(controller) || is_stack(controller)
}

/// Error in the options of a controller of quinn.
pub(crate) fn refused_by_quinn(name: &str, options: &Options) -> Option<Refusal> {
    #[cfg(feature = "quinn")]
    return ackclock_quinn::build(name, options).err();
    #[cfg(not(feature = "quinn"))]
    {
        let _ = (name, options);
        None
    }
}

/// Kinds of workloads that PCC carries.
pub fn pcc_workloads() -> Vec<&'static str> {
    WorkloadConfig::carried_by(Carried::ByTcpOrPcc)
}

/// Prefix of the names of a user's own controllers and utility functions in a scenario.
pub const CUSTOM: &str = "custom:";
