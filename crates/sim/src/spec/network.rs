//! The network as the engine reads it: links, and the ways over them.

use ackclock_core::schema::{Takes, SIZE_OR_ZERO};
use ackclock_core::{choice, table, Rate};
use ackclock_net::link::LinkParams;

/// Which shape the network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

choice! { Topology: Chain "chain", Dumbbell "dumbbell", Wishbone "wishbone", Graph "graph" }

const LINK: Takes = Takes::Table(LinkParams::TABLE);

table! {
    /// The network: three named links for the usual shapes, or a list of links and paths.
    pub struct Network "network" {
        /// Shape of the network.
        topology: Topology = Topology::TAKES;
        /// Bytes that links charge on top of the IP packet (14 for Ethernet without FCS).
        framing_bytes: u32 = SIZE_OR_ZERO, 0;
        /// Sender's side; absent = the sender sits on the bottleneck.
        access: Option<LinkParams> = LINK;
        /// Wishbone: the access links. Flow 0 uses the first, flow 1 the second, and so on, starting over after the
        /// last.
        access_list: Vec<LinkParams> = Takes::List(&LINK, 0), Vec::new();
        /// The link that all flows share. Every topology but `graph` needs it.
        bottleneck: Option<LinkParams> = LINK;
        /// Receiver's side; absent = the receiver sits on the bottleneck.
        egress: Option<LinkParams> = LINK;
        /// Links of the way back where they differ from the way out.
        reverse: Reverse = Takes::Table(Reverse::TABLE), Reverse::NONE;
        /// Graph: unidirectional links.
        links: Vec<NamedLink> = Takes::List(&Takes::Table(NamedLink::TABLE), 0), Vec::new();
        /// Graph: the paths over these links.
        paths: Vec<Path> = Takes::List(&Takes::Table(Path::TABLE), 0), Vec::new();
    }
}

table! {
    /// The way back, link by link; an absent entry mirrors the forward link (rate, delay, queue and loss alike).
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
    const NONE: Reverse = Reverse { access: None, bottleneck: None, egress: None };
}

table! {
    /// A link of the topology `graph`.
    pub struct NamedLink "named-link" {
        /// Its name.
        name: String = Takes::Text;
        /// What it is made of.
        link: LinkParams = LINK;
    }
}

table! {
    /// A path of a graph: names of links, in order.
    pub struct Path "path" {
        /// Name by which flows refer to this path.
        name: String = Takes::Text;
        /// From sender to receiver.
        forward: Vec<String> = Takes::List(&Takes::Text, 0);
        /// From receiver to sender.
        backward: Vec<String> = Takes::List(&Takes::Text, 0);
    }
}

impl Network {
    /// Rate of the bottleneck, bit/s: the link so named, or the slowest of a graph's path, the first if none is named.
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
        path?.forward.iter().filter_map(on_path).filter_map(|l| finite(l.link.nominal_rate())).min()
    }
}
