//! Link configuration.

use ackclock_core::schema::{Rules, Takes, DURATION_OR_ZERO, RATE};
use ackclock_core::{table, Rate, Span};

use super::merging::Merging;
use crate::capacity::CapacityConfig;
use crate::ecn_fault::EcnFault;
use crate::loss::LossConfig;
use crate::netem_jitter::NetemJitter;
use crate::outage::Outage;
use crate::queue::QueueConfig;
use crate::reorder::Reorder;
use crate::wifi::WifiJitter;

table! {
    /// One direction of a link.
    pub struct LinkParams "link" {
        /// Transmission rate. Default: infinite.
        rate: Option<Rate> = RATE;
        /// One-way propagation delay.
        delay: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Queue. Default: first in, first out, without a limit.
        queue: Option<QueueConfig> = Takes::OneOf(QueueConfig::FAMILY);
        /// Loss of packets before they reach the queue. Default: none.
        loss: Option<LossConfig> = Takes::OneOf(LossConfig::FAMILY);
        /// Maximum random extra delay, drawn uniformly from zero to this value for each packet. Packets keep their
        /// order.
        jitter: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Jitter of Linux netem, around `delay`. Default: none.
        netem_jitter: Option<NetemJitter> = Takes::Table(NetemJitter::TABLE);
        /// Reordering of packets. Default: none.
        reorder: Option<Reorder> = Takes::Table(Reorder::TABLE);
        /// Probability that a packet is duplicated. The copy crosses the link separately and counts as an arrival.
        duplicate: f64 = Takes::Share, 0.0;
        /// Probability that a packet is corrupted: it is queued and transmitted like any other, and discarded at the
        /// end of the link.
        corrupt: f64 = Takes::Share, 0.0;
        /// Variation of rate, delay and loss over time. Default: none.
        capacity: Option<CapacityConfig> = Takes::OneOf(CapacityConfig::FAMILY);
        /// Jitter of a Wi-Fi link, in addition to `jitter`. Default: none.
        wifi: Option<WifiJitter> = Takes::Table(WifiJitter::TABLE);
        /// The link holds packets until the first of them has waited this long, then delivers them together. "0 s"
        /// turns this off.
        aggregate: Span = DURATION_OR_ZERO, Span::ZERO;
        /// A middlebox that changes the ECN field. Default: none.
        ecn_fault: Option<EcnFault> = Takes::Table(EcnFault::TABLE);
        /// Periods during which the link starts no transmission. Default: none.
        outage: Option<Outage> = Takes::Table(Outage::TABLE);
        /// ACK filtering (RFC 3449): of up to this many consecutive ACKs of a connection that wait in the queue, only
        /// the newest is kept. 1 turns this off.
        thin_acks: u32 = Takes::Whole(1, 1000), 1;
        /// The NIC of the router in front of this link merges segments (GRO). The link then drops and queues a merged
        /// packet as a whole. Default: no merging.
        merging: Option<Merging> = Takes::Table(Merging::TABLE);
    }
    rules LinkParams::judge
}

impl LinkParams {
    /// Reject combinations that cannot be simulated, such as a capacity that needs a rate on a link without one.
    fn judge(&self, rules: &mut Rules) {
        if self.thin_acks > 1 && self.queue.as_ref().is_some_and(QueueConfig::holds) {
            rules.refuse("thin_acks", "1 with a queue that drops at departure, or another queue");
        }
        if self.reorder.is_some()
            && self.netem_jitter.is_some()
            && self.rate.is_none()
            && self.capacity.is_none()
        {
            rules.refuse(
                "reorder",
                "no `reorder` beside `netem_jitter`, whose packets overtake by themselves",
            );
        }
        if self.netem_jitter.as_ref().is_some_and(|jitter| jitter.before_rate) {
            let netem =
                !matches!(self.queue, Some(ref queue) if !matches!(queue, QueueConfig::NetemLimit(_)));
            if self.rate.is_none() || self.capacity.is_some() || self.merging.is_some() {
                rules.refuse(
                    "netem_jitter.before_rate",
                    "false without a rate, or with a capacity or merging",
                );
            } else if !netem {
                rules.refuse(
                    "netem_jitter.before_rate",
                    "false beside a queue of another kind than \"netem-limit\"",
                );
            }
        }
        if self.duplicate > 0.0 && self.merging.is_some() {
            rules.refuse("duplicate", "0 with `merging`");
        }
        match &self.capacity {
            Some(CapacityConfig::Mahimahi(_)) if self.rate.is_some() => {
                let found = format!("{} with a capacity of kind \"mahimahi\"", rules.shown("rate"));
                rules.refuse_as("rate", found, "no rate");
            }
            Some(CapacityConfig::Dummynet(_)) if self.rate.is_none() => {
                let found = "nothing with a capacity of kind \"dummynet\"";
                rules.refuse_as("rate", found, "a rate: what its ticks give");
            }
            Some(CapacityConfig::TokenBucket(_)) if self.rate.is_none() => {
                let found = "nothing with a capacity of kind \"token-bucket\"";
                rules.refuse_as("rate", found, "a rate: that of its tokens");
            }
            Some(CapacityConfig::Schedule(schedule)) => {
                let late = schedule.steps[0].at > Span::ZERO;
                let mut rates = schedule.steps.iter().filter_map(|step| step.rate).peekable();
                if self.rate.is_none() && rates.peek().is_some() && late {
                    rules.refuse_as(
                        "rate",
                        "nothing",
                        "a rate up to the first step, or a step at 0 s with one",
                    );
                }
                let begins = self.rate.is_some() && late;
                let still = rates.peek().is_some() && rates.all(|rate| rate.0 == 0);
                if schedule.repeat.is_some() && still && !begins {
                    rules.refuse_as(
                        "capacity.steps",
                        "no rate but zero, again and again",
                        "a rate above zero",
                    );
                }
            }
            _ => {}
        }
    }

