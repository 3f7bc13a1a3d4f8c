//! Fixed-point numbers of 192 whole and 320 fractional bits, for functions that need far more than
//! 34 digits on the way: about 96 digits after the point, so that a logarithm near zero still has
//! all its digits and a power multiplied by a large exponent keeps them.

use super::round::Exact;
use super::u256::{U256, digits, pow10};

const LIMBS: usize = 8;
const FRACTION: usize = 5;

/// Least significant limb first; never negative, signs are kept beside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed([u64; LIMBS]);

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fixed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl Fixed {
    pub(super) const ZERO: Fixed = Fixed([0; LIMBS]);
    pub(super) const ONE: Fixed = Fixed::from_u128(1);
    pub(super) const LN_10: Fixed = Fixed([
        0x58bc_0b5e_c6a0_4173,
        0x0f18_7a08_07c0_b5ca,
        0x8a3f_b3e7_6977_e43a,
        0xa95b_58ae_0b4c_28a3,
        0x4d76_3776_aaa2_b05b,
        2,
        0,
        0,
    ]);
    pub(super) const INV_LN_10: Fixed = Fixed([
        0x3aa1_277d_0a01_79f9,
        0x1d1f_96a2_7bc7_529e,
        0x1f71_a301_22e4_d101,
        0x9aad_d557_d699_ee19,
        0x6f2d_ec54_9b94_38ca,
        0,
        0,
        0,
    ]);

    pub(super) const fn from_u128(n: u128) -> Fixed {
        let mut limbs = [0; LIMBS];
        limbs[FRACTION] = n as u64;
        limbs[FRACTION + 1] = (n >> 64) as u64;
        Fixed(limbs)
    }

    /// A double in `[2^-100, 2^64)`, exactly.
    pub(super) fn from_f64(x: f64) -> Fixed {
        let scale = 2f64.powi(64);
        let high = x.trunc();
        let middle = ((x - high) * scale).trunc();
        let low = ((x - high) * scale - middle) * scale;
        let mut limbs = [0; LIMBS];
        limbs[FRACTION] = high as u64;
        limbs[FRACTION - 1] = middle as u64;
        limbs[FRACTION - 2] = low as u64;
        Fixed(limbs)
    }

    /// `coefficient * 10^exponent`, cut off below; the caller knows that it is below 2^192.
    pub(super) fn from_decimal(coefficient: u128, exponent: i32) -> Fixed {
        let mut value = Fixed::from_u128(coefficient);
        let mut left = exponent.unsigned_abs();
        while left > 0 && value != Fixed::ZERO {
            let step = left.min(19);
            let factor = pow10(step) as u64;
            value = if exponent > 0 { value.times(factor) } else { value.over(factor) };
            left -= step;
        }
        value
    }

    /// The integer part, which must fit.
    pub(super) fn whole(self) -> u128 {
        u128::from(self.0[FRACTION]) | (u128::from(self.0[FRACTION + 1]) << 64)
    }

    /// Without the integer part.
    pub(super) fn fraction(self) -> Fixed {
        let mut limbs = self.0;
        limbs[FRACTION..].fill(0);
        Fixed(limbs)
    }

    pub(super) fn plus(self, other: Fixed) -> Fixed {
        let mut carry = false;
        let mut limbs = [0; LIMBS];
        for (limb, (a, b)) in limbs.iter_mut().zip(self.0.iter().zip(other.0)) {
            let (sum, first) = a.overflowing_add(b);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = first || second;
        }
        Fixed(limbs)
    }

    /// `|self - other|`, and whether `other` was the larger.
    pub(super) fn minus(self, other: Fixed) -> (Fixed, bool) {
        if self < other {
            return (other.minus(self).0, true);
        }
        let mut borrow = false;
        let mut limbs = [0; LIMBS];
        for (limb, (a, b)) in limbs.iter_mut().zip(self.0.iter().zip(other.0)) {
            let (difference, first) = a.overflowing_sub(b);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
        (Fixed(limbs), false)
    }

    pub(super) fn times(self, factor: u64) -> Fixed {
        let mut carry = 0u128;
        let mut limbs = [0; LIMBS];
        for (limb, a) in limbs.iter_mut().zip(self.0) {
            carry += u128::from(a) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
        Fixed(limbs)
    }

    pub(super) fn over(self, divisor: u64) -> Fixed {
        let mut remainder = 0u128;
        let mut limbs = [0; LIMBS];
        for (limb, a) in limbs.iter_mut().zip(self.0).rev() {
            let value = (remainder << 64) | u128::from(a);
            *limb = (value / u128::from(divisor)) as u64;
            remainder = value % u128::from(divisor);
        }
        Fixed(limbs)
    }

    /// The product, cut off below.
    pub(super) fn mul(self, other: Fixed) -> Fixed {
        let mut wide = [0u64; 2 * LIMBS];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0u128;
            for (limb, b) in wide[i..i + LIMBS].iter_mut().zip(other.0) {
                carry += u128::from(*a) * u128::from(b) + u128::from(*limb);
                *limb = carry as u64;
                carry >>= 64;
            }
            wide[i + LIMBS] = carry as u64;
        }
        let mut limbs = [0; LIMBS];
        limbs.copy_from_slice(&wide[FRACTION..FRACTION + LIMBS]);
        Fixed(limbs)
    }

    /// `1 / self` for a value above 10^-40 or so, by Newton's steps from the nearest double.
    pub(super) fn inverse(self) -> Fixed {
        // Scaled by a power of two into [1/2, 1), where a double is a good start.
        let zeros = self.leading_zeros();
        let top = (LIMBS - FRACTION) as u32 * 64;
        let scaled = if zeros >= top { self.shifted_left(zeros - top) } else { self.shifted_right(top - zeros) };
        let mut guess = Fixed::from_f64(1.0 / scaled.to_f64());
        let two = Fixed::from_u128(2);
        // 53 bits doubled three times pass 320.
        for _ in 0..4 {
            guess = guess.mul(two.minus(scaled.mul(guess)).0);
        }
        if zeros >= top { guess.shifted_left(zeros - top) } else { guess.shifted_right(top - zeros) }
    }

    fn to_f64(self) -> f64 {
        let scale = 2f64.powi(-64);
        let part = |i: usize| self.0[i] as f64;
        self.whole() as f64 + part(FRACTION - 1) * scale + part(FRACTION - 2) * scale * scale
    }

    fn leading_zeros(self) -> u32 {
        let mut zeros = 0;
        for limb in self.0.iter().rev() {
            zeros += limb.leading_zeros();
            if *limb != 0 {
                break;
            }
        }
        zeros
    }

    fn shifted_left(self, n: u32) -> Fixed {
        let mut value = self;
        for _ in 0..n / 63 {
            value = value.times(1 << 63);
        }
        value.times(1 << (n % 63))
    }

    pub(super) fn shifted_right(self, n: u32) -> Fixed {
        let mut value = self;
        for _ in 0..n / 63 {
            value = value.over(1 << 63);
        }
        value.over(1 << (n % 63))
    }

    /// `e^self` for a value below 3.
    pub(super) fn exp(self) -> Fixed {
        // Halved so often that Taylor's series ends after some twenty terms, then squared back.
        const HALVINGS: u32 = 16;
        let small = self.shifted_right(HALVINGS);
        let mut sum = Fixed::ONE;
        let mut term = Fixed::ONE;
        let mut n = 1;
        while term != Fixed::ZERO {
            term = term.mul(small).over(n);
            sum = sum.plus(term);
            n += 1;
        }
        for _ in 0..HALVINGS {
            sum = sum.mul(sum);
        }
        sum
    }

    /// `ln(self)` for a value in `[1, 10)`, possibly a trifle below zero: magnitude and sign.
    pub(super) fn ln(self) -> (Fixed, bool) {
        // With z near ln(10/m): m * e^z / 10 = 1 + d, and ln m = ln 10 - z + ln(1 + d).
        let z = Fixed::from_f64((10.0 / self.to_f64()).ln().max(2f64.powi(-60)));
        let (d, d_negative) = self.mul(z.exp()).over(10).minus(Fixed::ONE);
        let (series, series_negative) = ln_1p(d, d_negative);
        let (base, base_negative) = Fixed::LN_10.minus(z);
        add_signed((base, base_negative), (series, series_negative))
    }

    /// The number with 37 or more digits, to be rounded: what it stands for is never exact.
    pub(super) fn to_exact(self, negative: bool, exponent: i32) -> Exact {
        let mut value = self;
        let mut exponent = exponent;
        // More than 10^57 never occurs: results are at most five digits before the point.
        while value != Fixed::ZERO && value.0[FRACTION + 2] == 0 && digits(value.whole()) < 37 {
            value = value.times(10);
            exponent -= 1;
        }
        Exact { negative, coefficient: U256::from(value.whole()), exponent, sticky: true }
    }
}

/// The sum of two numbers given as magnitude and "is negative".
pub(super) fn add_signed(a: (Fixed, bool), b: (Fixed, bool)) -> (Fixed, bool) {
    if a.1 == b.1 {
        return (a.0.plus(b.0), a.1);
    }
    let (difference, swapped) = a.0.minus(b.0);
    (difference, a.1 != swapped)
}

/// `ln(1 + d)` for a tiny `d` of either sign.
fn ln_1p(d: Fixed, negative: bool) -> (Fixed, bool) {
    let mut sum = (Fixed::ZERO, false);
    let mut power = d;
    let mut n = 1u64;
    while power != Fixed::ZERO {
        // d - d^2/2 + d^3/3 ...: below zero every term is.
        let term = power.over(n);
        sum = add_signed(sum, (term, negative || n.is_multiple_of(2)));
        power = power.mul(d);
        n += 1;
    }
    sum
}
