//! `$exp`, `$ln`, `$log10`, `$log` and `$pow`, rounded from some 90 digits.
//!
//! MongoDB computes these in binary floating point and is often a unit off in the 34th digit; here the
//! digits are right. Which results come padded with zeros is as in MongoDB.

use super::fixed::{Fixed, add_signed};
use super::round::{Exact, Rounding};
use super::u256::{U256, digits, pow10};
use super::{Decimal128, EXPONENT_MIN, Parts};

/// Beyond these, e^x is infinite or zero: ln(10^6145) and ln(10^-6177) with room to spare.
const EXP_LIMIT: u128 = 15_000;
/// A power of this many digits still fits 256 bits and is computed exactly.
const EXACT_DIGITS_MAX: u128 = 76;

impl Decimal128 {
    /// `e^self`.
    pub fn exp(self) -> Decimal128 {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::NaN => return self.quieted(),
            Parts::Infinity { negative: false } => return self,
            Parts::Infinity { negative: true } => return Decimal128::ZERO,
            Parts::Finite { coefficient: 0, .. } => return Decimal128::ONE,
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let leading = exponent + digits(coefficient) as i32 - 1;
        if leading > 5 {
            return exp_signed((Fixed::from_u128(EXP_LIMIT), negative)).round();
        }
        let result = exp_signed((Fixed::from_decimal(coefficient, exponent), negative)).round();
        // Arguments this small give a one that is not padded with zeros.
        if leading < -34 && result == Decimal128::ONE { Decimal128::ONE } else { result }
    }

    /// The natural logarithm; NaN below zero, `-Infinity` of zero. (`$ln` refuses both before.)
    pub fn ln(self) -> Decimal128 {
        match self.logarithm_special() {
            Some(special) => special,
            None if self == Decimal128::ONE => Decimal128::ZERO,
            None => round(ln_signed(self)),
        }
    }

    /// The logarithm to base ten, a plain integer for powers of ten.
    pub fn log10(self) -> Decimal128 {
        if let Some(special) = self.logarithm_special() {
            return special;
        }
        let (mantissa, power) = self.scientific();
        if mantissa == Fixed::ONE {
            return Decimal128::from_i32(power);
        }
        let (ln, negative) = mantissa.ln();
        round(add_signed((ln.mul(Fixed::INV_LN_10), negative), integer(power)))
    }

    /// The logarithm to any base but one, a plain integer where the base's power is the value.
    pub fn log(self, base: Decimal128) -> Decimal128 {
        if base.is_nan() {
            return base.quieted();
        }
        if base == Decimal128::ONE || base <= Decimal128::ZERO {
            return Decimal128::NAN;
        }
        if let Some(special) = self.logarithm_special() {
            let falling = base < Decimal128::ONE;
            return if falling && special.is_infinite() { special.negated() } else { special };
        }
        if base.is_infinite() {
            return Decimal128::ZERO;
        }
        let (of_value, value_negative) = ln_signed(self);
        let (of_base, base_negative) = ln_signed(base);
        let quotient = of_value.mul(of_base.inverse());
        let negative = value_negative != base_negative;
        // Sixty digits away from an integer is as good as one.
        let nudged = quotient.plus(Fixed::from_decimal(1, -60));
        if nudged.fraction() < Fixed::from_decimal(2, -60) {
            return Decimal128::finite(negative && nudged.whole() != 0, nudged.whole(), 0);
        }
        round((quotient, negative))
    }

    /// `self` to the power `exponent`, padded to 34 digits as MongoDB does; a zero is `0E-6176`.
    pub fn pow(self, exponent: Decimal128) -> Decimal128 {
        let result = self.pow_unpadded(exponent);
        if result.is_zero() {
            return Decimal128::finite(false, 0, EXPONENT_MIN);
        }
        result.padded()
    }

