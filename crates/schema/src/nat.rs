//! Natural numbers beyond 128 bits, for products of quantities before rounding. They need no allocation: a quantity has
//! at most 36 digits and an exponent of two digits, and a bandwidth-delay product adds two more factors.

use std::cmp::Ordering;

const LIMBS: usize = 16;

/// A natural number below 2^1024.
#[derive(Clone, Copy, Debug)]
pub struct Nat {
    /// Limbs, least significant first.
    limbs: [u64; LIMBS],
    /// Number of limbs up to the highest nonzero one.
    len: usize,
}

impl From<u128> for Nat {
    fn from(n: u128) -> Nat {
        let mut limbs = [0; LIMBS];
        (limbs[0], limbs[1]) = (n as u64, (n >> 64) as u64);
        Nat { limbs, len: LIMBS }.trimmed(2)
    }
}

impl Nat {
    /// Return 10 to the power of `power`.
    pub fn power_of_ten(power: u32) -> Nat {
        let mut product = Nat::from(10u128.pow(power % 38));
        for _ in 0..power / 38 {
            product = product.times(&Nat::from(10u128.pow(38)));
        }
        product
    }

    fn trimmed(mut self, most: usize) -> Nat {
        self.len = most.min(LIMBS);
        while self.len > 0 && self.limbs[self.len - 1] == 0 {
            self.len -= 1;
        }
        self
    }

    /// Whether the number is 0.
    pub fn is_zero(&self) -> bool {
        self.len == 0
    }

    /// Return the number, if it has at most 128 bits.
    pub fn small(&self) -> Option<u128> {
        (self.len <= 2).then(|| self.limbs[0] as u128 | (self.limbs[1] as u128) << 64)
    }

    /// Return the bytes of the number, least significant first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.limbs[..self.len].iter().flat_map(|limb| limb.to_le_bytes()).collect()
    }

    /// Return the product of two numbers.
    pub fn times(&self, other: &Nat) -> Nat {
        let mut limbs = [0; LIMBS];
        for (i, &a) in self.limbs[..self.len].iter().enumerate() {
            let mut carry = 0;
            for (j, &b) in other.limbs[..other.len].iter().enumerate() {
                let sum = a as u128 * b as u128 + limbs[i + j] as u128 + carry;
                (limbs[i + j], carry) = (sum as u64, sum >> 64);
            }
            if carry > 0 {
                limbs[i + other.len] = carry as u64;
            }
        }
        Nat { limbs, len: LIMBS }.trimmed(self.len + other.len)
    }

    /// Return the sum of two numbers.
    pub fn plus(&self, other: &Nat) -> Nat {
        let (mut limbs, mut carry) = ([0; LIMBS], 0);
        for (sum, (&a, &b)) in limbs.iter_mut().zip(self.limbs.iter().zip(&other.limbs)) {
            let whole = a as u128 + b as u128 + carry;
            (*sum, carry) = (whole as u64, whole >> 64);
        }
        Nat { limbs, len: LIMBS }.trimmed(self.len.max(other.len) + 1)
    }

    /// Return this number minus `other`, which must not be larger.
    fn minus(&self, other: &Nat) -> Nat {
        let (mut limbs, mut borrow) = (self.limbs, false);
        for (limb, &b) in limbs[..self.len].iter_mut().zip(&other.limbs) {
            let (first, one) = limb.overflowing_sub(b);
            let (second, two) = first.overflowing_sub(borrow as u64);
            (*limb, borrow) = (second, one || two);
        }
        Nat { limbs, len: LIMBS }.trimmed(self.len)
    }

    /// Return the number of significant bits.
    pub fn bits(&self) -> usize {
        match self.len {
            0 => 0,
            len => 64 * len - self.limbs[len - 1].leading_zeros() as usize,
        }
    }

    /// Return the number shifted left by `by` bits.
    pub fn shifted(&self, by: usize) -> Nat {
        let (whole, part) = (by / 64, by % 64);
        let mut limbs = [0; LIMBS];
        for i in 0..self.len {
            limbs[i + whole] |= self.limbs[i] << part;
            if part > 0 && self.limbs[i] >> (64 - part) > 0 {
                limbs[i + whole + 1] |= self.limbs[i] >> (64 - part);
            }
        }
        Nat { limbs, len: LIMBS }.trimmed(self.len + whole + 1)
    }

    /// Return the quotient, which must be below 2^128, and the remainder.
    pub fn divided(&self, by: &Nat) -> (u128, Nat) {
        if let (Some(a), Some(b)) = (self.small(), by.small()) {
            return (a / b, Nat::from(a % b));
        }
        let (mut rest, mut quotient) = (*self, 0);
        for shift in (0..=self.bits().saturating_sub(by.bits()).min(127)).rev() {
            let part = by.shifted(shift);
            if rest >= part {
                rest = rest.minus(&part);
                quotient |= 1 << shift;
            }
        }
        (quotient, rest)
    }
}

impl PartialEq for Nat {
    fn eq(&self, other: &Nat) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Nat {}

impl PartialOrd for Nat {
    fn partial_cmp(&self, other: &Nat) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Nat {
    fn cmp(&self, other: &Nat) -> Ordering {
        let from_the_top = |n: &Nat| n.limbs.into_iter().rev();
        self.len.cmp(&other.len).then_with(|| from_the_top(self).cmp(from_the_top(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_products_belong_together() {
        let large = Nat::power_of_ten(200).plus(&Nat::from(12_345));
        for by in [Nat::from(7), Nat::power_of_ten(170), Nat::from(u128::MAX).times(&Nat::power_of_ten(150))]
        {
            let most = large.bits() - by.bits() > 127;
            let dividend = if most { by.times(&Nat::from(987_654_321)).plus(&Nat::from(5)) } else { large };
            let (quotient, rest) = dividend.divided(&by);
            assert!(rest < by);
            assert_eq!(by.times(&Nat::from(quotient)).plus(&rest), dividend);
        }
        assert_eq!(Nat::from(1).shifted(129).divided(&Nat::from(4)), (1 << 127, Nat::from(0)));
    }
}
