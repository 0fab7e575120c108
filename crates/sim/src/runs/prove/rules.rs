//! Answers that an adversary may give.

use ackclock_core::Span;
use ackclock_net::{Adversary, Asks, Fate};

use crate::error::Error;

/// Limits of an adversary: the packets that it decides about, the fate of the selected packets, and the permitted
/// answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Packets on which the adversary decides.
    pub asks: Asks,
    /// Fate of a packet for which the answer is yes.
    pub fate: Fate,
    /// Number of leading questions that may be answered with yes.
    pub first: u32,
    /// Maximum number of yes answers.
    pub most: u32,
    /// Length of the single burst of yes answers, which begins among the first questions; all answers may also be no.
    /// `None` = no burst rule.
    pub burst: Option<u32>,
}

impl Rules {
    /// Check that the rules can be enumerated.
    pub fn check(&self) -> Result<(), Error> {
        let most = match self.burst {
            Some(length) => Adversary::MOST - length.min(Adversary::MOST - 1),
            None => Adversary::MOST,
        };
        if !(1..=most).contains(&self.first) {
            return Err(Error::value("first", self.first, format_args!("1 to {most}")));
        }
        Ok(())
    }

    /// Whether the rules exclude some answers to the first questions.
    pub fn is_limited(&self) -> bool {
        self.burst.is_none() && self.most < self.first
    }

    /// Whether [no, yes] are permitted as the answer to question `k`, given the previous answers.
    pub fn allow(&self, answers: u128, k: u32) -> [bool; 2] {
        let before = answers & ((1_u128 << k.min(127)) - 1);
        match self.burst {
            None => [true, k < self.first && before.count_ones() < self.most],
            Some(_) if before == 0 => [true, k < self.first],
            Some(length) => {
                let goes_on = k < before.trailing_zeros() + length;
                [!goes_on, goes_on]
            }
        }
    }

    /// Keep the first `decided` of these answers, and continue with the first permitted ones.
    pub fn continued(&self, answers: u128, decided: u32) -> u128 {
        let before = answers & mask(decided);
        match self.burst {
            Some(length) if before != 0 => {
                let begins = before.trailing_zeros();
                mask(begins + length) & !mask(begins)
            }
            _ => before,
        }
    }

    /// Return the next sequence of answers to the first `asked` questions, in order, with the first `decided`
    /// unchanged; `None` after the last one.
    pub fn next(&self, answers: u128, decided: u32, asked: u32) -> Option<u128> {
        (decided..asked).rev().find_map(|k| {
            let no = answers >> k & 1 == 0;
            (no && self.allow(answers, k)[1]).then(|| self.continued(answers & mask(k) | 1 << k, k + 1))
        })
    }
}

/// Mask of the lowest `bits` bits.
pub(super) fn mask(bits: u32) -> u128 {
    match bits {
        0..128 => (1 << bits) - 1,
        _ => u128::MAX,
    }
}

/// Parse the packets on which an adversary decides.
pub fn parse_asks(name: &str) -> Result<Asks, Error> {
    match name {
        "originals" => Ok(Asks::Originals),
        "data" => Ok(Asks::Data),
        "all" => Ok(Asks::All),
        _ => Err(Error::value("packets", format_args!("{name:?}"), "originals, data, all")),
    }
}

/// Parse a fate; "late" delays a packet by `late_ns`.
pub fn parse_fate(name: &str, late_ns: u64) -> Result<Fate, Error> {
    match name {
        "lost" => Ok(Fate::Lost),
        "marked" => Ok(Fate::Marked),
        "late" if late_ns > 0 => Ok(Fate::Late(Span(late_ns))),
        "late" => Err(Error::value("late", "0 s", "a time above zero")),
        _ => Err(Error::value("fate", format_args!("{name:?}"), "lost, marked, late")),
    }
}
