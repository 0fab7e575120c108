//! An adversary decides what becomes of single packets. Answers are given in advance, in the order of its questions: so a run is forked by
//! another answer to a question that has not been asked yet.
//!
//! Its state lies with the packets (`pool`), because links of both directions share it and a copy of the world has its own.

use ackclock_core::packet::Ecn;
use ackclock_core::{Digest, Packet, Span, Time};

/// Packets that an adversary is asked about.
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
    /// The packet is marked (CE). The adversary is asked only about packets that can be marked.
    Marked,
    /// The packet arrives this much later, and others overtake it.
    Late(Span),
}

/// Answers, and what was asked so far.
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
    /// Most answers that can be given; beyond them it is no.
    pub const MOST: u32 = 128;

    /// One who answers so. `timed`: the time of each question is kept.
    pub fn new(asks: Asks, fate: Fate, answers: u128, timed: bool) -> Adversary {
        Adversary { asks, fate, answers, asked: 0, whom: Digest::default(), times: timed.then(Vec::new) }
    }

    /// Bit k answers question k.
    pub fn answers(&self) -> u128 {
        self.answers
    }

    /// Answer so; what was asked before had the same answers.
    pub fn answer(&mut self, answers: u128) {
        self.answers = answers;
    }

    /// Questions so far.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// A digest of the packets that were asked about.
    pub fn whom(&self) -> Digest {
        self.whom
    }

    /// When each question was asked, if that is kept.
    pub fn times(&self) -> &[Time] {
        self.times.as_deref().unwrap_or_default()
    }

    /// Fate of this packet; `None` if it fares as any other.
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
