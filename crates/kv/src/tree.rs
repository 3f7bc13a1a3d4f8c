//! Trees: keys that begin with the same eight bytes, a big-endian id, belong together. They are
//! dropped together, and a tree with enough data gets files of its own.

/// The tree a key belongs to; a shorter key belongs to none.
#[inline]
pub(crate) fn of(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|id| u64::from_be_bytes(*id))
}

/// The first key above every key of the tree, if there is one.
pub(crate) fn end(tree: u64) -> Option<[u8; 8]> {
    tree.checked_add(1).map(u64::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_know_their_tree() {
        assert_eq!(of(&[0, 0, 0, 0, 0, 0, 1, 2, 9]), Some(258));
        assert_eq!(of(&[1; 7]), None);
        assert_eq!(end(258), Some([0, 0, 0, 0, 0, 0, 1, 3]));
        assert_eq!(end(u64::MAX), None);
    }
}
