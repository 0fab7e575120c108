//! Packet scripts: TCP's behaviour, segment by segment, in packetdrill's language.
//!
//! A script is a time-stamped list of application calls, packets delivered by the network and packets that the stack
//! must send. [`parse`] turns text into a [`Script`], [`Options`] and [`Setup`] contain its parameters, and
//! [`play`] plays it. No part of a script is ever executed by a shell.

pub mod ast;
pub mod error;
pub mod file;
mod lexer;
pub mod options;
mod parser;
mod print;
pub mod runner;
pub mod setup;
pub mod shape;

pub use ast::Script;
pub use error::{Error, Pos};
pub use file::read;
pub use options::Options;
pub use parser::{parse, Limits};
pub use runner::{play, play_on, Outcome, Profile, Verdict};
pub use setup::Setup;
