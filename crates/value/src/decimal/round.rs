//! Rounding: an exact result, however wide, becomes at most 34 digits in the exponent range here.

use super::u256::{U256, pow10};
use super::{DIGITS_MAX, Decimal128, EXPONENT_MAX, EXPONENT_MIN};
use std::cmp::Ordering;

/// Which neighbour an inexact result takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The nearer one, of two equally near the even one. What arithmetic does.
    HalfEven,
    /// Drops digits. What `$trunc` does, and `$toDecimal` of a string.
    TowardZero,
    /// Toward negative infinity, as `$floor`.
    Floor,
    /// Toward positive infinity, as `$ceil`.
    Ceiling,
}

/// An unrounded result: `(coefficient + something below one if sticky) * 10^exponent`.
///
/// With `sticky` the coefficient must have more than 34 digits, so that a digit decides.
#[derive(Clone, Copy)]
pub(super) struct Exact {
    pub(super) negative: bool,
    pub(super) coefficient: U256,
    pub(super) exponent: i32,
    pub(super) sticky: bool,
}

/// A rounded result, and what IEEE 754 would flag.
#[derive(Clone, Copy)]
pub(super) struct Rounded {
    pub(super) value: Decimal128,
    pub(super) overflow: bool,
    /// The result is below the normal range and lost digits.
    pub(super) underflow: bool,
}

impl Exact {
    pub(super) fn new(negative: bool, coefficient: U256, exponent: i32) -> Self {
        Exact { negative, coefficient, exponent, sticky: false }
    }

    /// Rounds half to even.
    pub(super) fn round(self) -> Decimal128 {
        self.round_to(Rounding::HalfEven).value
    }

    pub(super) fn round_to(self, rounding: Rounding) -> Rounded {
        let digits = self.coefficient.digits();
        let excess = i64::from(digits) - i64::from(DIGITS_MAX);
        let below = i64::from(EXPONENT_MIN) - i64::from(self.exponent);
        let drop = excess.max(below).max(0);
        let (mut coefficient, inexact) = self.without_digits(drop, rounding);
        let mut exponent = i64::from(self.exponent) + drop;
        if coefficient == pow10(DIGITS_MAX) {
            coefficient = pow10(DIGITS_MAX - 1);
            exponent += 1;
        }
        let max = i64::from(EXPONENT_MAX);
        if exponent > max {
            if coefficient == 0 {
                exponent = max;
            } else {
                let room = i64::from(DIGITS_MAX) - i64::from(super::u256::digits(coefficient));
                if exponent - max > room {
                    return self.overflowed(rounding);
                }
                coefficient *= pow10((exponent - max) as u32);
                exponent = max;
            }
        }
        // Tiny is judged on the exact value: its leading digit lies below 10^-6143.
        let leading = i64::from(self.exponent) + i64::from(digits) - 1;
        let tiny = leading < i64::from(EXPONENT_MIN) + i64::from(DIGITS_MAX) - 1;
        Rounded {
            value: Decimal128::finite(self.negative, coefficient, exponent as i32),
            overflow: false,
            underflow: inexact && tiny,
        }
    }

    /// The coefficient without its last `drop` digits, rounded, and whether that changed the value.
    pub(super) fn without_digits(self, drop: i64, rounding: Rounding) -> (u128, bool) {
        let mut value = self.coefficient;
        let mut sticky = self.sticky;
        let mut left = drop;
        // All but the last digits to go only matter as "something nonzero was there".
        while left > 38 && !value.is_zero() {
            let step = (left - 38).min(38);
            let (quotient, remainder) = value.div_rem(pow10(step as u32));
            value = quotient;
            sticky |= remainder != 0;
            left -= step;
        }
        let divisor = pow10(left.min(38) as u32);
        let (quotient, remainder) = if left == 0 { (value, 0) } else { value.div_rem(divisor) };
        let kept = quotient.lo;
        let inexact = remainder != 0 || sticky;
        let up = inexact
            && match rounding {
                Rounding::TowardZero => false,
                Rounding::Floor => self.negative,
                Rounding::Ceiling => !self.negative,
                // With nothing dropped, what is sticky lies below half.
                Rounding::HalfEven => match remainder.cmp(&(divisor / 2)) {
                    _ if left == 0 => false,
                    Ordering::Less => false,
                    Ordering::Greater => true,
                    Ordering::Equal => sticky || kept % 2 == 1,
                },
            };
        (kept + u128::from(up), inexact)
    }

    fn overflowed(self, rounding: Rounding) -> Rounded {
        let away = match rounding {
            Rounding::HalfEven => true,
            Rounding::TowardZero => false,
            Rounding::Floor => self.negative,
            Rounding::Ceiling => !self.negative,
        };
        let magnitude = if away { Decimal128::INFINITY } else { Decimal128::MAX };
        Rounded { value: if self.negative { magnitude.negated() } else { magnitude }, overflow: true, underflow: false }
    }
}
