//! One entry of the skip list, as it lies in the arena: header, tower of links, key, value.
//!
//! Everything except the links is written before the node is reachable and never again, so a
//! reader that reached a node through an `Acquire` load may read all of it.

use std::cmp::Ordering;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering as Atomic};

pub(super) const HEIGHT_MAX: usize = 14;
/// A value length that no value has marks a deleted key.
const TOMBSTONE: u32 = u32::MAX;

#[repr(C)]
pub(super) struct Header {
    prev: AtomicPtr<Header>,
    seq: u64,
    key_len: u32,
    value_len: u32,
    height: u64,
}

type Link = AtomicPtr<Header>;

/// A node, valid for as long as its memtable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Node(NonNull<Header>);

impl Node {
    pub(super) fn size(height: usize, key_len: usize, value_len: usize) -> usize {
        size_of::<Header>() + height * size_of::<Link>() + key_len + value_len
    }

    /// Writes a node that nothing links to yet.
    ///
    /// # Safety
    /// `at` is word-aligned and has room for `Node::size` bytes that nobody else uses; key and
    /// value are shorter than `u32::MAX`.
    pub(super) unsafe fn write(at: NonNull<u8>, height: usize, key: &[u8], seq: u64, value: Option<&[u8]>) -> Node {
        let header = at.cast::<Header>();
        // SAFETY: the caller gave enough aligned room, and nothing else refers to it.
        unsafe {
            header.write(Header {
                prev: AtomicPtr::new(ptr::null_mut()),
                seq,
                key_len: key.len() as u32,
                value_len: value.map_or(TOMBSTONE, |value| value.len() as u32),
                height: height as u64,
            });
            let tower = header.add(1).cast::<Link>();
            for level in 0..height {
                tower.add(level).write(AtomicPtr::new(ptr::null_mut()));
            }
            let bytes = tower.add(height).cast::<u8>();
            ptr::copy_nonoverlapping(key.as_ptr(), bytes.as_ptr(), key.len());
            if let Some(value) = value {
                let to = bytes.add(key.len());
                ptr::copy_nonoverlapping(value.as_ptr(), to.as_ptr(), value.len());
            }
        }
        Node(header)
    }

    fn header<'a>(self) -> &'a Header {
        // SAFETY: a `Node` only comes from `write` or from a link, both to a written header in
        // an arena that outlives every use (see `Memtable`).
        unsafe { self.0.as_ref() }
    }

    fn link<'a>(self, level: usize) -> &'a Link {
        debug_assert!((level as u64) < self.header().height);
        // SAFETY: the tower of `height` links follows the header, and a node is only reached
        // on a level it has.
        unsafe { self.0.add(1).cast::<Link>().add(level).as_ref() }
    }

    #[inline]
    pub(super) fn next(self, level: usize) -> Option<Node> {
        NonNull::new(self.link(level).load(Atomic::Acquire)).map(Node)
    }

    pub(super) fn set_next(self, level: usize, next: Option<Node>) {
        let next = next.map_or(ptr::null_mut(), |node| node.0.as_ptr());
        self.link(level).store(next, Atomic::Release);
    }

    pub(super) fn prev(self) -> Option<Node> {
        NonNull::new(self.header().prev.load(Atomic::Acquire)).map(Node)
    }

    pub(super) fn set_prev(self, prev: Node) {
        self.header().prev.store(prev.0.as_ptr(), Atomic::Release);
    }

    pub(super) fn seq(self) -> u64 {
        self.header().seq
    }

    #[inline]
    pub(super) fn key<'a>(self) -> &'a [u8] {
        let header = self.header();
        // SAFETY: `write` put `key_len` bytes after the tower.
        unsafe {
            let bytes = self.0.add(1).cast::<Link>().add(header.height as usize).cast::<u8>();
            std::slice::from_raw_parts(bytes.as_ptr(), header.key_len as usize)
        }
    }

    /// `None` for a deleted key.
    #[inline]
    pub(super) fn value<'a>(self) -> Option<&'a [u8]> {
        let header = self.header();
        if header.value_len == TOMBSTONE {
            return None;
        }
        // SAFETY: `write` put `value_len` bytes after the key.
        unsafe {
            let bytes =
                self.0.add(1).cast::<Link>().add(header.height as usize).cast::<u8>().add(header.key_len as usize);
            Some(std::slice::from_raw_parts(bytes.as_ptr(), header.value_len as usize))
        }
    }

    /// Order in the list: by key, then newest first.
    #[inline]
    pub(super) fn is_before(self, key: &[u8], seq: u64) -> bool {
        match compare(self.key(), key) {
            Ordering::Less => true,
            Ordering::Equal => self.seq() > seq,
            Ordering::Greater => false,
        }
    }
}

/// The order of bytes. Most keys are told apart by their first sixteen (a tree and a record id), which are two words and
/// need no call.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match (a.split_first_chunk::<16>(), b.split_first_chunk::<16>()) {
        (Some((a, a_rest)), Some((b, b_rest))) => match u128::from_be_bytes(*a).cmp(&u128::from_be_bytes(*b)) {
            Ordering::Equal if a_rest.is_empty() && b_rest.is_empty() => Ordering::Equal,
            Ordering::Equal => a_rest.cmp(b_rest),
            order => order,
        },
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn keys_compare_as_bytes_do() {
        let mut rng = Rng::new(9);
        for _ in 0..20_000 {
            let mut word = || (0..12 + rng.below(8)).map(|_| rng.below(2) as u8 * 255).collect::<Vec<u8>>();
            let (mut a, b) = (word(), word());
            assert_eq!(compare(&a, &b), a.cmp(&b), "{a:?} {b:?}");
            let shared = b.len().min(a.len()) - 1;
            a[..shared].copy_from_slice(&b[..shared]);
            assert_eq!(compare(&a, &b), a.cmp(&b), "{a:?} {b:?}");
        }
    }
}
