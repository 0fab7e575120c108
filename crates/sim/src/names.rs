//! Names of links. If each flow has its own links, their names differ only in a number. The text around the number is stored once, as
//! long as it is among the last few patterns.

/// Names, by number of the link.
#[derive(Default)]
pub struct Names {
    /// What stands before the number and behind it.
    patterns: Vec<[Box<str>; 2]>,
    names: Vec<Name>,
}

struct Name {
    pattern: u32,
    /// [`NO_NUMBER`]: the pattern is all of it.
    number: u32,
}

const NO_NUMBER: u32 = u32::MAX;

/// So many patterns are looked through for one that fits: a flow has four links of its own, or six.
const RECENT: usize = 8;

impl Names {
    /// The name of the next link.
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
        self.names.push(Name { pattern: pattern as u32, number });
    }

    /// The name of a link.
    pub fn of(&self, link: usize) -> String {
        let Name { pattern, number } = self.names[link];
        let [before, after] = &self.patterns[pattern as usize];
        match number {
            NO_NUMBER => before.to_string(),
            _ => format!("{before}{number}{after}"),
        }
    }
}

/// The first number in a name, as long as it is written as numbers are, and what is around it.
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

    #[test]
    fn what_many_names_have_in_common_is_kept_once() {
        let names: Vec<String> = (0..1000)
            .flat_map(|flow| [format!("access.{flow}.forward"), format!("egress.{flow}.back")])
            .collect();
        assert_eq!(kept(&names).patterns.len(), 2);
        let large = ["l4294967294", "l4294967295", "l4294967296", "l007"];
        assert_eq!(kept(&large).names.iter().filter(|name| name.number == NO_NUMBER).count(), 3);
    }
}
