//! The network of a run as it is laid: links by number, and over which of them the packets of each flow go.

use ackclock_net::link::LinkConfig;

use crate::world::names::Names;

/// The network of a run: links, and for each flow its way forward and back.
#[derive(Default)]
pub struct Layout {
    /// Configurations of links, without their names: most of many links are equal.
    kinds: Vec<LinkConfig>,
    /// Kinds of the links, in order of their numbers.
    links: Vec<u32>,
    names: Names,
    /// Link numbers of each flow, forward and back.
    pub routes: Vec<[Vec<u32>; 2]>,
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

    /// Links, in order of their numbers.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkConfig> + '_ {
        (0..self.links.len() as u32)
            .map(|link| LinkConfig { name: self.name(link), ..self.kind(link).clone() })
    }

    /// Configuration of a link, without its name.
    pub fn kind(&self, link: u32) -> &LinkConfig {
        &self.kinds[self.links[link as usize] as usize]
    }

    /// Number in [`Layout::kinds`] of the configuration of each link, in order of the links.
    pub fn numbers_of_kinds(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter().copied()
    }

    /// Configurations of links, each at least once, without names.
    pub fn kinds(&self) -> impl Iterator<Item = &LinkConfig> {
        self.kinds.iter()
    }

    /// The name of a link.
    pub fn name(&self, link: u32) -> String {
        self.names.of(link as usize)
    }

    /// Names of all links, which are not needed here any more.
    pub(crate) fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }
}

/// Number of the newest kinds that are searched for an equal one: a flow has four links of its own, or six.
const RECENT: usize = 8;
