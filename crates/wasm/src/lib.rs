//! The simulator for a web page: takes the text of a scenario, returns errors or tables. Contains no logic of the
//! simulation.
//!
//! [`lab`] implements a page's requests in Rust. `abi` exposes them through numbers and linear memory, and
//! `controller` calls a user's controller in JavaScript; both exist on wasm32 only (decision 0053).

#[cfg(target_arch = "wasm32")]
mod abi;
#[cfg(target_arch = "wasm32")]
mod controller;
pub mod lab;
