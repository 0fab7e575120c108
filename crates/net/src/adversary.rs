//! An adversary decides the fate of single packets. Answers are given in advance, in the order of its
//! questions: so a run is forked by another answer to a question that has not been asked yet.
//!
//! Its state lies with the packets (`pool`), because links of both directions share it and a copy of the world has its own.

use ackclock_core::packet::Ecn;
use ackclock_core::{Digest, Packet, Span, Time};

/// Packets about which an adversary decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// First transmissions of data.
    Originals,
    /// Data, retransmissions included.
    Data,
    /// Every packet, SYNs and ACKs included.
    All,
}

/// Fate of a packet if the answer is yes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet is lost.
    Lost,
    /// The packet is marked (CE). Only packets that can be marked are submitted to the adversary.
    Marked,
    /// The packet arrives this much later, and others overtake it.
    Late(Span),
}

/// Answers, and the questions asked so far.
#[derive(Clone, Debug)]
pub struct Adversary {
    asks: Asks,
    fate: Fate,
    answers: u128,
    asked: u32,
    whom: Digest,
    times: Option<Vec<Time>>,
}

impl Adversary {
    /// Maximum number of given answers; beyond them the answer is no.
    pub const MOST: u32 = 128;

    /// Return an adversary with these answers. `timed`: the time of each question is kept.
    pub fn new(asks: Asks, fate: Fate, answers: u128, timed: bool) -> Adversary {
        Adversary { asks, fate, answers, asked: 0, whom: Digest::default(), times: timed.then(Vec::new) }
    }

    /// Bit k answers question k.
    pub fn answers(&self) -> u128 {
        self.answers
    }

    /// Set the answers; earlier questions had the same answers.
    pub fn answer(&mut self, answers: u128) {
        self.answers = answers;
    }

    /// Number of questions so far.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Digest of the packets submitted to the adversary.
    pub fn whom(&self) -> Digest {
        self.whom
    }

    /// Time of each question, if kept.
    pub fn times(&self) -> &[Time] {
        self.times.as_deref().unwrap_or_default()
    }

    /// Fate of this packet; `None` if it is treated like any other.
    pub(crate) fn ask(&mut self, now: Time, packet: &Packet) -> Option<Fate> {
        if !self.concerns(packet) {
            return None;
        }
        let yes = self.asked < Adversary::MOST && self.answers >> self.asked & 1 == 1;
        self.asked += 1;
        let (ordinal, transmission) = packet.header.ordinal();
        self.whom.fold(u64::from(packet.conn) << 32 | u64::from(ordinal));
        self.whom.fold(u64::from(transmission) << 1 | u64::from(packet.forward));
        if let Some(times) = &mut self.times {
            times.push(now);
        }
        yes.then_some(self.fate)
    }

    fn concerns(&self, packet: &Packet) -> bool {
        if self.fate == Fate::Marked && packet.ecn == Ecn::NotEct {
            return false;
        }
        let is_data = packet.forward && packet.header.payload() > 0;
        match self.asks {
            Asks::All => true,
            Asks::Data => is_data,
            Asks::Originals => is_data && packet.header.ordinal().1 == 0,
        }
    }
}
