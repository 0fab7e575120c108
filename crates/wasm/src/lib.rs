//! The simulator for a page: the text of a scenario in, refusals or tables out; no logic here.
//!
//! [`lab`] is what a page asks for, as Rust; `abi` hands it over by numbers and linear memory, `controller` calls a user's own in JavaScript, both
//! on wasm32 only (decision 0053).

#[cfg(target_arch = "wasm32")]
mod abi;
#[cfg(target_arch = "wasm32")]
mod controller;
pub mod lab;
