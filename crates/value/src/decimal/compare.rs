//! The order of numbers, exact across decimals, integers and doubles: no operand is rounded first.

use super::round::Rounding;
use super::u256::{digits, pow10};
use super::{Decimal128, Parts};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

impl Decimal128 {
    /// MongoDB's order: NaN equals NaN and comes before everything, zeros are equal, then by number.
    pub fn cmp_total(self, other: Decimal128) -> Ordering {
        let (a, b) = match (self.is_nan(), other.is_nan()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => (self.signum(), other.signum()),
        };
        match a.cmp(&b) {
            Ordering::Equal if a > 0 => cmp_magnitude(self, other),
            Ordering::Equal if a < 0 => cmp_magnitude(other, self),
            order => order,
        }
    }

    /// Against an integer.
    pub fn cmp_i64(self, other: i64) -> Ordering {
        self.cmp_total(Decimal128::from_i64(other))
    }

    /// Against a double by its exact binary value, which may need more digits than a decimal has.
    pub fn cmp_f64(self, other: f64) -> Ordering {
        // Cut off toward zero, so that a lost digit means "the double lies further out", and no
        // decimal of 34 digits lies in between.
        let (cut, inexact) = Decimal128::from_f64_rounded(other, Rounding::TowardZero);
        match self.cmp_total(cut) {
            Ordering::Equal if inexact && other > 0.0 => Ordering::Less,
            Ordering::Equal if inexact => Ordering::Greater,
            order => order,
        }
    }

    /// -1, 0 or 1; not for NaN.
    fn signum(self) -> i8 {
        match (self.is_zero(), self.is_sign_negative()) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// The same number without trailing zeros, `+0` for zeros and one NaN: equal numbers have equal
    /// bits. Coefficient 7, exponent 2 for `700.00`.
    pub fn normalized(self) -> Decimal128 {
        match self.parts() {
            Parts::NaN => Decimal128::NAN,
            Parts::Infinity { negative } => Decimal128::infinity(negative),
            Parts::Finite { coefficient: 0, .. } => Decimal128::ZERO,
            Parts::Finite { negative, mut coefficient, mut exponent } => {
                while coefficient.is_multiple_of(10) {
                    coefficient /= 10;
                    exponent += 1;
                }
                // Above the largest exponent the zeros have to stay.
                let excess = (exponent - super::EXPONENT_MAX).max(0);
                Decimal128::finite(negative, coefficient * pow10(excess.unsigned_abs()), exponent - excess)
            }
        }
    }
}

/// Compares absolute values of two that are neither zero nor NaN.
fn cmp_magnitude(a: Decimal128, b: Decimal128) -> Ordering {
    let (
        Parts::Finite { coefficient: a_coefficient, exponent: a_exponent, .. },
        Parts::Finite { coefficient: b_coefficient, exponent: b_exponent, .. },
    ) = (a.parts(), b.parts())
    else {
        return a.is_infinite().cmp(&b.is_infinite());
    };
    let leading = |coefficient, exponent| exponent + digits(coefficient) as i32;
    let order = leading(a_coefficient, a_exponent).cmp(&leading(b_coefficient, b_exponent));
    // With the same leading position, aligning adds at most 33 zeros within 34 digits.
    order.then_with(|| {
        let low = a_exponent.min(b_exponent);
        let a = a_coefficient * pow10((a_exponent - low).unsigned_abs());
        let b = b_coefficient * pow10((b_exponent - low).unsigned_abs());
        a.cmp(&b)
    })
}

impl PartialEq for Decimal128 {
    fn eq(&self, other: &Self) -> bool {
        self.cmp_total(*other).is_eq()
    }
}

impl Eq for Decimal128 {}

impl PartialOrd for Decimal128 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal128 {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_total(*other)
    }
}

impl Hash for Decimal128 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.normalized().to_bits().hash(state);
    }
}
