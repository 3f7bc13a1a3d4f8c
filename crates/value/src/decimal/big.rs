//! A bounded unsigned integer, wide enough for the exact decimal digits of any double: its
//! significand times a power of two or five has at most 53 + 2494 bits.

/// Base 2^32 limbs, least significant first. No allocation.
pub(super) struct Big {
    limbs: [u32; Big::LIMBS_MAX],
    len: usize,
}

const POW5_13: u32 = 1_220_703_125;

impl Big {
    const LIMBS_MAX: usize = 82;

    fn new(value: u64) -> Self {
        let mut limbs = [0; Self::LIMBS_MAX];
        limbs[0] = value as u32;
        limbs[1] = (value >> 32) as u32;
        Big { limbs, len: 2 }
    }

    /// `value * 2^n`, for `n` up to 1023.
    pub(super) fn shifted(value: u64, n: u32) -> Self {
        let mut big = Big::new(value);
        for _ in 0..n / 31 {
            big.multiply(1 << 31);
        }
        big.multiply(1 << (n % 31));
        big
    }

    /// `value * 5^n`, for `n` up to 1074.
    pub(super) fn times_pow5(value: u64, n: u32) -> Self {
        let mut big = Big::new(value);
        for _ in 0..n / 13 {
            big.multiply(POW5_13);
        }
        big.multiply(5u32.pow(n % 13));
        big
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0u64;
        for limb in &mut self.limbs[..self.len] {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry != 0 {
            self.limbs[self.len] = carry as u32;
            self.len += 1;
        }
    }

    /// Divides in place by 10^9 and returns the remainder.
    fn pop_nine_digits(&mut self) -> u32 {
        let mut remainder = 0u64;
        for limb in self.limbs[..self.len].iter_mut().rev() {
            let value = (remainder << 32) | u64::from(*limb);
            *limb = (value / 1_000_000_000) as u32;
            remainder = value % 1_000_000_000;
        }
        while self.len > 0 && self.limbs[self.len - 1] == 0 {
            self.len -= 1;
        }
        remainder as u32
    }

    /// The leading digits, as many groups of nine as fit (36 to 45 if there are so many), how many
    /// digits follow them, and whether one of those is not zero.
    pub(super) fn leading_digits(mut self) -> (super::u256::U256, u32, bool) {
        // 2547 bits are 767 digits: 86 groups.
        let mut groups = [0u32; 86];
        let mut count = 0;
        while self.len > 0 && count < groups.len() {
            groups[count] = self.pop_nine_digits();
            count += 1;
        }
        let rest = count.saturating_sub(5);
        let mut leading = super::u256::U256::ZERO;
        for group in groups[rest..count].iter().rev() {
            leading = leading.scaled(9).plus(super::u256::U256::from(u128::from(*group)));
        }
        let sticky = groups[..rest].iter().any(|group| *group != 0);
        (leading, rest as u32 * 9, sticky)
    }
}
