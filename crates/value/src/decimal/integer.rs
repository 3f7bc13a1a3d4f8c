//! Decimals from and to integers.

use super::round::{Exact, Rounding};
use super::u256::U256;
use super::{Decimal128, Parts};

/// Why a decimal is not an integer of the type asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerError {
    NaN,
    Infinite,
    OutOfRange,
}

impl From<i32> for Decimal128 {
    fn from(value: i32) -> Self {
        Decimal128::from_i64(i64::from(value))
    }
}

impl From<i64> for Decimal128 {
    fn from(value: i64) -> Self {
        Decimal128::from_i64(value)
    }
}

impl Decimal128 {
    pub const fn from_i64(value: i64) -> Self {
        Decimal128::finite(value < 0, value.unsigned_abs() as u128, 0)
    }

    pub const fn from_i32(value: i32) -> Self {
        Decimal128::from_i64(value as i64)
    }

    /// The integer nearest in the sense of `rounding`. `$toLong` truncates.
    pub fn to_i64(self, rounding: Rounding) -> Result<i64, IntegerError> {
        let (negative, magnitude) = match self.parts() {
            Parts::NaN => return Err(IntegerError::NaN),
            Parts::Infinity { .. } => return Err(IntegerError::Infinite),
            Parts::Finite { negative, coefficient, exponent } => {
                let magnitude = if exponent <= 0 {
                    Exact::new(negative, U256::from(coefficient), exponent)
                        .without_digits(-i64::from(exponent), rounding)
                        .0
                } else if coefficient == 0 {
                    0
                } else {
                    10u128
                        .checked_pow(exponent.unsigned_abs())
                        .and_then(|scale| coefficient.checked_mul(scale))
                        .ok_or(IntegerError::OutOfRange)?
                };
                (negative, magnitude)
            }
        };
        let magnitude = i128::try_from(magnitude).map_err(|_| IntegerError::OutOfRange)?;
        i64::try_from(if negative { -magnitude } else { magnitude }).map_err(|_| IntegerError::OutOfRange)
    }

    /// As [`Decimal128::to_i64`], in 32 bits.
    pub fn to_i32(self, rounding: Rounding) -> Result<i32, IntegerError> {
        i32::try_from(self.to_i64(rounding)?).map_err(|_| IntegerError::OutOfRange)
    }

    /// Truncated and clamped to the range of an `i64`; NaN is 0.
    pub fn to_i64_clamped(self) -> i64 {
        match self.to_i64(Rounding::TowardZero) {
            Ok(value) => value,
            Err(IntegerError::NaN) => 0,
            Err(_) if self.is_sign_negative() => i64::MIN,
            Err(_) => i64::MAX,
        }
    }

    /// The value as an `i64` if it is one exactly.
    pub fn to_i64_exact(self) -> Option<i64> {
        let value = self.to_i64(Rounding::TowardZero).ok()?;
        (Decimal128::from_i64(value) == self).then_some(value)
    }
}
