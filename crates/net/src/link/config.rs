//! What a link is made of.

use ackclock_core::{Rate, Span};

use crate::capacity::CapacityConfig;
use crate::loss::LossConfig;
use crate::queue::QueueConfig;
use crate::reorder::Reorder;

/// What a link is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Name, unique in the network: random streams are derived from it.
    pub name: String,
    /// Transmission rate, positive; `Rate::INFINITE` = transmission takes no time.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// The queue.
    pub queue: QueueConfig,
    /// Loss ahead of the queue.
    pub loss: LossConfig,
    /// Greatest random extra delay; zero = none.
    pub jitter: Span,
    /// Packets held back so that others overtake.
    pub reorder: Option<Reorder>,
    /// How the capacity varies, and the delay and the loss with it; `None` = it does not.
    pub capacity: Option<CapacityConfig>,
}

impl LinkConfig {
    /// A link without loss, limits, jitter and reordering.
    pub fn new(name: &str, rate: Rate, delay: Span) -> LinkConfig {
        LinkConfig {
            name: name.to_string(),
            rate,
            delay,
            queue: QueueConfig::UNLIMITED,
            loss: LossConfig::NONE,
            jitter: Span::ZERO,
            reorder: None,
            capacity: None,
        }
    }
}

impl LinkConfig {
    /// Whether a packet of so many bytes takes time to cross it. What changes or is drawn at random may.
    pub fn takes_time(&self, bytes: u32) -> bool {
        let own = self.delay > Span::ZERO || self.rate.tx_time(bytes) > Span::ZERO;
        own || self.jitter > Span::ZERO || self.reorder.is_some() || self.capacity.is_some()
    }
}
