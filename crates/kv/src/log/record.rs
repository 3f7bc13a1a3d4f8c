//! A log record: one commit, or a marker that says how far the log is known to be synced.
//!
//! A commit's payload is its batch, followed by what the writer noted about it (the annotation).
//!
//! Each record carries the position up to which the log was durable when it was written. That
//! tells damage from a torn tail: a bad record below a position that a later record knows to
//! be durable was once good.

/// Salt, length, commit number, durable position, stamp, annotation's length, payload checksum, header checksum.
pub(super) const RECORD_HEADER_BYTES: usize = 44;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) payload_len: u32,
    /// 0 for a marker.
    pub(super) seq: u64,
    pub(super) durable_lsn: u64,
    /// The commit's time; 0 for a marker.
    pub(super) stamp: u64,
    /// How much of the payload's end is not the batch.
    pub(super) annotation_len: u32,
    pub(super) payload_crc: u32,
}

impl Header {
    pub(super) fn encode(&self, salt: u32) -> [u8; RECORD_HEADER_BYTES] {
        let mut out = [0; RECORD_HEADER_BYTES];
        out[0..4].copy_from_slice(&salt.to_le_bytes());
        out[4..8].copy_from_slice(&self.payload_len.to_le_bytes());
        out[8..16].copy_from_slice(&self.seq.to_le_bytes());
        out[16..24].copy_from_slice(&self.durable_lsn.to_le_bytes());
        out[24..32].copy_from_slice(&self.stamp.to_le_bytes());
        out[32..36].copy_from_slice(&self.annotation_len.to_le_bytes());
        out[36..40].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&out[..40]);
        out[40..44].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8; RECORD_HEADER_BYTES], salt: u32) -> Option<Header> {
        let u32_at = |at: usize| bytes[at..].first_chunk().map(|b| u32::from_le_bytes(*b));
        let u64_at = |at: usize| bytes[at..].first_chunk().map(|b| u64::from_le_bytes(*b));
        if u32_at(0)? != salt || u32_at(40)? != crc32fast::hash(&bytes[..40]) {
            return None;
        }
        let header = Header {
            payload_len: u32_at(4)?,
            seq: u64_at(8)?,
            durable_lsn: u64_at(16)?,
            stamp: u64_at(24)?,
            annotation_len: u32_at(32)?,
            payload_crc: u32_at(36)?,
        };
        (header.annotation_len <= header.payload_len).then_some(header)
    }

    /// The whole record's length.
    pub(super) fn record_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.payload_len as usize
    }

    /// The batch and the annotation in a payload.
    pub(super) fn split<'a>(&self, payload: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        payload.split_at(payload.len().saturating_sub(self.annotation_len as usize))
    }
}

/// The whole record at the start of `bytes`: its header and payload, if both are intact.
pub(super) fn read(bytes: &[u8], salt: u32) -> Option<(Header, &[u8])> {
    let header = Header::decode(bytes.first_chunk()?, salt)?;
    let end = RECORD_HEADER_BYTES.checked_add(header.payload_len as usize)?;
    let payload = bytes.get(RECORD_HEADER_BYTES..end)?;
    (crc32fast::hash(payload) == header.payload_crc).then_some((header, payload))
}

/// The highest durable position that any intact record header in `bytes` knows of.
pub(super) fn durable_evidence(bytes: &[u8], salt: u32) -> u64 {
    let salt_bytes = salt.to_le_bytes();
    bytes
        .windows(RECORD_HEADER_BYTES)
        .filter(|window| window.starts_with(&salt_bytes))
        .filter_map(|window| Header::decode(window.first_chunk()?, salt))
        .map(|header| header.durable_lsn)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(payload: &[u8], durable_lsn: u64) -> Vec<u8> {
        let header = Header {
            payload_len: payload.len() as u32,
            seq: 5,
            durable_lsn,
            stamp: 6,
            annotation_len: 2,
            payload_crc: crc32fast::hash(payload),
        };
        [&header.encode(77)[..], payload].concat()
    }

    #[test]
    fn any_flipped_bit_or_cut_is_noticed() {
        let good = record(b"payload", 9);
        let (header, payload) = read(&good, 77).unwrap();
        assert_eq!((header.seq, header.durable_lsn, payload), (5, 9, &b"payload"[..]));
        assert_eq!((header.stamp, header.split(payload)), (6, (&b"paylo"[..], &b"ad"[..])));
        assert!(read(&good, 78).is_none(), "another segment's salt");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bad, 77).is_none(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(read(&good[..cut], 77).is_none(), "cut {cut}");
        }
    }

    #[test]
    fn evidence_is_found_behind_damage() {
        let mut bytes = record(b"first", 0);
        bytes[3] ^= 1;
        bytes.extend(record(b"second", 37));
        bytes.extend(record(b"third", 12));
        assert_eq!(durable_evidence(&bytes, 77), 37);
        assert_eq!(durable_evidence(&bytes, 1), 0);
    }
}
