//! Names of links. If each flow has its own links, their names differ only in a number. The text around the number is
//! stored once if it matches one of the last few patterns. If consecutive flows repeat the same patterns with numbers
//! that increase by one, only the names of the first flow are stored.

use std::fmt::Write as _;

/// Names of links, by link number.
#[derive(Clone, Default)]
pub struct Names {
    /// Text before and after the number.
    patterns: Vec<[Box<str>; 2]>,
    names: Vec<Name>,
    runs: Vec<Run>,
    links: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    pattern: u32,
    /// [`NO_NUMBER`] if the pattern is the whole name.
    number: u32,
}

/// Run of consecutive links whose names are either all stored or repeat with a period.
#[derive(Clone)]
struct Run {
    link: u32,
    /// Index of the run's first name in `Names::names`.
    at: u32,
    /// Number of stored names after which the names repeat with the number increased by one; 0 if all names are
    /// stored.
    period: u32,
}

impl Run {
    /// Name of the run's `k`-th link; `None` if it is not stored.
    fn of(&self, names: &[Name], k: u32) -> Option<Name> {
        match self.period {
            0 => names.get((self.at + k) as usize).copied(),
            period => {
                let Name { pattern, number } = *names.get((self.at + k % period) as usize)?;
                Some(Name { pattern, number: number.checked_add(k / period)? })
            }
        }
    }
}

const NO_NUMBER: u32 = u32::MAX;

/// Number of recent patterns that are compared with a new name. Each flow has four or six private links.
const RECENT: usize = 8;

impl Names {
    /// Add the name of the next link.
    pub fn add(&mut self, name: &str) {
        let (before, number, after) = split(name);
        let known = self.patterns.iter().rev().take(RECENT).position(|p| *p[0] == *before && *p[1] == *after);
        let pattern = match known {
            Some(back) => self.patterns.len() - 1 - back,
            None => {
                self.patterns.push([before.into(), after.into()]);
                self.patterns.len() - 1
            }
        };
        self.store(Name { pattern: pattern as u32, number });
        self.links += 1;
    }

    fn store(&mut self, name: Name) {
        let (link, stored) = (self.links, self.names.len() as u32);
        match self.runs.last() {
            Some(run) if run.period > 0 => {
                if name.number != NO_NUMBER && run.of(&self.names, link - run.link) == Some(name) {
                    return;
                }
                self.runs.push(Run { link, at: stored, period: 0 });
            }
            Some(run) => {
                let most = (link - run.link).min(RECENT as u32);
                let before = |back: u32| self.names[(stored - back) as usize];
                let counts =
                    |b: Name| b.pattern == name.pattern && b.number.checked_add(1) == Some(name.number);
                let numbered = |back: u32| (1..=back).all(|back| before(back).number != NO_NUMBER);
                let back = (1..=most).find(|&back| counts(before(back)) && numbered(back));
                if let Some(period) = back.filter(|_| name.number != NO_NUMBER) {
                    self.runs.push(Run { link: link - period, at: stored - period, period });
                    return;
                }
            }
            None => self.runs.push(Run { link, at: 0, period: 0 }),
        }
        self.names.push(name);
    }

    /// Name of a link.
    pub fn of(&self, link: usize) -> String {
        let run = &self.runs[self.runs.partition_point(|run| run.link as usize <= link) - 1];
        let Name { pattern, number } =
            run.of(&self.names, link as u32 - run.link).expect("invariant: as many names as links");
        let [before, after] = &self.patterns[pattern as usize];
        match number {
            NO_NUMBER => before.to_string(),
            _ => {
                // exact allocation: there may be very many links
                let digits = 1 + number.checked_ilog10().unwrap_or(0) as usize;
                let mut name = String::with_capacity(before.len() + digits + after.len());
                write!(name, "{before}{number}{after}").expect("invariant: writing to a string never fails");
                name
            }
        }
    }
}

/// Split a name at its first number. The whole name is returned with `NO_NUMBER` if there is none, or if it has
/// leading zeros or is too large.
fn split(name: &str) -> (&str, u32, &str) {
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let end = name[start..].find(|c: char| !c.is_ascii_digit()).map_or(name.len(), |length| start + length);
    let digits = &name[start..end];
    match digits.parse() {
        Ok(number) if number != NO_NUMBER && (digits == "0" || !digits.starts_with('0')) => {
            (&name[..start], number, &name[end..])
        }
        _ => (name, NO_NUMBER, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(names: &[impl AsRef<str>]) -> Names {
        let mut all = Names::default();
        names.iter().for_each(|name| all.add(name.as_ref()));
        all
    }

    proptest! {
        #[test]
        fn names_come_back_as_they_were(names in prop::collection::vec("([a-c]|[0-9]{0,11}|\\.|ü){0,5}", 0..40)) {
            let kept = kept(&names);
            for (link, name) in names.iter().enumerate() {
                prop_assert_eq!(&kept.of(link), name);
            }
        }
    }

    proptest! {
        /// Names of the links of many flows, with some links missing.
        #[test]
        fn names_that_count_come_back_as_they_were(
            parts in prop::collection::vec((0u32..3, 1usize..5, 0usize..12, any::<bool>()), 0..6),
        ) {
            let mut names = Vec::new();
            for (first, links, flows, alone) in parts {
                for flow in 0..flows {
                    names.extend((0..links).map(|link| format!("{}{}.{link}", ["a", "b"][link % 2], first + flow as u32)));
                }
                names.extend(alone.then(|| "bottleneck".to_string()));
            }
            let kept = kept(&names);
            for (link, name) in names.iter().enumerate() {
                prop_assert_eq!(&kept.of(link), name);
            }
        }
    }

    #[test]
    fn what_many_names_have_in_common_is_kept_once() {
        let names: Vec<String> = (0..1000)
            .flat_map(|flow| [format!("access.{flow}.forward"), format!("egress.{flow}.back")])
            .collect();
        assert_eq!((kept(&names).patterns.len(), kept(&names).names.len()), (2, 2));
        let large = ["l4294967294", "l4294967295", "l4294967296", "l007"];
        assert_eq!(kept(&large).names.iter().filter(|name| name.number == NO_NUMBER).count(), 3);
    }
}
