//! 256-bit unsigned integers: exactly what a product of two 34-digit coefficients, or a dividend
//! scaled for a 34-digit quotient, needs. Nothing here is general beyond that use.

use std::cmp::Ordering;

/// Powers of ten that fit a `u128`: `POW10[n] == 10^n`.
pub(super) const POW10: [u128; 39] = {
    let mut table = [1u128; 39];
    let mut i = 1;
    while i < 39 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// How many decimal digits `n` has; zero has one.
pub(super) fn digits(n: u128) -> u32 {
    n.checked_ilog10().unwrap_or(0) + 1
}

/// `10^n` for `n` up to 38; larger exponents saturate, which no caller reaches.
pub(super) fn pow10(n: u32) -> u128 {
    POW10[(n as usize).min(POW10.len() - 1)]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct U256 {
    pub(super) hi: u128,
    pub(super) lo: u128,
}

impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for U256 {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.hi, self.lo).cmp(&(other.hi, other.lo))
    }
}

impl From<u128> for U256 {
    fn from(lo: u128) -> Self {
        U256 { hi: 0, lo }
    }
}

impl U256 {
    pub(super) const ZERO: U256 = U256 { hi: 0, lo: 0 };

    pub(super) fn is_zero(self) -> bool {
        self.hi == 0 && self.lo == 0
    }

    /// The full product of two 128-bit integers.
    pub(super) fn product(a: u128, b: u128) -> U256 {
        const MASK: u128 = u64::MAX as u128;
        let (a1, a0) = (a >> 64, a & MASK);
        let (b1, b0) = (b >> 64, b & MASK);
        let low = a0 * b0;
        let mid1 = a1 * b0;
        let mid2 = a0 * b1;
        // Three 64-bit halves cannot overflow 128 bits.
        let carry = ((low >> 64) + (mid1 & MASK) + (mid2 & MASK)) >> 64;
        let (lo, _) = low.overflowing_add((mid1 << 64).wrapping_add(mid2 << 64));
        U256 { hi: a1 * b1 + (mid1 >> 64) + (mid2 >> 64) + carry, lo }
    }

    /// `self + other`; the sum must fit, as sums of aligned coefficients do.
    pub(super) fn plus(self, other: U256) -> U256 {
        let (lo, carry) = self.lo.overflowing_add(other.lo);
        U256 { hi: self.hi.wrapping_add(other.hi).wrapping_add(u128::from(carry)), lo }
    }

    /// `self - other`, for `other <= self`.
    pub(super) fn minus(self, other: U256) -> U256 {
        debug_assert!(other <= self);
        let (lo, borrow) = self.lo.overflowing_sub(other.lo);
        U256 { hi: self.hi.wrapping_sub(other.hi).wrapping_sub(u128::from(borrow)), lo }
    }

    /// `self * 10^n`; the product must fit in 256 bits (77 digits always do).
    pub(super) fn scaled(self, n: u32) -> U256 {
        let mut value = self;
        let mut left = n;
        while left > 0 {
            let step = left.min(38);
            let factor = pow10(step);
            let low = U256::product(value.lo, factor);
            value = U256 { hi: low.hi.wrapping_add(value.hi.wrapping_mul(factor)), lo: low.lo };
            left -= step;
        }
        value
    }

    /// Decimal digits; zero has one.
    pub(super) fn digits(self) -> u32 {
        if self.hi == 0 {
            return digits(self.lo);
        }
        // 2^128 has 39 digits, so at least 10^38 can be divided away.
        let (quotient, _) = self.div_rem(POW10[38]);
        if quotient.hi == 0 {
            38 + digits(quotient.lo)
        } else {
            let (quotient, _) = quotient.div_rem(POW10[38]);
            76 + digits(quotient.lo)
        }
    }

    /// Quotient and remainder by a non-zero 128-bit divisor: schoolbook division by halves of the
    /// high part first, so that each step divides 256 bits whose quotient fits 128.
    pub(super) fn div_rem(self, divisor: u128) -> (U256, u128) {
        debug_assert!(divisor != 0);
        if self.hi == 0 {
            return (U256::from(self.lo / divisor), self.lo % divisor);
        }
        let (lo, remainder) = div_wide(self.hi % divisor, self.lo, divisor);
        (U256 { hi: self.hi / divisor, lo }, remainder)
    }
}