    /// Return the configuration for a link called `name`.
    pub fn named(&self, name: String) -> LinkConfig {
        LinkConfig {
            name,
            rate: self.own_rate(),
            delay: self.delay,
            queue: self.queue.clone().unwrap_or(QueueConfig::UNLIMITED),
            loss: self.loss.clone().unwrap_or(LossConfig::NONE),
            jitter: self.jitter,
            netem_jitter: self.netem_jitter.clone(),
            reorder: self.reorder.clone(),
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            capacity: self.capacity.clone(),
            wifi: self.wifi.clone(),
            aggregate: self.aggregate,
            ecn_fault: self.ecn_fault.clone(),
            outage: self.outage.clone(),
            thin_acks: self.thin_acks,
            merging: self.merging.clone(),
        }
    }

    fn own_rate(&self) -> Rate {
        self.rate.unwrap_or(Rate::INFINITE)
    }

    /// Nominal rate; see [`CapacityConfig::nominal`].
    pub fn nominal_rate(&self) -> Rate {
        self.capacity.as_ref().map_or(self.own_rate(), |capacity| capacity.nominal(self.own_rate()))
    }

    /// Maximum sustained rate.
    pub fn greatest_rate(&self) -> Rate {
        match (&self.capacity, &self.queue) {
            (Some(capacity), _) => capacity.greatest(self.own_rate()),
            // netem without a rate: full frames per delay that its limit allows
            (None, Some(QueueConfig::NetemLimit(params))) if self.rate.is_none() => {
                let bits = params.limit as u128 * 1514 * 8 * 1_000_000_000;
                Rate((bits / (self.delay.0.max(1_000_000) as u128)).clamp(1, Rate::INFINITE.0 as u128 - 1)
                    as u64)
            }
            (None, _) => self.own_rate(),
        }
    }

    /// Maximum delay, including jitter.
    pub fn longest_delay(&self) -> Span {
        let own = self.capacity.as_ref().map_or(self.delay, |capacity| capacity.longest(self.delay));
        let drawn = self.netem_jitter.as_ref().map_or(Span::ZERO, NetemJitter::longest);
        own + drawn
            + self.jitter
            + self.aggregate
            + self.wifi.as_ref().map_or(Span::ZERO, WifiJitter::longest)
    }
}

/// Link configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Name, unique in the network: random streams are derived from it.
    pub name: String,
    /// Transmission rate, positive; `Rate::INFINITE` = transmission takes no time.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Queueing discipline.
    pub queue: QueueConfig,
    /// Loss model, applied before the queue.
    pub loss: LossConfig,
    /// Maximum random extra delay; zero = none.
    pub jitter: Span,
    /// netem's jitter; `None` = none.
    pub netem_jitter: Option<NetemJitter>,
    /// Reordering: delays for some packets, so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// Probability that a packet is damaged.
    pub corrupt: f64,
    /// Varying capacity, possibly with varying delay and loss; `None` = constant.
    pub capacity: Option<CapacityConfig>,
    /// Jitter of a Wi-Fi link; `None` = none.
    pub wifi: Option<WifiJitter>,
    /// Time for which packets are held before they are delivered together; zero = none.
    pub aggregate: Span,
    /// Middlebox that changes the ECN field; `None` = none.
    pub ecn_fault: Option<EcnFault>,
    /// Periods without transmission; `None` = none.
    pub outage: Option<Outage>,
    /// Number of waiting ACKs per connection of which only the newest is kept; 1 = all are kept.
    pub thin_acks: u32,
    /// Merging NIC in front of the link; `None` = none.
    pub merging: Option<Merging>,
}

impl LinkConfig {
    /// A link of this rate and delay, without other features.
    pub fn new(name: &str, rate: Rate, delay: Span) -> LinkConfig {
        LinkConfig {
            name: name.to_string(),
            rate,
            delay,
            queue: QueueConfig::UNLIMITED,
            loss: LossConfig::NONE,
            jitter: Span::ZERO,
            netem_jitter: None,
            reorder: None,
            duplicate: 0.0,
            corrupt: 0.0,
            capacity: None,
            wifi: None,
            aggregate: Span::ZERO,
            ecn_fault: None,
            outage: None,
            thin_acks: 1,
            merging: None,
        }
    }
}

impl LinkConfig {
    /// Whether netem's jitter lets packets overtake one another: only if the link has no rate.
    pub fn overtakes(&self) -> bool {
        self.rate == Rate::INFINITE && self.capacity.is_none()
    }

    /// Whether a packet of this size may take time to cross the link. A variable or random time counts, although it
    /// can be zero.
    pub fn takes_time(&self, bytes: u32) -> bool {
        let own = self.delay > Span::ZERO || self.rate.tx_time(bytes) > Span::ZERO;
        let later = self.jitter > Span::ZERO || self.aggregate > Span::ZERO || self.wifi.is_some();
        own || later
            || self.merging.is_some()
            || self.netem_jitter.is_some()
            || self.reorder.is_some()
            || self.capacity.is_some()
            || self.outage.is_some()
    }
}
