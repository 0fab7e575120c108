//! The rules through their public face. One program: each one is linked with the whole engine.

mod rfc_tables;
mod rule_properties;