/// Divides `hi:lo` by `divisor`, for `hi < divisor`: Knuth's algorithm D with 64-bit digits.
fn div_wide(hi: u128, lo: u128, divisor: u128) -> (u128, u128) {
    debug_assert!(hi < divisor);
    if hi == 0 {
        return (lo / divisor, lo % divisor);
    }
    let shift = divisor.leading_zeros();
    let divisor = divisor << shift;
    let (d1, d0) = (divisor >> 64, divisor & u128::from(u64::MAX));
    let hi = if shift == 0 { hi } else { (hi << shift) | (lo >> (128 - shift)) };
    let lo = lo << shift;

    let digit = |remainder: u128, next: u128| -> (u128, u128) {
        let mut quotient = remainder / d1;
        let mut rest = remainder % d1;
        while quotient >> 64 != 0 || quotient * d0 > ((rest << 64) | next) {
            quotient -= 1;
            rest += d1;
            if rest >> 64 != 0 {
                break;
            }
        }
        // The true difference is below the divisor, so wrapping arithmetic gives it exactly.
        let remainder = (remainder << 64).wrapping_add(next).wrapping_sub(quotient.wrapping_mul(divisor));
        (quotient, remainder)
    };
    let (q1, remainder) = digit(hi, lo >> 64);
    let (q0, remainder) = digit(remainder, lo & u128::from(u64::MAX));
    ((q1 << 64) | q0, remainder >> shift)
}

/// The integer square root and whether it is exact; for radicands below `2^254`.
pub(super) fn isqrt(n: U256) -> (u128, bool) {
    let mut root = 0u128;
    for bit in (0..127).rev() {
        let candidate = root | (1 << bit);
        if U256::product(candidate, candidate) <= n {
            root = candidate;
        }
    }
    (root, U256::product(root, root) == n)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator of awkward numbers: random widths make all limb patterns appear.
    fn numbers() -> Vec<u128> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut out = vec![1, 2, 9, 10, u128::from(u64::MAX), 1 << 64, u128::MAX, u128::MAX - 1, 1 << 127];
        for _ in 0..400 {
            let wide = (u128::from(next()) << 64) | u128::from(next());
            out.push((wide >> (next() % 127)).max(1));
        }
        out
    }

    #[test]
    fn dividing_a_product_gives_back_its_factors() {
        let numbers = numbers();
        for pair in numbers.windows(3) {
            let (a, b) = (pair[0], pair[1]);
            let extra = pair[2] % b;
            let n = U256::product(a, b).plus(U256::from(extra));
            assert_eq!(n.div_rem(b), (U256::from(a), extra), "{a} * {b} + {extra}");
        }
    }

    #[test]
    fn quotients_wider_than_the_divisor_multiply_back() {
        for pair in numbers().windows(3) {
            let n = U256 { hi: pair[0], lo: pair[1] };
            let divisor = pair[2];
            let (q, r) = n.div_rem(divisor);
            assert!(r < divisor);
            let high = U256::product(q.hi, divisor);
            assert_eq!(high.hi, 0);
            let back = U256::product(q.lo, divisor).plus(U256 { hi: high.lo, lo: 0 }).plus(U256::from(r));
            assert_eq!(back, n);
        }
    }

    #[test]
    fn scaling_and_counting_digits_agree() {
        for n in 0..=76 {
            assert_eq!(U256::from(1).scaled(n).digits(), n + 1);
            if n > 0 {
                let nines = U256::from(1).scaled(n).minus(U256::from(1));
                assert_eq!(nines.digits(), n);
            }
        }
    }

    #[test]
    fn square_roots_are_the_floor() {
        for n in numbers() {
            let n = n >> 1;
            let square = U256::product(n, n);
            assert_eq!(isqrt(square), (n, true));
            if n > 1 {
                assert_eq!(isqrt(square.plus(U256::from(1))), (n, false));
                assert_eq!(isqrt(square.minus(U256::from(1))), (n - 1, false));
            }
        }
    }
}
