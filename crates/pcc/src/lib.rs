//! Performance-oriented Congestion Control: a transport over datagrams that sends at a rate, tries other rates in
//! monitor intervals, and moves to where the utility that it measured is higher. Sans-IO: sender and receiver receive the
//! time as an argument and are polled for datagrams.
//!
//! Sources: Dong, Li, Zarchy, Godfrey, Schapira, "PCC: Re-architecting Congestion Control for Consistent High
//! Performance", NSDI 2015 (Allegro); Dong et al., "PCC Vivace", NSDI 2018; Meng et al., "PCC Proteus", SIGCOMM 2020.
//! Public implementations were read for their constants; no code is taken from them.

mod config;
pub mod control;
mod interval;
mod pieces;
mod receiver;
mod request;
mod sender;
pub mod utility;

pub use config::{Config, Feedback};
pub use control::{Controller, RateControl, REGISTRY};
pub use interval::Measured;
pub use receiver::Receiver;
pub use sender::{IntervalRow, Sender, Stats};
pub use utility::Utility;
