//! Loss models: which packets a link loses ahead of its queue. One model, one file; a closed enum on the hot path.

mod bernoulli;
mod gilbert_elliott;
mod listed;
mod periodic;
mod scripted;

use ackclock_core::packet::Class;
use ackclock_core::{Packet, Stream};

use bernoulli::Bernoulli;
use gilbert_elliott::GilbertElliott;
use listed::Listed;
use periodic::Periodic;
use scripted::Scripted;

pub use scripted::Drop;

/// Every loss model: its name in a scenario, and what it does.
pub const REGISTRY: &[(&str, &str)] = &[
    ("none", "no packet is lost"),
    ("bernoulli", "every packet is lost with the same probability, independently"),
    ("gilbert-elliott", "two states, good and bad, each with its own loss probability: bursts"),
    ("periodic", "every n-th packet is lost"),
    ("listed", "exactly the listed packets, counted as they come to the link, are lost"),
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
    /// Exactly these packets are lost, counted from 1 as they come.
    Listed {
        /// In any order.
        packets: Vec<u64>,
    },
    /// Exactly these transmissions are lost.
    Scripted {
        /// In any order; they may overlap.
        drops: Vec<Drop>,
    },
}

/// The packets that a loss model is for; others pass, and it does not see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppliesTo {
    /// Every packet.
    #[default]
    All,
    /// SYN and SYN-ACK.
    Syn,
    /// Packets with payload.
    Data,
}

impl AppliesTo {
    #[inline]
    fn covers(self, packet: &Packet) -> bool {
        match self {
            AppliesTo::All => true,
            AppliesTo::Syn => packet.class() == Class::Syn,
            AppliesTo::Data => packet.class() == Class::Data,
        }
    }
}

/// A loss model at work, and what it is for.
pub(crate) struct Loss {
    applies_to: AppliesTo,
    model: Model,
}

enum Model {
    None,
    Bernoulli(Bernoulli),
    GilbertElliott(GilbertElliott),
    Periodic(Periodic),
    Listed(Listed),
    Scripted(Scripted),
}

impl Loss {
    pub(crate) fn new(config: &LossConfig, applies_to: AppliesTo, stream: Stream) -> Loss {
        let model = match *config {
            LossConfig::None => Model::None,
            LossConfig::Bernoulli { p } => Model::Bernoulli(Bernoulli::new(p, stream)),
            LossConfig::GilbertElliott { p, r, loss_bad, loss_good } => {
                Model::GilbertElliott(GilbertElliott::new(p, r, loss_bad, loss_good, stream))
            }
            LossConfig::Periodic { every, offset } => Model::Periodic(Periodic::new(every, offset)),
            LossConfig::Listed { ref packets } => Model::Listed(Listed::new(packets)),
            LossConfig::Scripted { ref drops } => Model::Scripted(Scripted::new(drops)),
        };
        Loss { applies_to, model }
    }

    /// Whether this packet, the next to arrive, is lost.
    #[inline]
    pub(crate) fn drops(&mut self, packet: &Packet) -> bool {
        match &mut self.model {
            Model::None => false,
            _ if !self.applies_to.covers(packet) => false,
            Model::Bernoulli(model) => model.drops(),
            Model::GilbertElliott(model) => model.drops(),
            Model::Periodic(model) => model.drops(),
            Model::Listed(model) => model.drops(),
            Model::Scripted(model) => model.drops(packet),
        }
    }

    /// Go back to the state before the first packet, with this stream.
    pub(crate) fn restart(&mut self, stream: Stream) {
        match &mut self.model {
            Model::None | Model::Scripted(_) => {}
            Model::Bernoulli(model) => model.restart(stream),
            Model::GilbertElliott(model) => model.restart(stream),
            Model::Periodic(model) => model.restart(),
            Model::Listed(model) => model.restart(),
        }
    }
}
