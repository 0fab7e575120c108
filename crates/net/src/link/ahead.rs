//! Parts of a link's work that may be done ahead of time. Each feature of a link declares what it permits. A feature
//! without a declaration permits nothing, and neither does a link with such a feature.

use ackclock_core::{Rate, Span};

use super::{LinkConfig, Merging};
use crate::capacity::CapacityConfig;
use crate::ecn_fault::EcnFault;
use crate::loss::LossConfig;
use crate::netem_jitter::NetemJitter;
use crate::outage::Outage;
use crate::queue::QueueConfig;
use crate::reorder::Reorder;
use crate::wifi::WifiJitter;

/// Permission to work ahead of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ahead {
    /// See [`Link::takes_ahead`](super::Link::takes_ahead).
    pub(super) takes: bool,
    /// See [`Link::passes_ahead`](super::Link::passes_ahead).
    pub(super) passes: bool,
}

impl Ahead {
    /// No permission: packets wait for the clock both before and after the link.
    const UNFIT: Ahead = Ahead { takes: false, passes: false };
    /// A departure is final once it is known, but packets must be offered in time.
    const PASSES: Ahead = Ahead { takes: false, passes: true };
    /// Full permission: the link does not depend on the clock, does not restart, and never changes a departure.
    const FIT: Ahead = Ahead { takes: true, passes: true };

    /// Return what a link with this configuration permits.
    pub(super) fn of(config: &LinkConfig) -> Ahead {
        // no `..`: a new key must be named here
        let LinkConfig {
            name: _,
            rate,
            delay,
            queue,
            loss,
            jitter,
            netem_jitter,
            reorder,
            duplicate,
            corrupt,
            capacity,
            wifi,
            aggregate,
            ecn_fault,
            outage,
            thin_acks,
            merging,
        } = config;
        let order_kept = |time: &Span| if *time > Span::ZERO { Ahead::PASSES } else { Ahead::FIT };
        let features = [
            // a transmission of zero duration ends as it begins, so the order of packets is known only at that
            // instant
            if *rate == Rate::INFINITE && *delay == Span::ZERO { Ahead::UNFIT } else { Ahead::FIT },
            queue.ahead(),
            loss.ahead(),
            order_kept(jitter),
            netem_jitter.ahead(),
            reorder.ahead(),
            // copies and reports of damaged packets need the link's own events
            if *duplicate > 0.0 || *corrupt > 0.0 { Ahead::UNFIT } else { Ahead::FIT },
            capacity.ahead(),
            wifi.ahead(),
            order_kept(aggregate),
            ecn_fault.ahead(),
            outage.ahead(),
            if *thin_acks > 1 { Ahead::UNFIT } else { Ahead::FIT },
            merging.ahead(),
        ];
        features.into_iter().fold(Ahead::FIT, Ahead::and)
    }

    fn and(self, other: Ahead) -> Ahead {
        Ahead { takes: self.takes && other.takes, passes: self.passes && other.passes }
    }
}

/// Optional feature of a link.
trait Feature {
    fn ahead(&self) -> Ahead {
        Ahead::UNFIT
    }
}

impl<F: Feature> Feature for Option<F> {
    fn ahead(&self) -> Ahead {
        self.as_ref().map_or(Ahead::FIT, F::ahead)
    }
}

impl Feature for QueueConfig {
    fn ahead(&self) -> Ahead {
        match self {
            QueueConfig::DropTail(_) => Ahead::FIT,
            // each arrival processes earlier departures first
            QueueConfig::Codel(_) | QueueConfig::FqCodel(_) | QueueConfig::Choke(_) => Ahead::FIT,
            QueueConfig::DualPi2(_) | QueueConfig::Cake(_) | QueueConfig::FqPie(_) => Ahead::FIT,
            QueueConfig::Pie(_) | QueueConfig::Threshold(_) => Ahead::PASSES,
            QueueConfig::Red(_) | QueueConfig::LinuxRed(_) => Ahead::PASSES,
            // the limit counts packets on the wire
            QueueConfig::NetemLimit(_) => Ahead::UNFIT,
        }
    }
}

