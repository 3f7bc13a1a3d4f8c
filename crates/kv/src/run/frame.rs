//! How a block lies in a run file: checksum, codec, length, bytes.
//!
//! The checksum also covers the run's id and the offset, so that a block written to, or read
//! from, the wrong place is noticed like any other damage.

use crate::options::Compression;

pub(super) const FRAME_BYTES: usize = 9;
const RAW: u8 = 0;
const LZ4: u8 = 1;
/// Upper bound of a decoded block: one entry of the largest key and value.
const DECODED_BYTES_MAX: usize = 1 << 30;

fn checksum(run: u64, offset: u64, framed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&run.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(framed);
    hasher.finalize()
}

/// Appends `raw` as a frame to `out`; `offset` is where the frame will lie in the file.
/// Compressed only if that saves at least an eighth. Returns the frame's length.
pub(super) fn encode(out: &mut Vec<u8>, run: u64, offset: u64, raw: &[u8], compression: Compression) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(RAW);
    out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    let body = out.len();
    let mut compressed = false;
    if compression == Compression::Lz4 {
        out.resize(body + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
        if let Ok(len) = lz4_flex::block::compress_into(raw, &mut out[body..])
            && len <= raw.len() - raw.len() / 8
        {
            out.truncate(body + len);
            out[start + 4] = LZ4;
            compressed = true;
        }
    }
    if !compressed {
        out.truncate(body);
        out.extend_from_slice(raw);
    }
    let crc = checksum(run, offset, &out[start + 4..]);
    out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    out.len() - start
}

/// Checks and unpacks a frame read from `offset`.
pub(super) fn decode(run: u64, offset: u64, frame: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    let Some((crc, framed)) = frame.split_first_chunk() else {
        return Err("block cut short");
    };
    if checksum(run, offset, framed) != u32::from_le_bytes(*crc) {
        return Err("checksum mismatch");
    }
    let Some((&codec, rest)) = framed.split_first() else {
        return Err("block cut short");
    };
    let Some((len, body)) = rest.split_first_chunk() else {
        return Err("block cut short");
    };
    let raw_len = u32::from_le_bytes(*len) as usize;
    if raw_len > DECODED_BYTES_MAX {
        return Err("block of impossible length");
    }
    match codec {
        RAW if body.len() == raw_len => {
            let mut frame = frame;
            frame.drain(..FRAME_BYTES);
            Ok(frame)
        }
        RAW => Err("block of wrong length"),
        LZ4 => match lz4_flex::block::decompress(body, raw_len) {
            Ok(raw) if raw.len() == raw_len => Ok(raw),
            _ => Err("block does not decompress"),
        },
        _ => Err("block with an unknown codec"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn frames_round_trip() {
        let incompressible: Vec<u8> = {
            let mut rng = crate::rng::Rng::new(1);
            (0..500).map(|_| rng.next_u64() as u8).collect()
        };
        for raw in [vec![], vec![7; 1000], incompressible] {
            for compression in [Compression::None, Compression::Lz4] {
                let mut out = b"before".to_vec();
                let len = encode(&mut out, 3, 6, &raw, compression);
                assert_eq!(len, out.len() - 6);
                assert_eq!(decode(3, 6, out[6..].to_vec()).unwrap(), raw);
            }
        }
        let mut out = Vec::new();
        encode(&mut out, 1, 0, &[7; 1000], Compression::Lz4);
        assert!(out.len() < 100, "compressed");
    }

    #[test]
    fn any_flipped_bit_or_wrong_place_is_noticed() {
        let mut out = Vec::new();
        encode(&mut out, 1, 0, b"some bytes", Compression::None);
        assert!(decode(2, 0, out.clone()).is_err(), "other run");
        assert!(decode(1, 9, out.clone()).is_err(), "other place");
        for bit in 0..out.len() * 8 {
            let mut bad = out.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(1, 0, bad).is_err(), "bit {bit}");
        }
        for cut in 0..out.len() {
            assert!(decode(1, 0, out[..cut].to_vec()).is_err(), "cut {cut}");
        }
    }
}
