//! IEEE 754-2008 decimal128 in the BID encoding that BSON stores, with MongoDB's semantics.
//!
//! A finite value is `(-1)^sign * coefficient * 10^exponent` with a coefficient of at most 34
//! digits. The exponent is part of the value as written (`1.50` is not printed as `1.5`), while
//! comparison goes by number alone (`1.50 == 1.5`).
//!
//! - `round`: the one place where an exact result becomes 34 digits
//! - `arithmetic`, `integral`, `root`, `transcendental`: operations
//! - `text`, `integer`, `double`: conversions
//! - `compare`: the total order of numbers that sorting and indexes use
//! - `u256`, `big`, `fixed`: the wide numbers under them

mod arithmetic;
mod big;
mod compare;
mod double;
mod fixed;
mod integer;
mod integral;
mod root;
mod round;
#[cfg(test)]
mod tests;
mod text;
mod transcendental;
mod u256;

pub use double::DoubleError;
pub use integer::IntegerError;
pub use round::Rounding;
pub use text::ParseDecimalError;

/// Most digits of a coefficient.
const DIGITS_MAX: u32 = 34;
/// Largest coefficient, 34 nines.
const COEFFICIENT_MAX: u128 = u256::POW10[34] - 1;
/// Exponents of the encoding.
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;
/// What is added to an exponent before it is stored.
const BIAS: i32 = 6176;

const SIGN: u128 = 1 << 127;
const INFINITY_BITS: u128 = 0x78 << 120;
const NAN_BITS: u128 = 0x7c << 120;
/// Five combination bits that say "not finite", and with one more bit which of the two.
const SPECIAL_MASK: u128 = 0x7c << 120;
/// The two bits that announce the large-coefficient form, which in 128 bits is never canonical.
const LARGE_FORM: u128 = 0x60 << 120;
const SMALL_COEFFICIENT_MASK: u128 = (1 << 113) - 1;
const NAN_PAYLOAD_MASK: u128 = (1 << 110) - 1;

/// A decimal128 as it lies in BSON.
///
/// `==`, ordering and hashing are numeric in MongoDB's sense: `1.0 == 1.00`, `-0 == 0`, NaN equals
/// NaN and is the smallest. Compare [`Decimal128::to_bits`] to tell representations apart.
#[derive(Clone, Copy)]
pub struct Decimal128(u128);

/// What the bits of a [`Decimal128`] stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    Finite {
        negative: bool,
        /// At most 34 digits; non-canonical encodings read as zero.
        coefficient: u128,
        exponent: i32,
    },
    Infinity {
        negative: bool,
    },
    NaN,
}

impl Decimal128 {
    pub const ZERO: Decimal128 = Decimal128::finite(false, 0, 0);
    pub const ONE: Decimal128 = Decimal128::finite(false, 1, 0);
    /// The largest finite value, 34 nines times 10^6111.
    pub const MAX: Decimal128 = Decimal128::finite(false, COEFFICIENT_MAX, EXPONENT_MAX);
    /// The most negative finite value.
    pub const MIN: Decimal128 = Decimal128::finite(true, COEFFICIENT_MAX, EXPONENT_MAX);
    /// The smallest value above zero, 1E-6176.
    pub const MIN_POSITIVE: Decimal128 = Decimal128::finite(false, 1, EXPONENT_MIN);
    pub const INFINITY: Decimal128 = Decimal128(INFINITY_BITS);
    pub const NEG_INFINITY: Decimal128 = Decimal128(SIGN | INFINITY_BITS);
    pub const NAN: Decimal128 = Decimal128(NAN_BITS);

    /// The 16 bytes of a BSON decimal.
    pub const fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Decimal128(u128::from_le_bytes(bytes))
    }

    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    pub const fn from_bits(bits: u128) -> Self {
        Decimal128(bits)
    }

    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// Packs parts that are in range already; everything computed goes through `round::finish`.
    const fn finite(negative: bool, coefficient: u128, exponent: i32) -> Self {
        debug_assert!(coefficient <= COEFFICIENT_MAX);
        debug_assert!(exponent >= EXPONENT_MIN && exponent <= EXPONENT_MAX);
        let sign = if negative { SIGN } else { 0 };
        Decimal128(sign | (((exponent + BIAS) as u128) << 113) | coefficient)
    }

    const fn infinity(negative: bool) -> Self {
        if negative { Self::NEG_INFINITY } else { Self::INFINITY }
    }

    /// The value taken apart.
    pub const fn parts(self) -> Parts {
        let negative = self.is_sign_negative();
        match self.0 & SPECIAL_MASK {
            NAN_BITS => return Parts::NaN,
            INFINITY_BITS => return Parts::Infinity { negative },
            _ => {}
        }
        let (field, coefficient) = if self.0 & LARGE_FORM == LARGE_FORM {
            // Its coefficient starts at 2^113, above 34 nines: not canonical, hence zero.
            ((self.0 >> 111) & 0x3fff, 0)
        } else {
            let coefficient = self.0 & SMALL_COEFFICIENT_MASK;
            let canonical = coefficient <= COEFFICIENT_MAX;
            ((self.0 >> 113) & 0x3fff, if canonical { coefficient } else { 0 })
        };
        Parts::Finite { negative, coefficient, exponent: field as i32 - BIAS }
    }

    /// Makes a value of its parts; `None` if coefficient or exponent is out of range.
    pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Option<Self> {
        (coefficient <= COEFFICIENT_MAX && (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent))
            .then(|| Self::finite(negative, coefficient, exponent))
    }

    /// Coefficient and exponent of a finite value; of NaN and the infinities, zeros.
    pub const fn coefficient_and_exponent(self) -> (u128, i32) {
        match self.parts() {
            Parts::Finite { coefficient, exponent, .. } => (coefficient, exponent),
            Parts::Infinity { .. } | Parts::NaN => (0, 0),
        }
    }

    pub const fn is_nan(self) -> bool {
        self.0 & SPECIAL_MASK == NAN_BITS
    }

    pub const fn is_infinite(self) -> bool {
        self.0 & SPECIAL_MASK == INFINITY_BITS
    }

    pub const fn is_finite(self) -> bool {
        !self.is_nan() && !self.is_infinite()
    }

    pub const fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }

    /// The sign bit, set for `-0` and `-NaN` too.
    pub const fn is_sign_negative(self) -> bool {
        self.0 & SIGN != 0
    }

    /// The same value with the sign turned; also of zero and NaN.
    pub const fn negated(self) -> Self {
        Decimal128(self.0 ^ SIGN)
    }

    pub const fn abs(self) -> Self {
        Decimal128(self.0 & !SIGN)
    }

    /// A NaN operand as a result: quiet, its payload kept if canonical.
    const fn quieted(self) -> Self {
        let payload = self.0 & NAN_PAYLOAD_MASK;
        let payload = if payload < u256::POW10[33] { payload } else { 0 };
        Decimal128((self.0 & SIGN) | NAN_BITS | payload)
    }
}

impl std::ops::Neg for Decimal128 {
    type Output = Decimal128;

    fn neg(self) -> Decimal128 {
        self.negated()
    }
}
