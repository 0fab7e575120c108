//! Fuzz targets of the engine. Each accepts any bytes and panics if an invariant is violated; the engine itself must
//! not panic. `tools/fuzz.py` runs the targets under libFuzzer, built with overflow checks and debug assertions. The
//! tests replay the stored corpus and draw further inputs.

pub mod capture;
mod draw;
pub mod frames;
pub mod script;
pub mod segments;

pub use draw::Draw;
