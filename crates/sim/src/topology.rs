//! From the scenario's network to links and ways over them.
//!
//! Where flows share links they share both directions: chain: all of them; dumbbell, wishbone: the bottleneck. A link
//! of the way back that is not given is a copy of the one on the way out, with its own random streams.

use ackclock_net::link::{LinkConfig, LinkParams};

use crate::error::Error;
use crate::spec::{self, Topology};

/// Name and one line for each topology.
pub const REGISTRY: &[(&str, &str)] = &[
    ("chain", "sender - access - bottleneck - egress - receiver; all flows share every link"),
    ("dumbbell", "an access and an egress link for each flow, one shared bottleneck"),
    ("wishbone", "like dumbbell, but with the access links given one by one"),
    ("graph", "links and paths that you list yourself"),
];

/// The network of a run: links, and for each flow its way forward and back.
#[derive(Default)]
pub struct Layout {
    /// Links, in order of their numbers.
    pub links: Vec<LinkConfig>,
    /// By flow: link numbers forward and back.
    pub routes: Vec<[Vec<u32>; 2]>,
}

impl Layout {
    /// Add a link; returns its number.
    pub fn add(&mut self, link: LinkConfig) -> u32 {
        self.links.push(link);
        self.links.len() as u32 - 1
    }
}

/// Lays the ways of one flow after another.
pub struct Builder<'a> {
    network: &'a spec::Network,
    shared: Option<Shared>,
    laid: u32,
}

/// Links laid once.
enum Shared {
    Chain { route: [Vec<u32>; 2] },
    Bottleneck { forward: u32, backward: u32 },
    Graph { first: u32 },
}

impl<'a> Builder<'a> {
    /// A builder for this network, which has laid nothing yet.
    pub fn new(network: &'a spec::Network) -> Builder<'a> {
        Builder { network, shared: None, laid: 0 }
    }

    /// Lay the way of the next flow; `path` names it in a graph.
    pub fn route(&mut self, layout: &mut Layout, path: Option<&str>) -> Result<(), Error> {
        if self.shared.is_none() {
            self.shared = Some(self.lay_shared(layout)?);
        }
        let flow = self.laid;
        self.laid += 1;
        let route = match self.shared.as_ref().expect("invariant: laid above") {
            Shared::Chain { route } => route.clone(),
            &Shared::Bottleneck { forward, backward } => {
                let [access, access_back] = self.access(layout, flow)?;
                let egress = pair("egress", &self.network.egress, &self.network.reverse.egress);
                let [egress, egress_back] = lay_pair(layout, egress, &format!("egress.{flow}"))?;
                [
                    [access, Some(forward), egress].into_iter().flatten().collect(),
                    [egress_back, Some(backward), access_back].into_iter().flatten().collect(),
                ]
            }
            &Shared::Graph { first } => self.graph_path(first, path)?,
        };
        layout.routes.push(route);
        Ok(())
    }

    fn lay_shared(&self, layout: &mut Layout) -> Result<Shared, Error> {
        let network = self.network;
        if network.topology == Topology::Graph {
            let first = layout.links.len() as u32;
            for (i, named) in network.links.iter().enumerate() {
                if network.links[..i].iter().any(|other| other.name == named.name) {
                    let found = format!("{:?} twice", named.name);
                    return Err(Error::value("network.links", found, "a name of its own for each link"));
                }
                let link = named.link.named(named.name.clone());
                let key = format_args!("network.links.{i}");
                layout.add(link.map_err(|refusal| Error::refused(key, refusal))?);
            }
            return Ok(Shared::Graph { first });
        }
        let bottleneck = pair("bottleneck", &network.bottleneck, &network.reverse.bottleneck);
        if bottleneck.is_none() {
            return Err(Error::value("network.bottleneck", "nothing", "a link"));
        }
        if network.topology != Topology::Chain {
            let laid = lay_pair(layout, bottleneck, "bottleneck")?;
            let [Some(forward), Some(backward)] = laid else { unreachable!("invariant: checked above") };
            return Ok(Shared::Bottleneck { forward, backward });
        }
        let access = pair("access", &network.access, &network.reverse.access);
        let egress = pair("egress", &network.egress, &network.reverse.egress);
        let mut route = [Vec::new(), Vec::new()];
        for (links, name) in [(access, "access"), (bottleneck, "bottleneck"), (egress, "egress")] {
            let [forward, backward] = lay_pair(layout, links, name)?;
            route[0].extend(forward);
            route[1].extend(backward);
        }
        route[1].reverse();
        Ok(Shared::Chain { route })
    }

    fn access(&self, layout: &mut Layout, flow: u32) -> Result<[Option<u32>; 2], Error> {
        let network = self.network;
        let links = if network.topology == Topology::Wishbone {
            let list = &network.access_list;
            if list.is_empty() {
                return Err(Error::value("network.access_list", "no link", "at least one in a wishbone"));
            }
            let i = flow as usize % list.len();
            let forward = (&list[i], format!("network.access_list.{i}"));
            let back = network.reverse.access.as_ref();
            let back = back.map_or(forward.clone(), |back| (back, "network.reverse.access".to_string()));
            Some([forward, back])
        } else {
            pair("access", &network.access, &network.reverse.access)
        };
        lay_pair(layout, links, &format!("access.{flow}"))
    }

    fn graph_path(&self, first: u32, path: Option<&str>) -> Result<[Vec<u32>; 2], Error> {
        let network = self.network;
        let names = || network.paths.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = match path {
            Some(name) => network.paths.iter().find(|p| p.name == name),
            None => network.paths.first(),
        };
        let path = found
            .ok_or_else(|| Error::value("flows.path", format_args!("{:?}", path.unwrap_or("")), names()))?;
        let resolve = |way: &[String], direction: &str| {
            let place = || format!("network.paths.{}.{direction}", path.name);
            if way.is_empty() {
                return Err(Error::value(place(), "no link", "at least one link"));
            }
            let mut links: Vec<u32> = Vec::with_capacity(way.len());
            for name in way {
                let names = || network.links.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", ");
                let at = network.links.iter().position(|l| l.name == *name);
                let at = at.ok_or_else(|| Error::value(place(), format_args!("{name:?}"), names()))?;
                let link = first + at as u32;
                if links.contains(&link) {
                    return Err(Error::value(place(), format_args!("{name:?} twice"), "each link once"));
                }
                links.push(link);
            }
            Ok(links)
        };
        Ok([resolve(&path.forward, "forward")?, resolve(&path.backward, "backward")?])
    }
}

/// A link and the one that leads back, each with its key.
type Pair<'a> = [(&'a LinkParams, String); 2];

/// The links called `key`, and those of the way back: a copy where none is given.
fn pair<'a>(key: &str, forward: &'a Option<LinkParams>, reverse: &'a Option<LinkParams>) -> Option<Pair<'a>> {
    let out = (forward.as_ref()?, format!("network.{key}"));
    let back = reverse.as_ref().map_or(out.clone(), |reverse| (reverse, format!("network.reverse.{key}")));
    Some([out, back])
}

fn lay_pair(layout: &mut Layout, links: Option<Pair>, name: &str) -> Result<[Option<u32>; 2], Error> {
    let Some([(forward, key), (backward, key_back)]) = links else { return Ok([None; 2]) };
    let mut lay = |link: &LinkParams, name: String, key: String| {
        let link = link.named(name).map_err(|refusal| Error::refused(key, refusal))?;
        Ok::<_, Error>(Some(layout.add(link)))
    };
    Ok([lay(forward, format!("{name}.forward"), key)?, lay(backward, format!("{name}.backward"), key_back)?])
}
