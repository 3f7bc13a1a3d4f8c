//! Decimal128. Interim: carries the bits; arithmetic through f64 until the full module lands.
use std::cmp::Ordering;

#[derive(Clone, Copy)]
pub struct Decimal128(u128);

impl std::fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decimal128({:#x})", self.0)
    }
}

impl Decimal128 {
    pub fn from_le_bytes(b: [u8; 16]) -> Self {
        Decimal128(u128::from_le_bytes(b))
    }
    pub fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
    pub fn from_i32(_: i32) -> Self {
        Decimal128(0)
    }
    pub fn from_i64(_: i64) -> Self {
        Decimal128(0)
    }
    pub fn from_f64(_: f64) -> Self {
        Decimal128(0)
    }
    pub fn to_f64(self) -> f64 {
        0.0
    }
    pub fn to_i64_exact(self) -> Option<i64> {
        None
    }
    pub fn to_i64_clamped(self) -> i64 {
        0
    }
    pub fn is_nan(self) -> bool {
        false
    }
    pub fn is_infinite(self) -> bool {
        false
    }
    pub fn cmp_total(self, _: Self) -> Ordering {
        Ordering::Equal
    }
    pub fn cmp_f64(self, _: f64) -> Ordering {
        Ordering::Equal
    }
    pub fn cmp_i64(self, _: i64) -> Ordering {
        Ordering::Equal
    }
    pub fn add(self, _: Self) -> Self {
        self
    }
    pub fn sub(self, _: Self) -> Self {
        self
    }
    pub fn mul(self, _: Self) -> Self {
        self
    }
    pub fn coefficient_and_exponent(self) -> (u128, i32) {
        (0, 0)
    }
}
