//! The four operations and remainder, rounded half to even, with IEEE's preferred exponents.

use super::round::Exact;
use super::u256::{U256, digits, pow10};
use super::{DIGITS_MAX, Decimal128, EXPONENT_MIN, Parts};
use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Rem, Sub};

/// A finite operand.
#[derive(Clone, Copy)]
struct Finite {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

/// The pairs of operands that the operations tell apart once NaN is out of the way.
enum Pair {
    Finite(Finite, Finite),
    /// Left infinite only, with both signs.
    InfiniteLeft(bool, Finite),
    InfiniteRight(Finite, bool),
    Infinite(bool, bool),
    /// One is NaN: the result.
    NaN(Decimal128),
}

fn pair(a: Decimal128, b: Decimal128) -> Pair {
    let finite = |negative, coefficient, exponent| Finite { negative, coefficient, exponent };
    match (a.parts(), b.parts()) {
        (Parts::NaN, _) => Pair::NaN(a.quieted()),
        (_, Parts::NaN) => Pair::NaN(b.quieted()),
        (Parts::Infinity { negative: a }, Parts::Infinity { negative: b }) => Pair::Infinite(a, b),
        (Parts::Infinity { negative: a }, Parts::Finite { negative, coefficient, exponent }) => {
            Pair::InfiniteLeft(a, finite(negative, coefficient, exponent))
        }
        (Parts::Finite { negative, coefficient, exponent }, Parts::Infinity { negative: b }) => {
            Pair::InfiniteRight(finite(negative, coefficient, exponent), b)
        }
        (
            Parts::Finite { negative: a_negative, coefficient: a_coefficient, exponent: a_exponent },
            Parts::Finite { negative: b_negative, coefficient: b_coefficient, exponent: b_exponent },
        ) => Pair::Finite(finite(a_negative, a_coefficient, a_exponent), finite(b_negative, b_coefficient, b_exponent)),
    }
}

// Methods of the same names as the operators, so that they can be passed as functions without an import.
#[allow(clippy::should_implement_trait)]
impl Decimal128 {
    /// The sum. Zeros of opposite signs sum to `+0`.
    pub fn add(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::NaN(nan) => nan,
            Pair::Infinite(a, b) if a != b => Decimal128::NAN,
            Pair::Infinite(a, _) | Pair::InfiniteLeft(a, _) => Decimal128::infinity(a),
            Pair::InfiniteRight(_, b) => Decimal128::infinity(b),
            Pair::Finite(a, b) => add_finite(a, b),
        }
    }
}

#[allow(clippy::should_implement_trait)]
impl Decimal128 {
    /// The difference.
    pub fn sub(self, other: Decimal128) -> Decimal128 {
        // A NaN passes through with the sign it came with.
        if other.is_nan() {
            return self.add(other);
        }
        self.add(other.negated())
    }
}

fn add_finite(a: Finite, b: Finite) -> Decimal128 {
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    if high.coefficient == 0 {
        if low.coefficient == 0 {
            let negative = high.negative && low.negative;
            return Decimal128::finite(negative, 0, low.exponent);
        }
        return Decimal128::finite(low.negative, low.coefficient, low.exponent);
    }
    // Bring the exponents together: first inside the 34 digits, then in 256 bits.
    let distance = (high.exponent - low.exponent) as u32;
    let room = (DIGITS_MAX - digits(high.coefficient)).min(distance);
    let coefficient = high.coefficient * pow10(room);
    let exponent = high.exponent - room as i32;
    let distance = distance - room;
    if low.coefficient == 0 {
        return Decimal128::finite(high.negative, coefficient, exponent);
    }
    // 34 + 42 digits are below 2^256.
    if distance <= 42 {
        let high_value = U256::from(coefficient).scaled(distance);
        let low_value = U256::from(low.coefficient);
        if high.negative == low.negative {
            return Exact::new(high.negative, high_value.plus(low_value), low.exponent).round();
        }
        let (negative, difference) = match high_value.cmp(&low_value) {
            Ordering::Greater => (high.negative, high_value.minus(low_value)),
            Ordering::Less => (low.negative, low_value.minus(high_value)),
            Ordering::Equal => (false, U256::ZERO),
        };
        return Exact::new(negative, difference, low.exponent).round();
    }
    // The smaller one is far below the last digit: it can only break a tie.
    let coefficient = U256::from(coefficient * 1000);
    Exact {
        negative: high.negative,
        coefficient: if high.negative == low.negative { coefficient } else { coefficient.minus(U256::from(1)) },
        exponent: exponent - 3,
        sticky: true,
    }
    .round()
}

