//! Hosts that are not perfect, as the engine reads them.

use ackclock_core::Distribution;
use serde::Deserialize;

use super::described;

/// A host that flow groups name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Host {
    pub name: String,
    /// One machine for all that name it; otherwise one for each flow.
    #[serde(default = "yes")]
    pub shared: bool,
    /// When its processor is taken away.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// The gate stops sending only; what comes is taken in.
    #[serde(default)]
    pub receives_on: bool,
    /// The network's links are emulated in it and stand still with it.
    #[serde(default)]
    pub emulates_links: bool,
    #[serde(default)]
    pub cpu: Option<Cpu>,
    /// The card's way in.
    #[serde(default)]
    pub receive: Batching,
    /// The card's way out.
    #[serde(default)]
    pub transmit: Batching,
    /// Period of the clock that wakes paced senders, ns; 0 = exact.
    #[serde(default)]
    pub tick_ns: u64,
    /// Packets of a paced sender's lateness that are made up; absent = all.
    #[serde(default)]
    pub catch_up: Option<u32>,
}

/// On-times and off-times, seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Gate {
    #[serde(deserialize_with = "described")]
    pub on_s: Distribution,
    #[serde(deserialize_with = "described")]
    pub off_s: Distribution,
}

/// The processor.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Cpu {
    /// 0 = one for each process.
    #[serde(default)]
    pub cores: u32,
    pub slice_ns: u64,
    #[serde(default)]
    pub send_ns: u64,
    #[serde(default)]
    pub receive_ns: u64,
    #[serde(default)]
    pub busy_wait: bool,
}

/// When the card hands packets on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Batching {
    #[serde(default)]
    pub interval_ns: u64,
    #[serde(default = "one")]
    pub packets: u32,
    #[serde(default)]
    pub flush_ns: u64,
}

impl Default for Batching {
    fn default() -> Batching {
        Batching { interval_ns: 0, packets: 1, flush_ns: 0 }
    }
}

fn yes() -> bool {
    true
}
fn one() -> u32 {
    1
}
