//! Features that few links have.

use std::collections::VecDeque;

use ackclock_core::{Packet, Rate, Span, Stream, Time};

use super::config::LinkConfig;
use super::film::Film;
use super::merging::Card;
use crate::aggregate::Aggregate;
use crate::capacity::Capacity;
use crate::ecn_fault::Faulty;
use crate::faults::{Chance, Doubler};
use crate::jitter::Jitter;
use crate::loss::{Loss, LossConfig};
use crate::netem_jitter::Drawn;
use crate::outage::Outages;
use crate::queue::Dropped;
use crate::reorder::Chooser;
use crate::thin::Thinner;
use crate::wifi::Wifi;

/// Rare features of a link, boxed because most links have none.
#[derive(Clone)]
pub(super) struct Extras {
    /// Whether packets may be duplicated or an adversary decides about them.
    pub(super) asks: bool,
    pub(super) adversary: bool,
    /// Extra delay that the adversary chose for the current packet.
    pub(super) late: Option<Span>,
    pub(super) loss: Loss,
    pub(super) jitter: Option<Jitter>,
    pub(super) netem_jitter: Option<Drawn>,
    pub(super) reorder: Option<Chooser>,
    pub(super) capacity: Option<Capacity>,
    pub(super) wifi: Option<Wifi>,
    pub(super) aggregate: Option<Aggregate>,
    pub(super) ecn_fault: Option<Faulty>,
    pub(super) outages: Option<Outages>,
    pub(super) thinner: Option<Thinner>,
    pub(super) card: Option<Card>,
    pub(super) film: Option<Film>,
    pub(super) doubler: Option<Doubler>,
    pub(super) damage: Option<Chance>,
    /// Lost or refused packets that were not returned to the caller: packets behind a merging NIC, copies, and
    /// damaged packets.
    pub(super) refused: VecDeque<Dropped>,
}

impl Extras {
    /// Return the extras of a link; `None` if it has none, which costs one branch and creates no random stream.
    pub(super) fn new(config: &LinkConfig, stream: impl Fn(&str) -> Stream) -> Option<Box<Extras>> {
        let needed = config.loss != LossConfig::NONE || Extras::exceed_losses(config);
        needed.then(|| Extras::whole(config, stream))
    }

    /// Whether the link has rare features other than a loss model.
    pub(super) fn exceed_losses(config: &LinkConfig) -> bool {
        let none = config.jitter == Span::ZERO
            && config.netem_jitter.is_none()
            && config.reorder.is_none()
            && config.duplicate == 0.0
            && config.corrupt == 0.0
            && config.capacity.is_none()
            && config.wifi.is_none()
            && config.aggregate == Span::ZERO
            && config.ecn_fault.is_none()
            && config.outage.is_none()
            && config.merging.is_none()
            && config.thin_acks <= 1;
        !none
    }

    /// Return the box even if no feature is set.
    fn whole(config: &LinkConfig, stream: impl Fn(&str) -> Stream) -> Box<Extras> {
        let capacity = config.capacity.as_ref().map(|c| Capacity::new(c, config.rate, config.delay, &stream));
        Box::new(Extras {
            asks: config.duplicate > 0.0,
            adversary: false,
            late: None,
            loss: Loss::new(&config.loss, stream("loss")),
            jitter: Jitter::new(config.jitter, stream("jitter")),
            netem_jitter: Drawn::new(
                config.netem_jitter.as_ref(),
                config.overtakes(),
                stream("netem-jitter"),
            ),
            reorder: Chooser::new(config.reorder.as_ref(), stream("reorder")),
            capacity,
            wifi: Wifi::new(config.wifi.as_ref(), stream("wifi")),
            aggregate: Aggregate::new(config.aggregate),
            ecn_fault: Faulty::new(config.ecn_fault.as_ref(), stream("ecn-fault")),
            outages: Outages::new(config.outage.as_ref(), stream("outage")),
            thinner: Thinner::new(config.thin_acks),
            card: config.merging.as_ref().map(Card::new),
            film: None,
            doubler: Doubler::new(config.duplicate, stream("duplicate")),
            damage: Chance::new(config.corrupt, stream("corrupt")),
            refused: VecDeque::new(),
        })
    }

    /// Return an empty box for a link that gets a feature later.
    pub(super) fn none() -> Box<Extras> {
        let config = LinkConfig::new("", Rate::INFINITE, Span::ZERO);
        Extras::whole(&config, |part| Stream::new(0, part)) // which draw nothing
    }

    /// Decide at random whether this packet is duplicated.
    pub(super) fn doubles(&mut self) -> bool {
        self.doubler.as_mut().is_some_and(Doubler::doubles)
    }

    /// Whether netem delays packets before their transmission.
    pub(super) fn delays_first(&self) -> bool {
        self.netem_jitter.as_ref().is_some_and(|jitter| jitter.before_rate)
    }

    pub(super) fn owe(&mut self, now: Time, packet: Packet) {
        if let Some(doubler) = &mut self.doubler {
            doubler.owe(now, packet);
        }
    }

    pub(super) fn owes(&self) -> bool {
        self.doubler.as_ref().is_some_and(Doubler::owes)
    }

    pub(super) fn loses(&mut self, now: Time, packet: &Packet) -> bool {
        self.loss.drops(now, packet)
            || self.capacity.as_mut().is_some_and(|c| c.drops(now))
            || self.outages.as_mut().is_some_and(|o| o.loses(now))
    }
}
