//! The language through its public face. One program: each one is linked with the whole engine.

mod language;
mod properties;
mod setup;
