//! PCC through its public face. One program: each one is linked with the whole engine.

mod requests;
mod silence;
mod theorems;
