//! Transport stacks that others have written, behind the C header `c/ackclock_stack.h`: loaded from a file that the user names, as the
//! transport of flows, and checked against the contract of that header.
//!
//! Libraries stay loaded until the process ends. Nothing in a scenario can load one: a flow names a stack that is there, or is refused.

mod abi;
mod audit;
pub mod check;
mod end;
mod library;

pub use end::{build, Recipe};
pub use library::{load, loaded, Library};
