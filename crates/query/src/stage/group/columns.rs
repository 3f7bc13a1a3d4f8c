//! What many documents give to their groups, taken out of them: made by any thread, put into the groups by one.

use espalier_value::{Error, Result, ValueRef, push_value};

use super::Group;
use super::feeding::Sink;
use super::hash::Seeded;
use crate::context::Context;

/// What may lie ready.
const BYTES_MAX: usize = 512 << 10;

pub(super) struct Columns<'c> {
    context: &'c Context,
    seed: Seeded,
    pub rows: Rows,
}

/// Rows of as many values each as a group has inputs: the key's first.
#[derive(Default)]
pub(super) struct Rows {
    keys: Vec<Key>,
    cells: Vec<Cell>,
    /// Keys, and values that are no plain numbers.
    bytes: Vec<u8>,
    failures: Vec<Error>,
    /// What ended the reading after these rows.
    pub end: Option<Error>,
}

struct Key {
    hash: u64,
    at: u32,
    len: u32,
}

#[derive(Clone, Copy)]
enum Cell {
    Missing,
    Double(f64),
    Int32(i32),
    Int64(i64),
    Bytes {
        ty: u8,
        at: u32,
        len: u32,
    },
    /// The expression failed, which counts only if its accumulator still takes values.
    Failed(u32),
}

impl Columns<'_> {
    pub fn new(context: &Context, seed: Seeded) -> Columns<'_> {
        Columns { context, seed, rows: Rows::default() }
    }

    pub fn is_enough(&self) -> bool {
        self.rows.bytes.len() + self.rows.cells.len() * size_of::<Cell>() > BYTES_MAX
    }
}

impl Sink for Columns<'_> {
    #[inline]
    fn key(&mut self, id: ValueRef<'_>) -> Result<()> {
        let rows = &mut self.rows;
        let at = rows.bytes.len();
        self.context.collator().encode(&mut rows.bytes, id);
        let hash = self.seed.hash(&rows.bytes[at..]);
        rows.keys.push(Key { hash, at: at as u32, len: (rows.bytes.len() - at) as u32 });
        rows.push(Some(id));
        Ok(())
    }

    #[inline]
    fn is_full(&self, _accumulator: usize) -> bool {
        false
    }

    #[inline]
    fn value(&mut self, _accumulator: usize, value: Option<ValueRef<'_>>) -> Result<()> {
        self.rows.push(value);
        Ok(())
    }

    fn failure(&mut self, error: Error) -> Result<()> {
        self.rows.cells.push(Cell::Failed(self.rows.failures.len() as u32));
        self.rows.failures.push(error);
        Ok(())
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Rows {
    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) {
        let cell = match value {
            None => Cell::Missing,
            Some(ValueRef::Double(x)) => Cell::Double(x),
            Some(ValueRef::Int32(x)) => Cell::Int32(x),
            Some(ValueRef::Int64(x)) => Cell::Int64(x),
            Some(other) => {
                let at = self.bytes.len();
                push_value(&mut self.bytes, other);
                Cell::Bytes { ty: other.ty() as u8, at: at as u32, len: (self.bytes.len() - at) as u32 }
            }
        };
        self.cells.push(cell);
    }

    #[inline]
    fn read(&self, cell: Cell) -> std::result::Result<Option<ValueRef<'_>>, &Error> {
        Ok(Some(match cell {
            Cell::Missing => return Ok(None),
            Cell::Double(x) => ValueRef::Double(x),
            Cell::Int32(x) => ValueRef::Int32(x),
            Cell::Int64(x) => ValueRef::Int64(x),
            Cell::Bytes { ty, at, len } => ValueRef::decode(ty, &self.bytes[at as usize..(at + len) as usize]),
            Cell::Failed(at) => return Err(&self.failures[at as usize]),
        }))
    }

    /// Gives all rows to where the documents would have gone.
    pub fn feed(&self, group: &Group, sink: &mut super::grouping::Taking<'_>) -> Result<()> {
        let width = 1 + group.accumulators.len();
        for (key, cells) in self.keys.iter().zip(self.cells.chunks_exact(width)) {
            let encoded = &self.bytes[key.at as usize..(key.at + key.len) as usize];
            let id = self.read(cells[0]).map_err(Clone::clone)?;
            sink.place(encoded, key.hash, id.unwrap_or(ValueRef::Null))?;
            for (at, &cell) in cells[1..].iter().enumerate() {
                match self.read(cell) {
                    Ok(value) => sink.value(at, value)?,
                    Err(_) if sink.is_full(at) => {}
                    Err(error) => return Err(error.clone()),
                }
            }
            sink.end()?;
        }
        self.end.clone().map_or(Ok(()), Err)
    }
}