#[allow(clippy::should_implement_trait)]
impl Decimal128 {
    /// The product.
    pub fn mul(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::NaN(nan) => nan,
            Pair::Infinite(a, b) => Decimal128::infinity(a != b),
            Pair::InfiniteLeft(infinite, finite) | Pair::InfiniteRight(finite, infinite) => {
                if finite.coefficient == 0 {
                    Decimal128::NAN
                } else {
                    Decimal128::infinity(infinite != finite.negative)
                }
            }
            Pair::Finite(a, b) => Exact::new(
                a.negative != b.negative,
                U256::product(a.coefficient, b.coefficient),
                a.exponent + b.exponent,
            )
            .round(),
        }
    }
}

#[allow(clippy::should_implement_trait)]
impl Decimal128 {
    /// IEEE division: by zero it gives an infinity or NaN. (`$divide` refuses zero before.)
    pub fn div(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::NaN(nan) => nan,
            Pair::Infinite(..) => Decimal128::NAN,
            Pair::InfiniteLeft(a, b) => Decimal128::infinity(a != b.negative),
            Pair::InfiniteRight(a, b) => Decimal128::finite(a.negative != b, 0, EXPONENT_MIN),
            Pair::Finite(a, b) => div_finite(a, b),
        }
    }
}

fn div_finite(a: Finite, b: Finite) -> Decimal128 {
    let negative = a.negative != b.negative;
    let preferred = a.exponent - b.exponent;
    if b.coefficient == 0 {
        return if a.coefficient == 0 { Decimal128::NAN } else { Decimal128::infinity(negative) };
    }
    if a.coefficient == 0 {
        return Exact::new(negative, U256::ZERO, preferred).round();
    }
    // So many zeros behind the dividend that the quotient has 36 or 37 digits.
    let shift = DIGITS_MAX + 2 + digits(b.coefficient) - digits(a.coefficient);
    let (quotient, remainder) = U256::from(a.coefficient).scaled(shift).div_rem(b.coefficient);
    let mut exact =
        Exact { negative, coefficient: quotient, exponent: preferred - shift as i32, sticky: remainder != 0 };
    if remainder == 0 {
        exact = without_trailing_zeros(exact, preferred);
    }
    exact.round()
}

/// An exact quotient or root as close to its preferred exponent as its digits allow.
pub(super) fn without_trailing_zeros(mut exact: Exact, preferred: i32) -> Exact {
    let mut coefficient = exact.coefficient.lo;
    while exact.exponent < preferred && coefficient != 0 && coefficient.is_multiple_of(10) {
        coefficient /= 10;
        exact.exponent += 1;
    }
    exact.coefficient = U256::from(coefficient);
    exact
}

#[allow(clippy::should_implement_trait)]
impl Decimal128 {
    /// What is left of a truncated division, exact, with the sign of the dividend.
    pub fn rem(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::NaN(nan) => nan,
            Pair::Infinite(..) | Pair::InfiniteLeft(..) => Decimal128::NAN,
            Pair::InfiniteRight(a, _) => Decimal128::finite(a.negative, a.coefficient, a.exponent),
            Pair::Finite(_, b) if b.coefficient == 0 => Decimal128::NAN,
            Pair::Finite(a, b) if a.exponent >= b.exponent => {
                let scale = pow10_mod((a.exponent - b.exponent) as u32, b.coefficient);
                let remainder = mul_mod(a.coefficient % b.coefficient, scale, b.coefficient);
                Decimal128::finite(a.negative, remainder, b.exponent)
            }
            Pair::Finite(a, b) => {
                // A divisor brought to the lower exponent either fits, or exceeds the dividend.
                let distance = (b.exponent - a.exponent) as u32;
                let fits = digits(b.coefficient) + distance <= 38;
                let remainder = if fits { a.coefficient % (b.coefficient * pow10(distance)) } else { a.coefficient };
                Decimal128::finite(a.negative, remainder, a.exponent)
            }
        }
    }
}

fn mul_mod(a: u128, b: u128, modulus: u128) -> u128 {
    U256::product(a, b).div_rem(modulus).1
}

fn pow10_mod(mut exponent: u32, modulus: u128) -> u128 {
    let mut base = 10 % modulus;
    let mut result = 1 % modulus;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = mul_mod(result, base, modulus);
        }
        base = mul_mod(base, base, modulus);
        exponent >>= 1;
    }
    result
}

macro_rules! operators {
    ($($operator:ident :: $method:ident),*) => {$(
        impl $operator for Decimal128 {
            type Output = Decimal128;

            fn $method(self, other: Decimal128) -> Decimal128 {
                Decimal128::$method(self, other)
            }
        }
    )*};
}

operators!(Add::add, Sub::sub, Mul::mul, Div::div, Rem::rem);
