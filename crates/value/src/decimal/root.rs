//! Square root, correctly rounded.

use super::arithmetic::without_trailing_zeros;
use super::round::Exact;
use super::u256::{U256, digits, isqrt};
use super::{Decimal128, Parts};

impl Decimal128 {
    /// NaN below zero; `-0` stays. (`$sqrt` refuses negative arguments before.)
    pub fn sqrt(self) -> Decimal128 {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::NaN => return self.quieted(),
            Parts::Infinity { negative: false } => return self,
            Parts::Infinity { negative: true } => return Decimal128::NAN,
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let preferred = exponent.div_euclid(2);
        if coefficient == 0 {
            return Decimal128::finite(negative, 0, preferred);
        }
        if negative {
            return Decimal128::NAN;
        }
        // 71 or 72 digits under the root give 36 in it; the exponent must be even to halve.
        let mut shift = 71 - digits(coefficient);
        if (exponent - shift as i32) % 2 != 0 {
            shift += 1;
        }
        let (root, perfect) = isqrt(U256::from(coefficient).scaled(shift));
        let mut exact = Exact {
            negative: false,
            coefficient: U256::from(root),
            exponent: (exponent - shift as i32) / 2,
            sticky: !perfect,
        };
        if perfect {
            exact = without_trailing_zeros(exact, preferred);
        }
        exact.round()
    }
}
