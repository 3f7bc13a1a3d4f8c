//! When a reused buffer gives its memory back.
//!
//! A buffer that once held a 48 MB message would otherwise stay that large for as long as its connection lives, and a
//! thousand connections would hold 48 GB. Freeing after every message would make bulk loads allocate again and again.

/// What a reused buffer may always keep.
pub const RETAINED_BYTES: usize = 256 * 1024;

/// Whether a buffer of `capacity` is out of proportion for a message of `used` bytes.
fn is_oversized(capacity: usize, used: usize) -> bool {
    capacity > RETAINED_BYTES && used < capacity / 4
}

/// Empties a buffer for its next use, and gives its memory back if the last use needed little of it.
pub fn recycle(buffer: &mut Vec<u8>) {
    let used = buffer.len();
    buffer.clear();
    if is_oversized(buffer.capacity(), used) {
        buffer.shrink_to(RETAINED_BYTES);
    }
}

/// As [`recycle`], for a buffer whose length is the room that it has and not what was used of it.
pub(crate) fn trim(buffer: &mut Vec<u8>, used: usize) {
    if is_oversized(buffer.capacity(), used) {
        buffer.truncate(RETAINED_BYTES);
        buffer.shrink_to(RETAINED_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_only_when_large_messages_stop() {
        let mut buffer = vec![0; 8 * RETAINED_BYTES];
        recycle(&mut buffer);
        assert!(buffer.is_empty() && buffer.capacity() >= 8 * RETAINED_BYTES);
        buffer.extend([0; 100]);
        recycle(&mut buffer);
        assert!(buffer.capacity() <= RETAINED_BYTES);
        let kept = buffer.capacity();
        recycle(&mut buffer);
        assert_eq!(buffer.capacity(), kept);
    }
}
