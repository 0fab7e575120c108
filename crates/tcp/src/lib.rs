//! Sans-IO TCP: the time is an argument. Inputs are pushed (`on_packet`, `on_timer`, `write`, `close`),
//! outputs are polled (`poll_transmit`, `next_deadline`). There are no sockets, threads or clocks; the same
//! code serves the simulator, packet scripts and tests.

mod config;
mod connection;
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
mod stats;
mod ticks;

pub use config::{
    is_linux_today, AccEcnRules, Buffers, Config, DelayedAck, Detection, EarlyRetransmit, EcnUse, FinRule,
    LossConfig, MetricsCache, MtuProbing, Pacing, ReceiveConfig, RtoStyle, SendConfig, SendLimit, Stack,
    Switches, TimerConfig, Tso, Wheel, PROFILES, WRITE,
};
pub use connection::{AccurateMarks, Connection, Due, Halves, Info, KeepAlive, State};
pub use ledger::Ledger;
pub use memory::PacketMemory;
pub use metrics_cache::DestinationMetrics;
pub use receiver::ReadingPace;
pub use sender::{AckNews, Held, Hold, Occasion, Record, Repair, Timers, VarsRow, VarsTrace, Windows};
pub use stats::{SlowStartEnd, SlowStartExit, Stats, Times};
pub use ticks::Armed;
