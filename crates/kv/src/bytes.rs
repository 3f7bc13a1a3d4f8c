//! A value lent to the caller: it points into a block or a memtable and keeps that alive.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::memtable::MemValue;
use crate::run::Block;

/// A cheap, reference-counted slice. Holding one keeps a whole block or memtable in memory, so
/// copy what is meant to be kept for long.
#[derive(Clone, Default)]
pub struct Bytes(Inner);

#[derive(Clone, Default)]
enum Inner {
    #[default]
    Empty,
    Memory(MemValue),
    Block {
        block: Arc<Block>,
        start: usize,
        end: usize,
    },
}

impl Bytes {
    pub(crate) fn from_memory(value: MemValue) -> Bytes {
        Bytes(Inner::Memory(value))
    }

    pub(crate) fn from_block(block: Arc<Block>, (start, end): (usize, usize)) -> Bytes {
        Bytes(Inner::Block { block, start, end })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Empty => &[],
            Inner::Memory(value) => value.as_slice(),
            Inner::Block { block, start, end } => block.slice((*start, *end)),
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq<[u8]> for Bytes {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
