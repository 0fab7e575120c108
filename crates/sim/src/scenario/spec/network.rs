//! The network as read by the engine: links, and the paths over them.

use ackclock_core::schema::{Inline, Takes};
use ackclock_core::{choice, table, Rate};
use ackclock_net::link::LinkParams;

/// Shape of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// sender - access - bottleneck - egress - receiver; all flows share every link.
    Chain,
    /// Each flow has its own access and egress link; all share the bottleneck.
    Dumbbell,
    /// Like dumbbell, with the access links listed in `access_list` and assigned in turn.
    Wishbone,
    /// Links and paths as listed.
    Graph,
}

choice! { Topology: Chain "chain", Dumbbell "dumbbell", Wishbone "wishbone", Graph "graph" }

const LINK: Takes = Takes::Table(LinkParams::TABLE);
const NAMES: Takes = Takes::List(&Takes::Text, 0);

table! {
    /// Links of the network and the paths of flows across them.
    ///
    /// `chain`: sender, access, bottleneck, egress, receiver; all flows share every link. `dumbbell`: each flow has its
    /// own access and egress link, and all share the bottleneck. `wishbone`: like `dumbbell`, but `access_list` gives
    /// the access links one by one. `graph`: you list links and paths yourself.
    pub struct Network "network" {
        /// Shape of the network.
        topology: Topology = Topology::TAKES, Topology::Chain;
        /// Bytes that a link transmits in addition to each IP packet (Ethernet without FCS: 14 bytes).
        framing_bytes as "framing": u32 = Takes::Size(0, 65_535), 0;
        /// Link from the sender to the bottleneck. Default: the sender is attached to the bottleneck directly.
        access: Option<LinkParams> = LINK;
        /// Wishbone: the access links. Flow 0 uses the first, flow 1 the second, and so on, starting over after the last.
        access_list: Vec<LinkParams> = Takes::List(&LINK, 0), Vec::new();
        /// The link that all flows share. Required in every topology except `graph`.
        bottleneck: Option<LinkParams> = LINK;
        /// Link from the bottleneck to the receiver. Default: the receiver is attached to the bottleneck directly.
        egress: Option<LinkParams> = LINK;
        /// Links of the reverse direction that differ from the forward direction.
        reverse: Reverse = Takes::Table(Reverse::TABLE), Reverse::NONE;
        /// Graph: the links, each in one direction.
        links: Vec<NamedLink> = Takes::List(&Takes::Table(NamedLink::TABLE), 0), Vec::new();
        /// Graph: the paths over these links.
        paths: Vec<Path> = Takes::List(&Takes::Table(Path::TABLE), 0), Vec::new();
    }
    rules Network::judge_shape
}

table! {
    /// The reverse direction, link by link. A link that is not given is the same as the forward link.
    pub struct Reverse "reverse" {
        /// Link from the bottleneck to the sender.
        access: Option<LinkParams> = LINK;
        /// The reverse direction of the bottleneck.
        bottleneck: Option<LinkParams> = LINK;
        /// Link from the receiver to the bottleneck.
        egress: Option<LinkParams> = LINK;
    }
}

impl Reverse {
    pub(super) const NONE: Reverse = Reverse { access: None, bottleneck: None, egress: None };
}

table! {
    /// A link of the topology `graph`.
    pub struct NamedLink "named-link" {
        /// Properties of the link.
        link: Inline<LinkParams> = Takes::Inline(LinkParams::TABLE);
        /// Name by which paths refer to this link.
        name: String = Takes::Text;
    }
}

table! {
    /// A path of the topology `graph`.
    pub struct Path "path" {
        /// Name by which flows refer to this path.
        name: String = Takes::Text;
        /// Names of the links from sender to receiver, in order.
        forward: Vec<String> = NAMES;
        /// Names of the links from receiver to sender, in order. Default: for each link of `forward` a copy named
        /// NAME.backward, in reverse order. Paths that share the link also share the copy.
        backward: Vec<String> = NAMES, Vec::new();
    }
}

impl Network {
    /// Bottleneck rate, bit/s: the rate of `bottleneck`, or of the slowest link on a graph's path (the first path if
    /// `path` is `None`). `None` if the rate is infinite.
    pub fn bottleneck_bps(&self, path: Option<&str>) -> Option<u64> {
        let finite = |rate: Rate| (rate != Rate::INFINITE).then_some(rate.0);
        if let Some(bottleneck) = &self.bottleneck {
            return finite(bottleneck.nominal_rate());
        }
        let path = match path {
            Some(name) => self.paths.iter().find(|p| p.name == name),
            None => self.paths.first(),
        };
        let on_path = |name: &String| self.links.iter().find(|l| l.name == *name);
        path?.forward.iter().filter_map(on_path).filter_map(|l| finite(l.link.0.nominal_rate())).min()
    }
}
