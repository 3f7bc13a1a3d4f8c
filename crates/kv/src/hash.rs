//! A 64-bit hash of a key for the bloom filters. It is part of the on-disk format
//! (docs/storage-format.md): changing it changes the format version.

const K0: u64 = 0xa076_1d64_78bd_642f;
const K1: u64 = 0xe703_7ed1_a0b4_28db;
const K2: u64 = 0x8ebc_6af0_9c88_c6e3;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[inline]
pub(crate) fn hash64(bytes: &[u8]) -> u64 {
    let mut state = K0 ^ (bytes.len() as u64).wrapping_mul(K2);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), K1);
    }
    let mut last = [0u8; 8];
    last[..tail.len()].copy_from_slice(tail);
    fold(state ^ u64::from_le_bytes(last), K2) ^ state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fixed_by_the_format() {
        assert_eq!(hash64(b""), 0x42f9_3644_191f_ddab);
        assert_eq!(hash64(b"espalier"), 0x1a46_5579_538b_a841);
    }

    #[test]
    fn neighbours_spread_over_the_high_bits() {
        let mut seen = [0u32; 64];
        for n in 0u64..64_000 {
            seen[(hash64(&n.to_be_bytes()) >> 58) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
