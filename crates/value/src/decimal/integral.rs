//! Rounding to places: `$floor`, `$ceil`, `$trunc`, `$round` and the quantize under them.

use super::round::{Exact, Rounding};
use super::u256::{U256, digits, pow10};
use super::{COEFFICIENT_MAX, DIGITS_MAX, Decimal128, EXPONENT_MAX, EXPONENT_MIN, Parts};

impl Decimal128 {
    /// The value at exactly this exponent, rounded. NaN where that needs more than 34 digits, for an
    /// infinity, and for an exponent out of range.
    pub fn quantize(self, exponent: i32, rounding: Rounding) -> Decimal128 {
        let (negative, coefficient, own) = match self.parts() {
            Parts::NaN => return self.quieted(),
            Parts::Infinity { .. } => return Decimal128::NAN,
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
            return Decimal128::NAN;
        }
        if coefficient == 0 {
            return Decimal128::finite(negative, 0, exponent);
        }
        let drop = exponent - own;
        if drop <= 0 {
            let zeros = drop.unsigned_abs();
            if digits(coefficient) + zeros > DIGITS_MAX {
                return Decimal128::NAN;
            }
            return Decimal128::finite(negative, coefficient * pow10(zeros), exponent);
        }
        // Dropping a digit leaves at most 33, so that rounding up stays within the range.
        let exact = Exact::new(negative, U256::from(coefficient), own);
        let (kept, _) = exact.without_digits(i64::from(drop), rounding);
        debug_assert!(kept <= COEFFICIENT_MAX);
        Decimal128::finite(negative, kept, exponent)
    }

    /// `$floor`. As in MongoDB this is a quantize to exponent zero: an infinity, or a value whose
    /// integer needs more than 34 digits, gives NaN.
    pub fn floor(self) -> Decimal128 {
        self.quantize(0, Rounding::Floor)
    }

    /// `$ceil`, with the same limits as [`Decimal128::floor`].
    pub fn ceil(self) -> Decimal128 {
        self.quantize(0, Rounding::Ceiling)
    }

    /// `$round` to `places` after the point (before it if negative), half to even.
    pub fn round(self, places: i32) -> Decimal128 {
        self.to_places(places, Rounding::HalfEven)
    }

    /// `$trunc` to `places` after the point (before it if negative).
    pub fn trunc(self, places: i32) -> Decimal128 {
        self.to_places(places, Rounding::TowardZero)
    }

    /// Where 34 digits do not reach the place asked for, as many zeros follow as fit.
    fn to_places(self, places: i32, rounding: Rounding) -> Decimal128 {
        if self.is_infinite() {
            return Decimal128::infinity(self.is_sign_negative());
        }
        let exponent = places.saturating_neg();
        let quantized = self.quantize(exponent, rounding);
        if !quantized.is_nan() || self.is_nan() {
            return quantized;
        }
        self.padded()
    }

    /// The same number with as many digits as fit.
    pub(super) fn padded(self) -> Decimal128 {
        match self.parts() {
            Parts::Finite { negative, coefficient, exponent } if coefficient != 0 => {
                let room = (DIGITS_MAX - digits(coefficient)) as i32;
                let room = room.min(exponent - EXPONENT_MIN);
                let coefficient = coefficient * pow10(room as u32);
                Decimal128::finite(negative, coefficient, exponent - room)
            }
            _ => self,
        }
    }
}
