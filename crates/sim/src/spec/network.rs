//! The network as the engine reads it: links, how they queue, lose and vary, and the ways over them.

use ackclock_core::Distribution;
use ackclock_net::capacity::DummynetParams;
use ackclock_net::{LossConfig, QueueConfig, Reorder};
use serde::Deserialize;

use super::described;

/// Which shape the network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// sender - access - bottleneck - egress - receiver; all flows share every link.
    Chain,
    /// Every flow has its own access and egress link; one shared bottleneck.
    Dumbbell,
    /// As dumbbell, with access links given one by one (`access_list`, taken in turn).
    Wishbone,
    /// Links and paths listed freely.
    Graph,
}

/// The network: three named links for the usual shapes, or a list of links and paths.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Shape.
    pub topology: Topology,
    /// Bytes that links charge on top of the IP packet (14 for Ethernet without FCS).
    #[serde(default)]
    pub framing_bytes: u32,
    /// Sender's side; absent = the sender sits on the bottleneck.
    #[serde(default)]
    pub access: Option<Link>,
    /// Wishbone: the senders' links, taken in turn.
    #[serde(default)]
    pub access_list: Vec<Link>,
    /// The shared link.
    #[serde(default)]
    pub bottleneck: Option<Link>,
    /// Receiver's side; absent = the receiver sits on the bottleneck.
    #[serde(default)]
    pub egress: Option<Link>,
    /// Links of the way back where they differ from the way out.
    #[serde(default)]
    pub reverse: Reverse,
    /// Graph: unidirectional links.
    #[serde(default)]
    pub links: Vec<NamedLink>,
    /// Graph: paths over these links.
    #[serde(default)]
    pub paths: Vec<Path>,
}

/// The way back, link by link; an absent entry mirrors the forward link (rate, delay, queue and loss alike).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Reverse {
    pub access: Option<Link>,
    pub bottleneck: Option<Link>,
    pub egress: Option<Link>,
}

/// A link of a graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct NamedLink {
    pub name: String,
    pub link: Link,
}

/// A path of a graph: names of links, in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Path {
    pub name: String,
    pub forward: Vec<String>,
    pub backward: Vec<String>,
}

/// A unidirectional link: loss -> queue -> rate -> delay (-> jitter, reordering).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// bit/s; absent = infinite.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Propagation delay, ns.
    #[serde(default)]
    pub delay_ns: u64,
    /// Queue; absent = unlimited drop-tail.
    #[serde(default, deserialize_with = "described")]
    pub queue: QueueConfig,
    /// Loss ahead of the queue.
    #[serde(default, deserialize_with = "described")]
    pub loss: LossConfig,
    /// Random extra delay, uniform in [0, jitter_ns]; order is kept unless `reorder` is set.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Packets that overtake: this share gets no jitter and skips `reorder_by_ns` of the delay.
    #[serde(default, deserialize_with = "described")]
    pub reorder: Option<Reorder>,
    /// How rate, delay and loss vary; absent = they do not.
    #[serde(default)]
    pub capacity: Option<Capacity>,
}

impl Link {
    /// Rate, that of a trace being its mean, bit/s; `None` = infinite.
    pub fn mean_bps(&self) -> Option<u64> {
        match &self.capacity {
            Some(Capacity::Mahimahi { counts, opportunity_bytes }) => {
                let total: u64 = counts.iter().map(|&count| count as u64).sum();
                // the last millisecond of a cycle is the first one of the next
                Some(
                    total * *opportunity_bytes as u64 * 8000 / (counts.len() as u64).saturating_sub(1).max(1),
                )
            }
            Some(Capacity::Schedule { steps, .. }) => {
                self.rate_bps.or(steps.first().and_then(|s| s.rate_bps))
            }
            _ => self.rate_bps,
        }
    }
}

impl Network {
    /// Rate of the bottleneck: the link so named, or the slowest of a graph's path, the first if none is named.
    pub fn bottleneck_bps(&self, path: Option<&str>) -> Option<u64> {
        if let Some(bottleneck) = &self.bottleneck {
            return bottleneck.mean_bps();
        }
        let path = match path {
            Some(name) => self.paths.iter().find(|p| p.name == name),
            None => self.paths.first(),
        };
        let on_path = |name: &String| self.links.iter().find(|l| l.name == *name);
        path?.forward.iter().filter_map(on_path).filter_map(|l| l.link.mean_bps()).min()
    }
}

/// A varying capacity.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub enum Capacity {
    /// Changes at listed times; up to the first the link is as its own keys say.
    Schedule {
        steps: Vec<CapacityStep>,
        #[serde(default)]
        repeat_ns: Option<u64>,
    },
    /// Drawn anew at intervals.
    Random {
        every_ns: u64,
        #[serde(default, deserialize_with = "described")]
        rate_bps: Option<Distribution>,
        #[serde(default, deserialize_with = "described")]
        delay_s: Option<Distribution>,
        #[serde(default, deserialize_with = "described")]
        loss: Option<Distribution>,
    },
    /// Delivery opportunities in each millisecond of a trace, the first and the last included.
    Mahimahi { counts: Vec<u32>, opportunity_bytes: u32 },
    /// Ticks of a clock, at the link's rate.
    #[serde(deserialize_with = "described")]
    Dummynet(DummynetParams),
}

/// A change; what is absent stays as it was.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct CapacityStep {
    pub at_ns: u64,
    #[serde(default)]
    pub rate_bps: Option<u64>,
    #[serde(default)]
    pub delay_ns: Option<u64>,
    #[serde(default)]
    pub loss: Option<f64>,
}
