//! Tests of the language through its public interface, in one program: each program would be linked with the whole
//! engine.

mod language;
mod properties;
mod setup;
