//! Switches of code that exists for speed alone. Each shortcut has a general form, with which a run is the same: digest, tables and
//! captures. A test leaves them out, all together and each alone.

use std::rc::Rc;

use crate::error::Error;
use crate::transport::TransportConfig;

/// The shortcuts that a run takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortcuts {
    /// A packet on a wire has its own event. Otherwise its link has one, for the packet that leaves it next.
    pub events: bool,
    /// A packet is passed on to the next link as soon as its arrival there is known.
    pub ahead: bool,
    /// A queue that holds its packets learns late which of them left; only if packets are passed on `ahead`.
    pub told_late: bool,
    /// Packets that several links bring to one are gathered there; only without `events`.
    pub junctions: bool,
    /// A link with only a drop-tail queue, a rate and a delay checks nothing else.
    pub links: bool,
    /// Packets that wait for a link at equal intervals are stored as a run.
    pub runs: bool,
    /// Segments that need no check in between leave as a train.
    pub trains: bool,
    /// Full segments that leave one by one as they are written are written at once.
    pub fills: bool,
    /// A receiver processes the next segment in order on a fast path (header prediction).
    pub predicts: bool,
    /// A reader has its turn without an event, where nothing else happens in that nanosecond.
    pub turns: bool,
    /// An application is notified of an end only from a given number of bytes on, if it sets one, and when
    /// the peer closes.
    pub tells: bool,
    /// The idle half of a connection takes little memory, and is rebuilt when it is needed.
    pub rests: bool,
    /// In a crowd, data for the next events is prefetched, and junctions take their arrivals more often.
    pub foresees: bool,
}

impl Shortcuts {
    /// Every one.
    pub const ALL: Shortcuts = Shortcuts {
        events: true,
        ahead: true,
        told_late: true,
        junctions: true,
        links: true,
        runs: true,
        trains: true,
        fills: true,
        predicts: true,
        turns: true,
        tells: true,
        rests: true,
        foresees: true,
    };

    /// The general form of everything.
    pub const NONE: Shortcuts = Shortcuts {
        events: false,
        ahead: false,
        told_late: false,
        junctions: false,
        links: false,
        runs: false,
        trains: false,
        fills: false,
        predicts: false,
        turns: false,
        tells: false,
        rests: false,
        foresees: false,
    };

    /// Names of all shortcuts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PLACES.iter().map(|(name, _)| *name)
    }

    /// Shortcuts that the text names, separated by commas; or `all`, or `none`. A shortcut that needs another one brings it along.
    pub fn parse(text: &str) -> Result<Shortcuts, Error> {
        let mut shortcuts = Shortcuts::NONE;
        for word in text.split(',').map(str::trim) {
            match PLACES.iter().find(|(name, _)| *name == word) {
                Some((_, place)) => *place(&mut shortcuts) = true,
                None if word == "all" => shortcuts = Shortcuts::ALL,
                None if word == "none" => {}
                None => {
                    let names: Vec<&str> = Shortcuts::names().collect();
                    let allowed = format!("all, none, or some of {}", names.join(", "));
                    return Err(Error::value("shortcuts", format_args!("\"{word}\""), allowed));
                }
            }
        }
        shortcuts.ahead |= shortcuts.told_late;
        shortcuts.events |= shortcuts.junctions;
        Ok(shortcuts)
    }

    /// Turn off all shortcuts of a flow that are not among these.
    pub fn apply(self, config: &mut TransportConfig) {
        if let (TransportConfig::Tcp(config), false) = (config, self.predicts && self.rests && self.fills) {
            let config = Rc::make_mut(config);
            (config.predicts, config.rests) = (self.predicts, self.rests);
            config.fills &= self.fills;
        }
    }
}

type Place = fn(&mut Shortcuts) -> &mut bool;

const PLACES: [(&str, Place); 13] = [
    ("events", |all| &mut all.events),
    ("ahead", |all| &mut all.ahead),
    ("told_late", |all| &mut all.told_late),
    ("junctions", |all| &mut all.junctions),
    ("links", |all| &mut all.links),
    ("runs", |all| &mut all.runs),
    ("trains", |all| &mut all.trains),
    ("fills", |all| &mut all.fills),
    ("predicts", |all| &mut all.predicts),
    ("turns", |all| &mut all.turns),
    ("tells", |all| &mut all.tells),
    ("rests", |all| &mut all.rests),
    ("foresees", |all| &mut all.foresees),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcuts_are_read_by_name() {
        let read = |text: &str| Shortcuts::parse(text).map_err(|error| error.to_string());
        assert_eq!(read("all"), Ok(Shortcuts::ALL));
        assert_eq!(read("none"), Ok(Shortcuts::NONE));
        let every: Vec<&str> = Shortcuts::names().collect();
        assert_eq!(read(&every.join(",")), Ok(Shortcuts::ALL));
        let some = Shortcuts { junctions: true, events: true, runs: true, ..Shortcuts::NONE };
        assert_eq!(read("junctions, runs"), Ok(some));
        assert!(read("train").unwrap_err().contains("trains"));
    }
}