    fn pow_unpadded(self, exponent: Decimal128) -> Decimal128 {
        if exponent.is_zero() || self == Decimal128::ONE {
            return Decimal128::ONE;
        }
        if self.is_nan() {
            return self.quieted();
        }
        if exponent.is_nan() {
            return exponent.quieted();
        }
        let rising = !exponent.is_sign_negative();
        if exponent.is_infinite() {
            return match self.abs().cmp_total(Decimal128::ONE) {
                std::cmp::Ordering::Equal => Decimal128::ONE,
                order if order.is_gt() == rising => Decimal128::INFINITY,
                _ => Decimal128::ZERO,
            };
        }
        let parity = exponent.parity();
        let negative = self.is_sign_negative() && parity == Some(true);
        if self.is_infinite() || self.is_zero() {
            let large = self.is_infinite() == rising;
            return if large { Decimal128::infinity(negative) } else { Decimal128::ZERO };
        }
        if self.is_sign_negative() && parity.is_none() {
            return Decimal128::NAN;
        }
        if let Some(exact) = self.exact_power(exponent, negative) {
            return exact.round();
        }
        if exponent == Decimal128::finite(false, 5, -1) {
            return self.sqrt();
        }
        let (ln, ln_negative) = ln_signed(self.abs());
        let grows = ln_negative != exponent.is_sign_negative();
        let (coefficient, scale) = exponent.coefficient_and_exponent();
        let leading = scale + digits(coefficient) as i32;
        // The product fits if the exponent has no more digits than the logarithm has leading zeros.
        let product =
            if leading > 40 { Fixed::from_u128(EXP_LIMIT) } else { Fixed::from_decimal(coefficient, scale).mul(ln) };
        let mut result = exp_signed((product, grows));
        result.negative = negative;
        result.round()
    }

    /// What a logarithm gives for arguments that have no other.
    fn logarithm_special(self) -> Option<Decimal128> {
        if self.is_nan() {
            Some(self.quieted())
        } else if self.is_zero() {
            Some(Decimal128::NEG_INFINITY)
        } else if self.is_sign_negative() {
            Some(Decimal128::NAN)
        } else if self.is_infinite() {
            Some(self)
        } else {
            None
        }
    }

    /// A positive finite value as `m * 10^n` with `m` in `[1, 10)`.
    fn scientific(self) -> (Fixed, i32) {
        let (coefficient, exponent) = self.coefficient_and_exponent();
        let after = digits(coefficient) as i32 - 1;
        // A power of ten must give exactly one, which division by ten in binary would not.
        if coefficient == pow10(after.unsigned_abs()) {
            return (Fixed::ONE, exponent + after);
        }
        (Fixed::from_decimal(coefficient, -after), exponent + after)
    }

    /// Whether an integer is odd; `None` for what is no integer.
    fn parity(self) -> Option<bool> {
        let (coefficient, exponent) = self.normalized().coefficient_and_exponent();
        match exponent {
            ..0 => None,
            0 => Some(coefficient % 2 == 1),
            _ => Some(false),
        }
    }

    /// A power by a small positive integer without rounding, where it fits: only such a result can
    /// lie halfway between two decimals.
    fn exact_power(self, exponent: Decimal128, negative: bool) -> Option<Exact> {
        let n = u32::try_from(exponent.to_i64_exact()?).ok()?;
        let (coefficient, scale) = self.normalized().coefficient_and_exponent();
        if u128::from(n) * u128::from(digits(coefficient)) > EXACT_DIGITS_MAX {
            return None;
        }
        let mut power = U256::from(1);
        for _ in 0..n {
            let low = U256::product(power.lo, coefficient);
            power = U256 { hi: low.hi + power.hi * coefficient, lo: low.lo };
        }
        Some(Exact::new(negative, power, scale * n as i32))
    }
}

/// The natural logarithm of a positive finite decimal.
fn ln_signed(value: Decimal128) -> (Fixed, bool) {
    let (mantissa, power) = value.scientific();
    let tens = Fixed::LN_10.times(u64::from(power.unsigned_abs()));
    if mantissa == Fixed::ONE {
        return (tens, power < 0);
    }
    add_signed(mantissa.ln(), (tens, power < 0))
}

fn integer(n: i32) -> (Fixed, bool) {
    (Fixed::from_u128(u128::from(n.unsigned_abs())), n < 0)
}

fn round((value, negative): (Fixed, bool)) -> Decimal128 {
    value.to_exact(negative, 0).round_to(Rounding::HalfEven).value
}

/// `e^x` as digits and a power of ten; far arguments are cut to where the result is out of range.
fn exp_signed((value, negative): (Fixed, bool)) -> Exact {
    let limit = Fixed::from_u128(EXP_LIMIT);
    let value = value.min(limit);
    let mut power = value.mul(Fixed::INV_LN_10).whole() as i32;
    let (mut rest, below) = value.minus(Fixed::LN_10.times(u64::from(power.unsigned_abs())));
    // The quotient, cut off below, is at most one too small and never too large.
    debug_assert!(!below);
    if negative {
        rest = Fixed::LN_10.minus(rest).0;
        power = -power - 1;
    }
    rest.exp().to_exact(false, power)
}
