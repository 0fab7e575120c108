//! Loss models: which packets a link loses ahead of its queue. One model, one file; a closed enum on the hot path.

mod bernoulli;
mod gilbert_elliott;
mod periodic;
mod scripted;

use ackclock_core::{Packet, Stream};

use bernoulli::Bernoulli;
use gilbert_elliott::GilbertElliott;
use periodic::Periodic;
use scripted::Scripted;

pub use scripted::Drop;

/// Every loss model: its name in a scenario, and what it does.
pub const REGISTRY: &[(&str, &str)] = &[
    ("none", "no packet is lost"),
    ("bernoulli", "every packet is lost with the same probability, independently"),
    ("gilbert-elliott", "two states, good and bad, each with its own loss probability: bursts"),
    ("periodic", "every n-th packet is lost"),
    ("scripted", "exactly the listed transmissions of the listed data segments are lost"),
];

/// A loss model and its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// No packet is lost.
    #[default]
    None,
    /// Every packet is lost with probability `p`.
    Bernoulli {
        /// Probability of loss.
        p: f64,
    },
    /// Two states; see `gilbert_elliott`.
    GilbertElliott {
        /// Probability, per packet, of the step from good to bad.
        p: f64,
        /// Probability, per packet, of the step from bad to good.
        r: f64,
        /// Probability of loss in the bad state.
        loss_bad: f64,
        /// Probability of loss in the good state.
        loss_good: f64,
    },
    /// The first `offset` packets pass; of the others every `every`-th is lost.
    Periodic {
        /// Period in packets; 0 = nothing is lost.
        every: u64,
        /// Packets that pass first.
        offset: u64,
    },
    /// Exactly these transmissions are lost.
    Scripted {
        /// In any order; they may overlap.
        drops: Vec<Drop>,
    },
}

/// A loss model at work.
pub(crate) enum Loss {
    None,
    Bernoulli(Bernoulli),
    GilbertElliott(GilbertElliott),
    Periodic(Periodic),
    Scripted(Scripted),
}

impl Loss {
    pub(crate) fn new(config: &LossConfig, stream: Stream) -> Loss {
        match *config {
            LossConfig::None => Loss::None,
            LossConfig::Bernoulli { p } => Loss::Bernoulli(Bernoulli::new(p, stream)),
            LossConfig::GilbertElliott { p, r, loss_bad, loss_good } => {
                Loss::GilbertElliott(GilbertElliott::new(p, r, loss_bad, loss_good, stream))
            }
            LossConfig::Periodic { every, offset } => Loss::Periodic(Periodic::new(every, offset)),
            LossConfig::Scripted { ref drops } => Loss::Scripted(Scripted::new(drops)),
        }
    }

    /// Whether this packet, the next to arrive, is lost.
    #[inline]
    pub(crate) fn drops(&mut self, packet: &Packet) -> bool {
        match self {
            Loss::None => false,
            Loss::Bernoulli(model) => model.drops(),
            Loss::GilbertElliott(model) => model.drops(),
            Loss::Periodic(model) => model.drops(),
            Loss::Scripted(model) => model.drops(packet),
        }
    }

    /// Go back to the state before the first packet, with this stream.
    pub(crate) fn restart(&mut self, stream: Stream) {
        match self {
            Loss::None | Loss::Scripted(_) => {}
            Loss::Bernoulli(model) => model.restart(stream),
            Loss::GilbertElliott(model) => model.restart(stream),
            Loss::Periodic(model) => model.restart(),
        }
    }
}
