//! A running digest of the events in a run: two runs with the same digest delivered the same packets at the
//! same nanoseconds. Not cryptographic; it guards against change, not against an adversary.

/// 64-bit running digest, at the cost of one 64 x 64 bit multiplication per word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0x243f_6a88_85a3_08d3)
    }
}

impl Digest {
    /// Fold one word into the digest.
    #[inline]
    pub fn fold(&mut self, word: u64) {
        let x = (self.0 ^ word) as u128 * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (x as u64) ^ ((x >> 64) as u64).wrapping_add(0x1319_8a2e_0370_7344);
    }

    /// The digest as a number.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The digest as sixteen hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_count() {
        let of = |words: &[u64]| {
            let mut d = Digest::default();
            words.iter().for_each(|&w| d.fold(w));
            d
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
    }
}
