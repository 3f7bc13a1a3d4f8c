//! Decimal numbers as text: what `NumberDecimal("...")` and `$toDecimal` read, what `$toString` and
//! messages show.

use super::round::{Exact, Rounding};
use super::u256::U256;
use super::{Decimal128, Parts};
use std::fmt;
use std::str::FromStr;

/// Why a string is not a decimal. The texts are those that MongoDB puts into its own messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseDecimalError {
    Empty,
    Invalid,
    Overflow,
    Underflow,
}

impl fmt::Display for ParseDecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseDecimalError::Empty => "Empty string",
            ParseDecimalError::Invalid => "Failed to parse string to decimal",
            ParseDecimalError::Overflow => "Conversion from string to decimal would overflow",
            ParseDecimalError::Underflow => "Conversion from string to decimal would underflow",
        })
    }
}

impl std::error::Error for ParseDecimalError {}

impl FromStr for Decimal128 {
    type Err = ParseDecimalError;

    /// Reads a literal; digits beyond the 34th round half to even.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Decimal128::parse(text, Rounding::HalfEven)
    }
}

impl Decimal128 {
    /// Reads a number. `$toDecimal` wants [`Rounding::TowardZero`].
    pub fn parse(text: &str, rounding: Rounding) -> Result<Self, ParseDecimalError> {
        if text.is_empty() {
            return Err(ParseDecimalError::Empty);
        }
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Ok(Decimal128::infinity(negative));
        }
        if rest.eq_ignore_ascii_case(b"nan") {
            let nan = Decimal128::NAN;
            return Ok(if negative { nan.negated() } else { nan });
        }
        let number = scan(rest).ok_or(ParseDecimalError::Invalid)?;
        let rounded = Exact {
            negative,
            coefficient: U256::from(number.coefficient),
            exponent: number.exponent,
            sticky: number.sticky,
        }
        .round_to(rounding);
        if rounded.overflow {
            Err(ParseDecimalError::Overflow)
        } else if rounded.underflow {
            Err(ParseDecimalError::Underflow)
        } else {
            Ok(rounded.value)
        }
    }
}

struct Scanned {
    /// The first significant digits, two more than a decimal keeps.
    coefficient: u128,
    /// Whether a digit other than zero came after those.
    sticky: bool,
    exponent: i32,
}

/// Exponents are clamped here: far outside the range, and far from overflowing an `i32`.
const EXPONENT_CLAMP: i64 = 100_000_000;
const SCANNED_DIGITS: u32 = super::DIGITS_MAX + 2;

/// Reads `digits[.digits][e[sign]digits]` with at least one digit before the exponent.
fn scan(text: &[u8]) -> Option<Scanned> {
    let mut coefficient = 0u128;
    let mut kept = 0u32;
    let mut sticky = false;
    let mut exponent = 0i64;
    let mut point = false;
    let mut any = false;
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        match first {
            b'0'..=b'9' => {
                any = true;
                let digit = u128::from(first - b'0');
                if kept < SCANNED_DIGITS {
                    coefficient = coefficient * 10 + digit;
                    kept += u32::from(coefficient != 0);
                    exponent -= i64::from(point);
                } else {
                    sticky |= digit != 0;
                    exponent += i64::from(!point);
                }
            }
            b'.' if !point => point = true,
            _ => break,
        }
        rest = tail;
    }
    if !any {
        return None;
    }
    if let [b'e' | b'E', tail @ ..] = rest {
        let (negative, digits) = match tail {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() {
            return None;
        }
        let mut written = 0i64;
        for byte in digits {
            if !byte.is_ascii_digit() {
                return None;
            }
            written = (written * 10 + i64::from(byte - b'0')).min(1 << 40);
        }
        exponent += if negative { -written } else { written };
    } else if !rest.is_empty() {
        return None;
    }
    Some(Scanned { coefficient, sticky, exponent: exponent.clamp(-EXPONENT_CLAMP, EXPONENT_CLAMP) as i32 })
}

impl fmt::Display for Decimal128 {
    /// IEEE's to-scientific-string: plain while the exponent is not positive and the leading digit
    /// not below 10^-6, so that reading it back gives the same representation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::NaN => return f.pad("NaN"),
            Parts::Infinity { negative: false } => return f.pad("Infinity"),
            Parts::Infinity { negative: true } => return f.pad("-Infinity"),
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let digits = coefficient.to_string();
        let adjusted = exponent + digits.len() as i32 - 1;
        let mut out = String::with_capacity(digits.len() + 8);
        if negative {
            out.push('-');
        }
        if exponent > 0 || adjusted < -6 {
            let (first, tail) = digits.split_at(1);
            out.push_str(first);
            if !tail.is_empty() {
                out.push('.');
                out.push_str(tail);
            }
            out.push_str(&format!("E{adjusted:+}"));
        } else if exponent == 0 {
            out.push_str(&digits);
        } else {
            let places = exponent.unsigned_abs() as usize;
            if digits.len() > places {
                let (whole, fraction) = digits.split_at(digits.len() - places);
                out.push_str(whole);
                out.push('.');
                out.push_str(fraction);
            } else {
                out.push_str("0.");
                out.extend(std::iter::repeat_n('0', places - digits.len()));
                out.push_str(&digits);
            }
        }
        f.pad(&out)
    }
}

impl fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NumberDecimal(\"{self}\")")
    }
}
