//! Layout of a run's network: numbered links, and the path of each flow over them.

use ackclock_net::link::LinkConfig;

use crate::world::names::Names;

/// Layout of a run's network: links, and the forward and return path of each flow.
#[derive(Default)]
pub struct Layout {
    /// Distinct configurations of links, without names. In large networks, most links have the same configuration as
    /// others.
    kinds: Vec<LinkConfig>,
    /// Index in `kinds` for each link, in order of link numbers.
    links: Vec<u32>,
    names: Names,
    /// Link numbers of each flow's forward and return path.
    pub routes: Vec<[Vec<u32>; 2]>,
    /// Whether loss models restart during the run.
    pub losses_restart: bool,
}

impl Layout {
    /// Add a link; returns its number.
    pub fn add(&mut self, mut link: LinkConfig) -> u32 {
        self.names.add(&std::mem::take(&mut link.name));
        let kind = self.kinds.iter().rev().take(RECENT).position(|kind| *kind == link);
        let kind = kind.map(|back| self.kinds.len() - 1 - back).unwrap_or_else(|| {
            self.kinds.push(link);
            self.kinds.len() - 1
        });
        self.links.push(kind as u32);
        self.links.len() as u32 - 1
    }

    /// Configurations of all links, with names, in order of link numbers.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkConfig> + '_ {
        (0..self.links.len() as u32)
            .map(|link| LinkConfig { name: self.name(link), ..self.kind(link).clone() })
    }

    /// Configuration of a link, without its name.
    pub fn kind(&self, link: u32) -> &LinkConfig {
        &self.kinds[self.links[link as usize] as usize]
    }

    /// Index of each link's configuration in [`Layout::kinds`], in order of link numbers.
    pub fn numbers_of_kinds(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter().copied()
    }

    /// Configurations of links, without names. A configuration may be listed more than once.
    pub fn kinds(&self) -> impl Iterator<Item = &LinkConfig> {
        self.kinds.iter()
    }

    /// Name of a link.
    pub fn name(&self, link: u32) -> String {
        self.names.of(link as usize)
    }

    /// Take the names of all links out of the layout.
    pub(crate) fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }
}

/// Number of recent configurations that are compared with a new one. Each flow has four or six private links.
const RECENT: usize = 8;
