//! Links of the scenario's network, and the paths over them.
//!
//! Flows that share links share both directions. Chain: all links; dumbbell, wishbone: the bottleneck. A return-path
//! link that is not specified is a copy of the forward link with its own random streams.

use ackclock_net::link::LinkParams;

use crate::scenario::spec::{self, Topology};
use crate::world::layout::Layout;

/// Name and description of each topology.
pub const REGISTRY: &[(&str, &str)] = &[
    ("chain", "sender - access - bottleneck - egress - receiver; all flows share every link"),
    ("dumbbell", "an access and an egress link for each flow, one shared bottleneck"),
    ("wishbone", "like dumbbell, but with the access links given one by one"),
    ("graph", "links and paths that you list yourself"),
];

/// Builder of paths, one flow at a time.
pub struct Builder<'a> {
    network: &'a spec::Network,
    shared: Option<Shared>,
    laid: u32,
}

/// Links that are created once and shared by flows.
enum Shared {
    Chain { route: [Vec<u32>; 2] },
    Bottleneck { forward: u32, backward: u32 },
    Graph { first: u32 },
}

impl<'a> Builder<'a> {
    /// Return a builder for this network that has not created any links yet.
    pub fn new(network: &'a spec::Network) -> Builder<'a> {
        Builder { network, shared: None, laid: 0 }
    }

    /// Add the path of the next flow. `path` is its name in a graph.
    pub fn route(&mut self, layout: &mut Layout, path: Option<&str>) {
        if self.shared.is_none() {
            self.shared = Some(self.lay_shared(layout));
        }
        let flow = self.laid;
        self.laid += 1;
        let route = match self.shared.as_ref().expect("invariant: laid above") {
            Shared::Chain { route } => route.clone(),
            &Shared::Bottleneck { forward, backward } => {
                let [access, access_back] = self.access(layout, flow);
                let egress = pair(&self.network.egress, &self.network.reverse.egress);
                let [egress, egress_back] = lay_pair(layout, egress, &format!("egress.{flow}"));
                [
                    [access, Some(forward), egress].into_iter().flatten().collect(),
                    [egress_back, Some(backward), access_back].into_iter().flatten().collect(),
                ]
            }
            &Shared::Graph { first } => self.graph_path(first, path),
        };
        layout.routes.push(route);
    }

    fn lay_shared(&self, layout: &mut Layout) -> Shared {
        let network = self.network;
        if network.topology == Topology::Graph {
            let first = layout.links().len() as u32;
            for named in &network.links {
                layout.add(named.link.0.named(named.name.clone()));
            }
            return Shared::Graph { first };
        }
        let bottleneck = pair(&network.bottleneck, &network.reverse.bottleneck);
        if network.topology != Topology::Chain {
            let laid = lay_pair(layout, bottleneck, "bottleneck");
            let [Some(forward), Some(backward)] = laid else { unreachable!("{JUDGED}") };
            return Shared::Bottleneck { forward, backward };
        }
        let access = pair(&network.access, &network.reverse.access);
        let egress = pair(&network.egress, &network.reverse.egress);
        let mut route = [Vec::new(), Vec::new()];
        for (links, name) in [(access, "access"), (bottleneck, "bottleneck"), (egress, "egress")] {
            let [forward, backward] = lay_pair(layout, links, name);
            route[0].extend(forward);
            route[1].extend(backward);
        }
        route[1].reverse();
        Shared::Chain { route }
    }

    fn access(&self, layout: &mut Layout, flow: u32) -> [Option<u32>; 2] {
        let network = self.network;
        let links = if network.topology == Topology::Wishbone {
            let forward = &network.access_list[flow as usize % network.access_list.len()];
            Some([forward, network.reverse.access.as_ref().unwrap_or(forward)])
        } else {
            pair(&network.access, &network.reverse.access)
        };
        lay_pair(layout, links, &format!("access.{flow}"))
    }

    fn graph_path(&self, first: u32, path: Option<&str>) -> [Vec<u32>; 2] {
        let paths = &self.network.paths;
        let path = paths.iter().find(|known| path.is_none_or(|name| known.name == name)).expect(JUDGED);
        let number = |name: &String| {
            let at = self.network.links.iter().position(|link| link.name == *name);
            first + at.expect(JUDGED) as u32
        };
        [path.forward.iter().map(number).collect(), path.backward.iter().map(number).collect()]
    }
}

const JUDGED: &str = "invariant: judged with the scenario";

/// A link and its counterpart on the return path.
type Pair<'a> = [&'a LinkParams; 2];

/// Return a link and its counterpart on the return path, which defaults to a copy.
fn pair<'a>(forward: &'a Option<LinkParams>, reverse: &'a Option<LinkParams>) -> Option<Pair<'a>> {
    let out = forward.as_ref()?;
    Some([out, reverse.as_ref().unwrap_or(out)])
}

fn lay_pair(layout: &mut Layout, links: Option<Pair>, name: &str) -> [Option<u32>; 2] {
    let Some([forward, backward]) = links else { return [None; 2] };
    let mut lay = |link: &LinkParams, way: &str| Some(layout.add(link.named(format!("{name}.{way}"))));
    [lay(forward, "forward"), lay(backward, "backward")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn links_that_are_alike_are_described_once_and_have_names_of_their_own() {
        let json = r#"{"duration_ns": 1000000000, "network": {"topology": "dumbbell",
            "access": {"rate": 100000000, "delay": 1000000}, "egress": {"rate": 200000000, "delay": 1000000},
            "bottleneck": {"rate": 10000000, "delay": 5000000}},
            "flows": [{"profile": "linux-6", "congestion_control": "cubic", "count": 50, "workload": {"kind": "bulk"}}]}"#;
        let scenario = parse(json).expect("reads");
        let (mut layout, mut builder) = (Layout::default(), Builder::new(&scenario.network));
        (0..50).for_each(|_| builder.route(&mut layout, None));
        assert_eq!((layout.kinds().count(), layout.links().len()), (3, 2 + 4 * 50));
        let [forward, _] = &layout.routes[49];
        let way: Vec<_> =
            forward.iter().map(|&link| layout.links().nth(link as usize).expect("there")).collect();
        let found: Vec<_> = way.iter().map(|link| (link.name.as_str(), link.rate.0 / 1_000_000)).collect();
        assert_eq!(
            found,
            [("access.49.forward", 100), ("bottleneck.forward", 10), ("egress.49.forward", 200)]
        );
    }
}