impl Feature for LossConfig {
    /// Full permission: a packet's fate depends on its time of arrival and on the packets before it. A restart of the
    /// random stream has to be declared ([`Link::expect_restarts`](super::Link::expect_restarts)).
    fn ahead(&self) -> Ahead {
        Ahead::FIT
    }
}

impl Feature for CapacityConfig {
    fn ahead(&self) -> Ahead {
        match self {
            CapacityConfig::Schedule(_) | CapacityConfig::Random(_) => Ahead::PASSES,
            CapacityConfig::Mahimahi(_) | CapacityConfig::Dummynet(_) => Ahead::PASSES,
            CapacityConfig::TokenBucket(_) => Ahead::PASSES,
        }
    }
}

impl Feature for WifiJitter {
    fn ahead(&self) -> Ahead {
        Ahead::PASSES
    }
}

impl Feature for EcnFault {
    fn ahead(&self) -> Ahead {
        Ahead::PASSES
    }
}

impl Feature for Outage {
    fn ahead(&self) -> Ahead {
        Ahead::PASSES
    }
}

/// Packets overtake one another.
impl Feature for Reorder {}

/// Packets may overtake one another if the link has no rate.
impl Feature for NetemJitter {}

/// The interrupts of a merging NIC depend on all events of the link, including those of packets on the wire.
impl Feature for Merging {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;
    use ackclock_core::Rate;

    fn plain() -> LinkConfig {
        LinkConfig::new("l", Rate(1_000_000), Span(5))
    }

    #[test]
    fn a_link_is_as_fit_as_the_least_fit_of_its_features() {
        let merging = Some(Merging {
            receive_interval: Span::ZERO,
            gro_flush_timeout: Span::ZERO,
            napi_defer_hard_irqs: 0,
        });
        let jitter = Span(7);
        let cases = [
            (plain(), Ahead::FIT),
            (LinkConfig { jitter, ..plain() }, Ahead::PASSES),
            (LinkConfig { aggregate: jitter, ..plain() }, Ahead::PASSES),
            (LinkConfig { thin_acks: 2, ..plain() }, Ahead::UNFIT),
            (LinkConfig { duplicate: 0.1, ..plain() }, Ahead::UNFIT),
            (LinkConfig { corrupt: 0.1, ..plain() }, Ahead::UNFIT),
            (LinkConfig { merging: merging.clone(), ..plain() }, Ahead::UNFIT),
            (LinkConfig { jitter, merging, ..plain() }, Ahead::UNFIT),
            (LinkConfig { loss: LossConfig::bernoulli(0.1), ..plain() }, Ahead::FIT),
            (LinkConfig { loss: LossConfig::bernoulli(0.1), jitter, ..plain() }, Ahead::PASSES),
        ];
        for (config, expected) in cases {
            assert_eq!(Ahead::of(&config), expected, "{config:?}");
            let link = Link::new(&config, 1);
            assert_eq!([link.takes_ahead(), link.passes_ahead()], [expected.takes, expected.passes]);
        }
    }

    #[test]
    fn losses_that_restart_need_packets_in_time() {
        for (p, takes) in [(0.0, true), (0.1, false)] {
            let loss = if p > 0.0 { LossConfig::bernoulli(p) } else { LossConfig::NONE };
            let mut link = Link::new(&LinkConfig { loss, ..plain() }, 1);
            link.expect_restarts();
            assert_eq!([link.takes_ahead(), link.passes_ahead()], [takes, true]);
        }
    }

    #[test]
    fn a_feature_that_says_nothing_is_unfit() {
        struct New;
        impl Feature for New {}
        assert_eq!([Some(New).ahead(), None::<New>.ahead()], [Ahead::UNFIT, Ahead::FIT]);
    }
}
