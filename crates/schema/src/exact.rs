//! Fractions of numbers beyond 128 bits, compared exactly and rounded only once.

use std::cmp::Ordering;

use crate::nat::Nat;

/// A non-negative fraction.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// Numerator.
    pub numerator: Nat,
    /// Denominator; always positive.
    pub denominator: Nat,
}

impl Exact {
    /// Create a fraction equal to a whole number.
    pub fn whole(n: u128) -> Exact {
        Exact { numerator: n.into(), denominator: 1.into() }
    }

    /// Create a fraction from its numerator and denominator.
    pub fn ratio(numerator: u128, denominator: u128) -> Exact {
        Exact { numerator: numerator.into(), denominator: denominator.into() }
    }

    /// Return the product of two fractions.
    pub fn times(&self, other: &Exact) -> Exact {
        Exact {
            numerator: self.numerator.times(&other.numerator),
            denominator: self.denominator.times(&other.denominator),
        }
    }

    /// Return the nearest whole number, halves rounded up.
    pub fn half_up(&self) -> u128 {
        let twice = self.numerator.plus(&self.numerator).plus(&self.denominator);
        twice.divided(&self.denominator.plus(&self.denominator)).0
    }

    /// Whether the fraction is a whole number.
    pub fn is_whole(&self) -> bool {
        match (self.numerator.small(), self.denominator.small()) {
            (Some(a), Some(b)) => a % b == 0,
            _ => self.numerator.divided(&self.denominator).1.is_zero(),
        }
    }

    /// Return the nearest `f64`, ties to even.
    pub fn to_f64(self) -> f64 {
        if self.numerator.is_zero() {
            return 0.0;
        }
        // the quotient has 55 or 56 bits, and its last bit represents all further ones, so it is rounded only once, to
        // 53
        let shift = 55 + self.denominator.bits() as i32 - self.numerator.bits() as i32;
        let (numerator, denominator) = match usize::try_from(shift) {
            Ok(up) => (self.numerator.shifted(up), self.denominator),
            Err(_) => (self.numerator, self.denominator.shifted(shift.unsigned_abs() as usize)),
        };
        let (quotient, rest) = numerator.divided(&denominator);
        libm::scalbn((quotient as u64 | !rest.is_zero() as u64) as f64, -shift)
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Exact {}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> Ordering {
        self.numerator.times(&other.denominator).cmp(&other.numerator.times(&self.denominator))
    }
}
