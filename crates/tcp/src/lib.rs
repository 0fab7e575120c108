//! Sans-IO TCP: the time is an argument. Inputs are pushed (`on_packet`, `on_timer`, `write`, `close`),
//! outputs polled (`poll_transmit`, `next_deadline`). No sockets, threads or clocks; the same code serves the
//! simulator, packet scripts and tests.

mod config;
mod connection;
mod info;
mod keepalive;
mod ledger;
mod memory;
mod metrics_cache;
mod ranges;
mod receiver;
mod recount;
mod rtt;
mod rwnd;
mod scoreboard;
mod sender;
mod stack;
mod ticks;
mod validity;

pub use config::{
    AccEcnRules, Buffers, Config, DelayedAck, Detection, EarlyRetransmit, EcnUse, FinRule, MtuProbing,
    Pacing, RtoStyle, SendLimit, Tso, Wheel, PROFILES, WRITE,
};
pub use connection::{AccurateMarks, Connection, Due, State};
pub use info::{Info, SlowStartEnd, SlowStartExit, Stats, Times};
pub use keepalive::KeepAlive;
pub use ledger::Ledger;
pub use memory::PacketMemory;
pub use metrics_cache::DestinationMetrics;
pub use sender::{Held, Hold, VarsRow, VarsTrace};
pub use stack::{MetricsCache, Stack, Switches};
