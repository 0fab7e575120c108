//! Mapping from controller names to transports.

use ackclock_core::options::Options;
use ackclock_core::schema::Refusal;

use crate::workload::{Carried, WorkloadConfig};

/// Whether a controller belongs to PCC's transport.
pub(crate) fn is_pcc(controller: &str) -> bool {
    ackclock_pcc::REGISTRY.iter().any(|(name, _)| *name == controller)
}

/// Name prefix of quinn's QUIC controllers.
pub const QUINN: &str = "quinn:";

/// QUIC controllers of quinn, each with a description; empty in a build without quinn.
pub fn quinn_controllers() -> &'static [(&'static str, &'static str)] {
    #[cfg(feature = "quinn")]
    return ackclock_quinn::REGISTRY;
    #[cfg(not(feature = "quinn"))]
    &[]
}

/// Whether a controller is one of quinn's QUIC controllers.
pub(crate) fn is_quinn(controller: &str) -> bool {
    quinn_controllers().iter().any(|(name, _)| *name == controller)
}

/// Name prefix of controllers from a stack behind the C header: `stack:NAME:CONTROLLER`.
pub const STACK: &str = "stack:";

/// Whether a controller belongs to a stack behind the C header.
pub(crate) fn is_stack(controller: &str) -> bool {
    controller.starts_with(STACK)
}

/// Whether a controller belongs to an external stack.
pub(crate) fn is_foreign(controller: &str) -> bool {
    is_quinn(controller) || is_stack(controller)
}

/// Return the error in the options of a quinn controller, or `None`.
pub(crate) fn refused_by_quinn(name: &str, options: &Options) -> Option<Refusal> {
    #[cfg(feature = "quinn")]
    return ackclock_quinn::build(name, options).err();
    #[cfg(not(feature = "quinn"))]
    {
        let _ = (name, options);
        None
    }
}

/// Kinds of workloads that PCC can carry.
pub fn pcc_workloads() -> Vec<&'static str> {
    WorkloadConfig::carried_by(Carried::ByTcpOrPcc)
}

/// Name prefix of a user's own controllers and utility functions in a scenario.
pub const CUSTOM: &str = "custom:";
