//! Accurate ECN on the wire (RFC 9768): the ACE field, its meaning in a handshake, and the option with byte
//! counters.

use crate::packet::{Ecn, Flags};

/// Initial value of the CE packet counter (§3.2.2). ACE carries this value plus the number of packets that arrived
/// with CE, modulo eight.
pub const CEP_START: u32 = 5;

impl Flags {
    /// The ACE field (§3.2): AE, CWR and ECE read as one number.
    #[inline]
    pub fn ace(self) -> u8 {
        (self.0 >> 6) as u8 & 7
    }

    /// Return these flags with the ACE field set to `ace`.
    #[inline]
    pub fn with_ace(self, ace: u8) -> Flags {
        Flags(self.0 & !(7 << 6) | (ace as u16 & 7) << 6)
    }
}

/// Handshake code that reports the mark of an arriving SYN or SYN-ACK (§3.1.1, table 2; §3.2.2.1, table 3).
pub fn handshake_code(arrived: Ecn) -> u8 {
    match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Mark reported by a handshake code. Undefined codes are read as in Linux (`tcp_accecn_extract_syn_ect`).
pub fn handshake_mark(code: u8) -> Ecn {
    match code & 7 {
        0b010 => Ecn::NotEct,
        0b000 | 0b100 => Ecn::Ect0,
        0b110 => Ecn::Ce,
        _ => Ecn::Ect1,
    }
}

/// The AccECN option (§3.2.3): up to three byte counters modulo 2^24, or no option at all.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AccEcnOption {
    /// 0 if there is no option; otherwise 1 + 2 * number of fields + order.
    form: u8,
    fields: [[u8; 3]; 3],
}

impl AccEcnOption {
    /// Return an option with these counters. Order 1 (kind 174) lists ECT(1), CE, ECT(0); order 0 (kind 172) lists
    /// ECT(0), CE, ECT(1).
    pub fn new(order1: bool, counters: &[u32]) -> AccEcnOption {
        let mut option =
            AccEcnOption { form: 1 + 2 * counters.len() as u8 + order1 as u8, ..Self::default() };
        for (field, counter) in option.fields.iter_mut().zip(counters) {
            let [_, high, middle, low] = counter.to_be_bytes();
            *field = [high, middle, low];
        }
        option
    }

    /// Whether the option is present.
    #[inline]
    pub fn is_some(&self) -> bool {
        self.form > 0
    }

    /// Whether the option has order 1, with ECT(1) first.
    pub fn order1(&self) -> bool {
        self.form.saturating_sub(1) & 1 == 1
    }

    /// Counters of the option, in wire order.
    pub fn counters(&self) -> impl Iterator<Item = u32> + '_ {
        let fields = (self.form.saturating_sub(1) / 2) as usize;
        self.fields.iter().take(fields).map(|&[high, middle, low]| u32::from_be_bytes([0, high, middle, low]))
    }

    /// Each counter, paired with the mark that it counts bytes of.
    pub fn by_mark(&self) -> impl Iterator<Item = (Ecn, u32)> + '_ {
        let (first, last) = if self.order1() { (Ecn::Ect1, Ecn::Ect0) } else { (Ecn::Ect0, Ecn::Ect1) };
        [first, Ecn::Ce, last].into_iter().zip(self.counters())
    }

    /// Length of the option without padding, bytes.
    pub fn bytes(&self) -> u32 {
        if self.is_some() {
            2 + 3 * (self.form as u32 - 1).div_euclid(2)
        } else {
            0
        }
    }

    /// Header bytes that the option adds, including padding. Beside SACK blocks, up to two of its bytes replace
    /// their padding (Linux `tcp_options_fit_accecn`).
    pub fn padded(&self, beside_sack: bool) -> u32 {
        padded(self.bytes(), beside_sack)
    }
}

/// Header bytes that an AccECN option of `bytes` adds.
pub fn padded(bytes: u32, beside_sack: bool) -> u32 {
    match bytes & 3 > if beside_sack { 2 } else { 0 } {
        true => bytes.next_multiple_of(4),
        false => bytes & !3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ace_is_ae_cwr_ece() {
        let flags = Flags::ACK | Flags::AE | Flags::ECE;
        assert_eq!(flags.ace(), 0b101);
        assert_eq!(flags.with_ace(0b010), Flags::ACK | Flags::CWR);
        for mark in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            assert_eq!(handshake_mark(handshake_code(mark)), mark);
        }
    }

    #[test]
    fn counters_are_cut_from_the_end_and_padded_as_linux_does() {
        let option = AccEcnOption::new(true, &[1, 100, 0x0100_0066]);
        assert_eq!(option.by_mark().collect::<Vec<_>>(), [(Ecn::Ect1, 1), (Ecn::Ce, 100), (Ecn::Ect0, 0x66)]);
        let sizes = |beside| [0, 1, 2, 3].map(|n| AccEcnOption::new(false, &[7; 3][..n]).padded(beside));
        assert_eq!((sizes(false), sizes(true)), ([4, 8, 8, 12], [0, 4, 8, 12]));
        assert!(!AccEcnOption::default().is_some());
        assert_eq!(AccEcnOption::default().padded(true), 0);
    }
}
