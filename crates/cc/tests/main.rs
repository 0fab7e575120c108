//! Tests of the rules through the crate's public interface. They form one program, because every test program links the
//! whole engine.

mod rfc_tables;
mod rule_properties;
