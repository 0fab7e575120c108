//! Performance-oriented Congestion Control: a rate-based transport over datagrams. It tries different rates in monitor
//! intervals and moves in the direction in which the measured utility rises. Sender and receiver do no I/O: they take
//! the time as an argument and are polled for datagrams.
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
