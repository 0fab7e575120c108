//! Switches for code paths that exist only for speed. Each shortcut has a general form that gives the same run:
//! digest, tables and captures. A test disables all of them together and each one alone.

use std::rc::Rc;

use crate::error::Error;
use crate::transport::TransportConfig;

/// Shortcuts used by a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortcuts {
    /// Each packet on a wire has its own event. Otherwise a link has one event, for the packet that leaves it next.
    pub events: bool,
    /// A packet is passed to the next link as soon as its arrival time there is known.
    pub ahead: bool,
    /// A queue that holds its packets computes departures late. Requires `ahead`.
    pub told_late: bool,
    /// A link fed by several links gathers their packets. Requires `events`.
    pub junctions: bool,
    /// A link with only a drop-tail queue, a rate and a delay skips the checks for everything else.
    pub links: bool,
    /// Packets queued at equal intervals are stored as a run.
    pub runs: bool,
    /// Segments that need no checks in between are sent as a train.
    pub trains: bool,
    /// Full segments that would be sent one at a time as they are written are written all at once.
    pub fills: bool,
    /// A receiver processes the next in-order segment on a fast path (header prediction).
    pub predicts: bool,
    /// An application reads without an event if nothing else happens in that nanosecond.
    pub turns: bool,
    /// An application is notified only once a number of bytes that it chooses has arrived, or the peer has closed.
    pub tells: bool,
    /// The idle half of a connection is stored compactly, and rebuilt when it is needed.
    pub rests: bool,
    /// In runs with many flows, data for upcoming events is prefetched, and junctions take their arrivals more often.
    pub foresees: bool,
}

impl Shortcuts {
    /// All shortcuts.
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

    /// No shortcuts: the general form of everything.
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

    /// Parse shortcuts separated by commas, `all`, or `none`. A shortcut that requires another one enables it.
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

    /// Turn off the shortcuts of a flow that are not set here.
    pub fn apply(self, config: &mut TransportConfig) {
        if let (TransportConfig::Tcp(config), false) = (config, self.predicts && self.rests && self.fills) {
            let config = Rc::make_mut(config);
            (config.receiving.predicts, config.rests) = (self.predicts, self.rests);
            config.sending.fills &= self.fills;
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
