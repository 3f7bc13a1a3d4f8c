//! The factors between degrees and radians as decimals.

use super::super::prelude::*;

/// pi / 180 to 34 digits: 0.01745329251994329576923690768488613.
pub(super) const TO_RADIANS: Decimal128 = Decimal128::from_bits(0x2ffa560d26f7c579a0a2a1380e8758a5);

/// 180 / pi to 34 digits: 57.29577951308232087679815481410517.
pub(super) const TO_DEGREES: Decimal128 = Decimal128::from_bits(0x30011a7d70d76ef78c6ebc7da9ddc3d5);
