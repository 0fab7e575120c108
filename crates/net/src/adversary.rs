//! Adversary that decides the fate of individual packets. Its answers are fixed in advance, in the order in which it
//! will be asked, so a run can be forked by changing the answer to a question that has not been asked yet.
//!
//! Its state is stored with the packets (`pool`), because the links of both directions share it and every copy of the
//! world needs its own.

use ackclock_core::packet::Ecn;
use ackclock_core::{Digest, Packet, Span, Time};

/// Packets that an adversary decides about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// First transmissions of data.
    Originals,
    /// Data, retransmissions included.
    Data,
    /// Every packet, SYNs and ACKs included.
    All,
}

/// Fate of a packet when the answer is yes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet is lost.
    Lost,
    /// The packet is marked (CE). The adversary is asked only about packets that can be marked.
    Marked,
    /// The packet is delayed by this time, and others overtake it.
    Late(Span),
}

/// Answers and the number of questions asked so far.
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
    /// Maximum number of answers; all later questions are answered no.
    pub const MOST: u32 = 128;

    /// Return an adversary with these answers. `timed`: record the time of each question.
    pub fn new(asks: Asks, fate: Fate, answers: u128, timed: bool) -> Adversary {
        Adversary { asks, fate, answers, asked: 0, whom: Digest::default(), times: timed.then(Vec::new) }
    }

    /// Answers as bits: bit k answers question k.
    pub fn answers(&self) -> u128 {
        self.answers
    }

    /// Replace the answers. Answers to earlier questions must be unchanged.
    pub fn answer(&mut self, answers: u128) {
        self.answers = answers;
    }

    /// Number of questions asked so far.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Digest of the packets that the adversary was asked about.
    pub fn whom(&self) -> Digest {
        self.whom
    }

    /// Time of each question; empty unless `timed`.
    pub fn times(&self) -> &[Time] {
        self.times.as_deref().unwrap_or_default()
    }

    /// Return the fate of this packet; `None` if the packet is treated normally.
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
