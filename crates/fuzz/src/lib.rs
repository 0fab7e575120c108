//! Fuzz targets of the engine. Each takes any bytes; it panics if an invariant does not hold, and the engine must not
//! panic either. `tools/fuzz.py` runs them under libFuzzer, built with overflow checks and debug assertions; the tests
//! replay the kept corpus and draw inputs of their own.

pub mod capture;
mod draw;
pub mod frames;
pub mod script;
pub mod segments;

pub use draw::Draw;
