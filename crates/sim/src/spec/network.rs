//! The network as the engine reads it: links, how they queue, lose and vary, and the ways over them.

use ackclock_core::Rate;
use ackclock_net::{CapacityConfig, LossConfig, QueueConfig, Reorder};
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
    #[serde(default, deserialize_with = "described")]
    pub capacity: Option<CapacityConfig>,
}

impl Link {
    /// Its own rate; infinite if it has none.
    pub fn rate(&self) -> Rate {
        self.rate_bps.map_or(Rate::INFINITE, Rate)
    }

    /// Rate that others go by, bit/s; `None` = infinite.
    pub fn nominal_bps(&self) -> Option<u64> {
        let rate = self.capacity.as_ref().map_or(self.rate(), |capacity| capacity.nominal(self.rate()));
        (rate != Rate::INFINITE).then_some(rate.0)
    }
}

impl Network {
    /// Rate of the bottleneck: the link so named, or the slowest of a graph's path, the first if none is named.
    pub fn bottleneck_bps(&self, path: Option<&str>) -> Option<u64> {
        if let Some(bottleneck) = &self.bottleneck {
            return bottleneck.nominal_bps();
        }
        let path = match path {
            Some(name) => self.paths.iter().find(|p| p.name == name),
            None => self.paths.first(),
        };
        let on_path = |name: &String| self.links.iter().find(|l| l.name == *name);
        path?.forward.iter().filter_map(on_path).filter_map(|l| l.link.nominal_bps()).min()
    }
}
