//! Numbers of all four types in one order-preserving encoding.
//!
//! A class byte, then for finite numbers the magnitude: the largest double not above it, and, if that is not the
//! number itself (a long past 2^53, most decimals), the number's decimal digits. Two numbers with the same double
//! part are then ordered by their digits, and the double itself sorts first. Negative magnitudes are inverted.

use std::cmp::Ordering;

use crate::decimal::Decimal128;
use crate::number::Number;

const NAN: u8 = 1;
const NEG_INFINITY: u8 = 2;
const NEGATIVE: u8 = 3;
const ZERO: u8 = 4;
const POSITIVE: u8 = 5;
const INFINITY: u8 = 6;

const EXACT: u8 = 0;
const DIGITS: u8 = 1;

/// Longs up to here are doubles exactly.
const EXACT_MAX: u64 = 1 << 53;

#[inline]
pub(super) fn encode(out: &mut Vec<u8>, n: Number) {
    // Nearly all numbers are a double, whatever their type, and need no comparison with one.
    let double = match n {
        Number::Int32(x) => f64::from(x),
        Number::Int64(x) if x.unsigned_abs() <= EXACT_MAX => x as f64,
        Number::Double(x) if x.is_finite() => x,
        _ => return encode_any(out, n),
    };
    if double == 0.0 {
        return out.push(ZERO);
    }
    let bits = double.abs().to_bits();
    let (class, bits, exact) = if double < 0.0 { (NEGATIVE, !bits, !EXACT) } else { (POSITIVE, bits, EXACT) };
    let mut key = [class, 0, 0, 0, 0, 0, 0, 0, 0, exact];
    key[1..9].copy_from_slice(&bits.to_be_bytes());
    out.extend_from_slice(&key);
}

fn encode_any(out: &mut Vec<u8>, n: Number) {
    if n.is_nan() {
        return out.push(NAN);
    }
    let sign = n.compare(Number::Int32(0));
    if sign == Ordering::Equal {
        return out.push(ZERO);
    }
    let negative = sign == Ordering::Less;
    let floor = floor_magnitude(n);
    if floor.is_infinite() {
        return out.push(if negative { NEG_INFINITY } else { INFINITY });
    }
    out.push(if negative { NEGATIVE } else { POSITIVE });
    let start = out.len();
    out.extend_from_slice(&floor.to_bits().to_be_bytes());
    let signed_floor = Number::Double(if negative { -floor } else { floor });
    if n.compare(signed_floor) == Ordering::Equal {
        out.push(EXACT);
    } else {
        out.push(DIGITS);
        digits(out, n.to_decimal());
    }
    if negative {
        super::invert(&mut out[start..]);
    }
}

/// The largest double not above the magnitude of `n`.
fn floor_magnitude(n: Number) -> f64 {
    let near = n.to_f64().abs();
    match n {
        Number::Double(_) => near,
        Number::Decimal(d) if d.is_infinite() => f64::INFINITY,
        _ => {
            let signed = if n.compare(Number::Int32(0)) == Ordering::Less { -near } else { near };
            let beyond = match n.compare(Number::Double(signed)) {
                Ordering::Equal => false,
                // The nearest double lies farther from zero than the number.
                Ordering::Less => signed > 0.0,
                Ordering::Greater => signed < 0.0,
            };
            if beyond { f64::from_bits(near.to_bits() - 1) } else { near }
        }
    }
}

/// Exponent and digits of a decimal's magnitude, trailing zeros dropped, so that equal numbers have equal digits.
fn digits(out: &mut Vec<u8>, d: Decimal128) {
    let (coefficient, exponent) = d.coefficient_and_exponent();
    let text = coefficient.to_string();
    let scientific = exponent + text.len() as i32;
    out.extend_from_slice(&((scientific + 0x8000) as u16).to_be_bytes());
    let significant = text.trim_end_matches('0').as_bytes();
    for pair in significant.chunks(2) {
        let low = pair.get(1).map_or(0, |d| d - b'0');
        out.push((pair[0] - b'0') * 10 + low + 1);
    }
    out.push(0);
}

