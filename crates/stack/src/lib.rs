//! Third-party transport stacks behind the C header `c/ackclock_stack.h`. They are loaded from a file given by the
//! user, carry flows, and are checked against the contract of the header.
//!
//! Libraries stay loaded until the process ends. A scenario cannot load one: a flow names a loaded stack or is rejected.

mod abi;
mod audit;
pub mod check;
mod end;
mod library;

pub use end::{build, Recipe};
pub use library::{load, loaded, Library};
