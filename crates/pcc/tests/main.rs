//! Tests of PCC through the crate's public interface. They form one program, because every test program links the whole
//! engine.

mod requests;
mod silence;
mod theorems;