/// Reads a number and how many bytes it took: an int or long where whole, else a double. Exact unless the number
/// was a decimal that no double is equal to (its digits are then in the types).
pub(super) fn decode(key: &[u8], mask: u8) -> Option<(Number, usize)> {
    let class = key.first()? ^ mask;
    let special = |x| Some((Number::Double(x), 1));
    match class {
        NAN => special(f64::NAN),
        NEG_INFINITY => special(f64::NEG_INFINITY),
        ZERO => Some((Number::Int32(0), 1)),
        INFINITY => special(f64::INFINITY),
        NEGATIVE | POSITIVE => {
            let negative = class == NEGATIVE;
            let mask = if negative { !mask } else { mask };
            let bits: Vec<u8> = key.get(1..9)?.iter().map(|b| b ^ mask).collect();
            let floor = f64::from_bits(u64::from_be_bytes(bits.try_into().ok()?));
            let signed = if negative { -floor } else { floor };
            if key.get(9)? ^ mask == EXACT {
                let n = Number::Double(signed);
                return Some((n.as_exact_i64().map_or(n, Number::narrowest), 10));
            }
            let mut at = 10 + 2;
            let scientific = i32::from(u16::from_be_bytes([key.get(10)? ^ mask, key.get(11)? ^ mask])) - 0x8000;
            let mut whole: i128 = 0;
            let mut count = 0;
            loop {
                let b = key.get(at)? ^ mask;
                at += 1;
                if b == 0 {
                    break;
                }
                if count < 20 {
                    whole = whole * 100 + i128::from(b - 1);
                }
                count += 2;
            }
            // Digits mean a long past 2^53 here, or a decimal whose own digits stand in the types.
            if count <= 20 && scientific <= 19 && scientific > 0 {
                let scaled = match scientific - count {
                    up @ 0.. => whole.checked_mul(10i128.checked_pow(up as u32)?),
                    down => Some(whole / 10i128.checked_pow(down.unsigned_abs())?),
                };
                let value = scaled.map(|v| if negative { -v } else { v }).and_then(|v| i64::try_from(v).ok());
                if let Some(v) = value {
                    return Some((Number::Int64(v), at));
                }
            }
            Some((Number::Double(signed), at))
        }
        _ => None,
    }
}

/// Length of the encoded number at the start of `key`.
pub(super) fn encoded_len(key: &[u8], mask: u8) -> Option<usize> {
    let class = key.first()? ^ mask;
    if class != NEGATIVE && class != POSITIVE {
        return Some(1);
    }
    let mask = if class == NEGATIVE { !mask } else { mask };
    if key.get(9)? ^ mask == EXACT {
        return Some(10);
    }
    // Two bytes of exponent, then digits up to a zero.
    let digits = key.get(12..)?.iter().position(|b| b ^ mask == 0)?;
    Some(12 + digits + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are stored: the short way must write what the long one does.
    #[test]
    fn the_short_way_writes_the_same() {
        let whole = [0, 1, -1, 7, -300, i64::from(i32::MAX), i64::from(i32::MIN), 1 << 53, -(1 << 53), (1 << 53) + 1];
        let whole = whole.into_iter().chain([i64::MAX, i64::MIN, 1 << 62]);
        let doubles = [0.0, -0.0, 0.1, -2.5, 1e300, -5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let numbers = whole
            .flat_map(|x| [Number::Int64(x), Number::narrowest(x), Number::Decimal(Decimal128::from_i64(x))])
            .chain(doubles.map(Number::Double));
        for number in numbers {
            let (mut short, mut long) = (Vec::new(), Vec::new());
            encode(&mut short, number);
            encode_any(&mut long, number);
            assert_eq!(short, long, "{number:?}");
        }
    }
}
