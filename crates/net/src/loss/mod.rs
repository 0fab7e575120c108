//! Loss models: which packets a link loses ahead of its queue. One model, one file; a closed enum on the hot path.

mod bernoulli;
mod by_load;
mod gilbert_elliott;
mod in_time;
mod listed;
mod periodic;
mod policer;
mod scripted;

use ackclock_core::packet::Class;
use ackclock_core::schema::Takes;
use ackclock_core::{choice, family, table, Packet, Stream, Time};

use bernoulli::Bernoulli;
pub use bernoulli::BernoulliParams;
use by_load::ByLoad;
pub use by_load::ByLoadParams;
use gilbert_elliott::GilbertElliott;
pub use gilbert_elliott::GilbertElliottParams;
use in_time::InTime;
pub use in_time::InTimeParams;
use listed::Listed;
pub use listed::ListedParams;
use periodic::Periodic;
pub use periodic::PeriodicParams;
use policer::Policer;
pub use policer::{Per, PolicerParams};
use scripted::Scripted;
pub use scripted::{Drop, ScriptedParams};

family! {
    /// A loss model and its parameters.
    pub enum LossConfig "losses" {
        None(NoLossParams),
        Bernoulli(BernoulliParams),
        GilbertElliott(GilbertElliottParams),
        InTime(InTimeParams),
        Periodic(PeriodicParams),
        Listed(ListedParams),
        Scripted(ScriptedParams),
        Policer(PolicerParams),
        ByLoad(ByLoadParams),
    }
}

table! {
    /// No packet is lost.
    pub struct NoLossParams "none" {}
}

impl LossConfig {
    /// No packet is lost.
    pub const NONE: LossConfig = LossConfig::None(NoLossParams {});

    /// Return a model that loses each packet with probability `p`.
    pub const fn bernoulli(p: f64) -> LossConfig {
        LossConfig::Bernoulli(BernoulliParams { p, applies_to: AppliesTo::All })
    }

    /// Packets to which the model applies.
    pub fn applies_to(&self) -> AppliesTo {
        match self {
            LossConfig::Bernoulli(given) => given.applies_to,
            LossConfig::GilbertElliott(given) => given.applies_to,
            LossConfig::InTime(given) => given.applies_to,
            LossConfig::Periodic(given) => given.applies_to,
            LossConfig::Listed(given) => given.applies_to,
            LossConfig::None(_) | LossConfig::Scripted(_) => AppliesTo::All,
            LossConfig::Policer(_) | LossConfig::ByLoad(_) => AppliesTo::All,
        }
    }

    /// Whether the fate of a packet depends on its segment number or transmission number.
    pub fn looks_at_ordinals(&self) -> bool {
        matches!(self, LossConfig::Scripted(_)) || self.applies_to() == AppliesTo::Originals
    }
}

impl Default for LossConfig {
    fn default() -> LossConfig {
        LossConfig::NONE
    }
}

/// Packets to which a loss model applies. Other packets pass and are not counted by the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliesTo {
    /// Every packet.
    All,
    /// SYN and SYN-ACK.
    Syn,
    /// Packets with payload.
    Data,
    /// First transmissions of data in the forward direction.
    Originals,
}

choice! { AppliesTo: All "all", Syn "syn", Data "data", Originals "originals" }

/// Valid packet numbers; packets are counted from 1.
pub(crate) const ORDINAL: Takes = Takes::Whole(1, 1 << 31);

impl AppliesTo {
    #[inline]
    fn covers(self, packet: &Packet) -> bool {
        match self {
            AppliesTo::All => true,
            AppliesTo::Syn => packet.class() == Class::Syn,
            AppliesTo::Data => packet.class() == Class::Data,
            AppliesTo::Originals => {
                packet.forward && packet.header.payload() > 0 && packet.header.ordinal().1 == 0
            }
        }
    }
}

/// Loss model state, and the packets to which the model applies.
#[derive(Clone)]
pub(crate) struct Loss {
    applies_to: AppliesTo,
    model: Model,
}

#[derive(Clone)]
enum Model {
    None,
    Bernoulli(Bernoulli),
    GilbertElliott(GilbertElliott),
    InTime(Box<InTime>),
    Periodic(Periodic),
    Listed(Listed),
    Scripted(Scripted),
    Policer(Policer),
    ByLoad(Box<ByLoad>),
}

impl Loss {
    pub(crate) fn new(config: &LossConfig, stream: Stream) -> Loss {
        let model = match config {
            LossConfig::None(_) => Model::None,
            LossConfig::Bernoulli(given) => Model::Bernoulli(Bernoulli::new(given.p, stream)),
            LossConfig::GilbertElliott(given) => {
                let model = GilbertElliott::new(given.p, given.r, given.loss_bad, given.loss_good, stream);
                Model::GilbertElliott(model)
            }
            LossConfig::InTime(given) => Model::InTime(Box::new(InTime::new(given, stream))),
            LossConfig::Periodic(given) => Model::Periodic(Periodic::new(given.every, given.offset)),
            LossConfig::Listed(given) => Model::Listed(Listed::new(&given.packets)),
            LossConfig::Scripted(given) => Model::Scripted(Scripted::new(&given.drops)),
            LossConfig::Policer(given) => Model::Policer(Policer::new(given)),
            LossConfig::ByLoad(given) => Model::ByLoad(Box::new(ByLoad::new(given, stream))),
        };
        Loss { applies_to: config.applies_to(), model }
    }

    /// Decide at random whether the next packet to arrive is lost.
    #[inline]
    pub(crate) fn drops(&mut self, now: Time, packet: &Packet) -> bool {
        match &mut self.model {
            Model::None => false,
            _ if !self.applies_to.covers(packet) => false,
            Model::Bernoulli(model) => model.drops(),
            Model::GilbertElliott(model) => model.drops(),
            Model::InTime(model) => model.drops(now),
            Model::Periodic(model) => model.drops(),
            Model::Listed(model) => model.drops(),
            Model::Scripted(model) => model.drops(packet),
            Model::Policer(model) => model.drops(now, packet.flow, packet.bytes),
            Model::ByLoad(model) => model.drops(now, packet.bytes),
        }
    }

    /// Reset to the state before the first packet, with a new stream.
    pub(crate) fn restart(&mut self, stream: Stream) {
        match &mut self.model {
            Model::None | Model::Scripted(_) => {}
            Model::Bernoulli(model) => model.restart(stream),
            Model::GilbertElliott(model) => model.restart(stream),
            Model::InTime(model) => model.restart(stream),
            Model::Periodic(model) => model.restart(),
            Model::Listed(model) => model.restart(),
            Model::Policer(model) => model.restart(),
            Model::ByLoad(model) => model.restart(stream),
        }
    }
}
