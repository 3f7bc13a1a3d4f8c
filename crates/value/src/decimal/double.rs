//! Decimals from and to doubles.
//!
//! MongoDB converts in two ways: to 15 significant digits where a double meets a decimal in
//! `$multiply`, `$divide`, `$subtract` or `$toDecimal` (0.1 is then meant as 0.1), and to 34 digits
//! where doubles are summed (`$add`, `$sum`, `$avg`).

use super::big::Big;
use super::round::{Exact, Rounding};
use super::u256::{U256, digits};
use super::{DIGITS_MAX, Decimal128, Parts};

/// Why a decimal has no double near enough for `$toDouble`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleError {
    Overflow,
    Underflow,
}

/// Significant digits that every double keeps through a decimal.
const DOUBLE_DIGITS: i32 = 15;

impl Decimal128 {
    /// The double at 15 significant digits, always all of them: `1.5` becomes `1.50000000000000`.
    pub fn from_f64(value: f64) -> Decimal128 {
        Decimal128::from_f64_digits(value, DOUBLE_DIGITS)
    }

    /// The double at so many significant digits (1 to 34), always all of them; a zero stays a plain zero.
    pub fn from_f64_digits(value: f64, count: i32) -> Decimal128 {
        let full = Decimal128::from_f64_full(value);
        let Parts::Finite { coefficient, exponent, .. } = full.parts() else {
            return full;
        };
        if coefficient == 0 {
            return full;
        }
        let leading = exponent + digits(coefficient) as i32 - 1;
        let target = leading + 1 - count;
        let rounded = full.quantize(target, Rounding::HalfEven);
        match rounded.parts() {
            // Nines rounded up to the next power of ten: one digit too many, and that one is zero.
            Parts::Finite { coefficient, .. } if digits(coefficient) as i32 > count => {
                full.quantize(target + 1, Rounding::HalfEven)
            }
            _ => rounded,
        }
    }

    /// The double at 34 significant digits, with no more of them than its exact value has.
    pub fn from_f64_full(value: f64) -> Decimal128 {
        Decimal128::from_f64_rounded(value, Rounding::HalfEven).0
    }

    /// As [`Decimal128::from_f64_full`] with any rounding, and whether digits were lost.
    pub(super) fn from_f64_rounded(value: f64, rounding: Rounding) -> (Decimal128, bool) {
        let negative = value.is_sign_negative();
        if value.is_nan() {
            return (Decimal128::NAN, false);
        }
        if value.is_infinite() {
            return (Decimal128::infinity(negative), false);
        }
        if value == 0.0 {
            return (Decimal128::finite(negative, 0, 0), false);
        }
        let bits = value.to_bits();
        let field = ((bits >> 52) & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (significand, power) = if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field - 1075) };
        let zeros = significand.trailing_zeros();
        let (significand, power) = (significand >> zeros, power + zeros as i32);
        let exact = if (0..=70).contains(&power) {
            Exact::new(negative, U256::from(u128::from(significand) << power), 0)
        } else {
            let (big, exponent) = if power >= 0 {
                (Big::shifted(significand, power.unsigned_abs()), 0)
            } else {
                (Big::times_pow5(significand, power.unsigned_abs()), power)
            };
            let (coefficient, rest, sticky) = big.leading_digits();
            Exact { negative, coefficient, exponent: exponent + rest as i32, sticky }
        };
        let drop = i64::from(exact.coefficient.digits()) - i64::from(DIGITS_MAX);
        let (_, inexact) = exact.without_digits(drop.max(0), rounding);
        (exact.round_to(rounding).value, inexact)
    }

    /// The nearest double, ties to even; infinite or zero beyond its range.
    pub fn to_f64(self) -> f64 {
        let magnitude = match self.parts() {
            Parts::NaN => return f64::NAN,
            Parts::Infinity { .. } => f64::INFINITY,
            Parts::Finite { coefficient: 0, .. } => 0.0,
            // Both are doubles exactly, so one correctly rounded operation suffices.
            Parts::Finite { coefficient, exponent, .. } if coefficient < 1 << 53 && (-22..=22).contains(&exponent) => {
                let scale = 10f64.powi(exponent.abs());
                if exponent < 0 { coefficient as f64 / scale } else { coefficient as f64 * scale }
            }
            Parts::Finite { coefficient, exponent, .. } => {
                format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
            }
        };
        if self.is_sign_negative() { -magnitude } else { magnitude }
    }

    /// As `$toDouble`: refuses finite values that overflow or fall below the normal doubles.
    pub fn to_f64_checked(self) -> Result<f64, DoubleError> {
        let value = self.to_f64();
        if value.is_infinite() && !self.is_infinite() {
            Err(DoubleError::Overflow)
        } else if self.is_finite() && !self.is_zero() && value.abs() < f64::MIN_POSITIVE {
            Err(DoubleError::Underflow)
        } else {
            Ok(value)
        }
    }
}
