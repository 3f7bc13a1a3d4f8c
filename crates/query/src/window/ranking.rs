//! What `$rank`, `$denseRank` and `$documentNumber` share: they count documents in the order of one sort field.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{Code, Collation, Collator, Error, Result, Value, ValueRef};

use super::bounds::Bounds;
use super::runner::{Item, Sliding, Window};
use super::{Function, Given};
use crate::expression::{Expression, compare_values};

/// How documents that stand at the same place are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ties {
    /// They share a number, and as many numbers are left out.
    Gap,
    /// They share a number.
    Dense,
    /// Each has its own.
    None,
}

pub(super) fn parse(given: &Given<'_>, ties: Ties) -> Result<Function> {
    let name = given.name;
    if given.spec.count() > 1 {
        return Err(Error::new(Code(5371601), "Rank style window functions take no other arguments"));
    }
    if given.sort.map_or(0, |sort| sort.fields().len()) != 1 {
        let message = format!("{name} must be specified with a top level sortBy expression with exactly one element");
        return Err(Error::new(Code(5371602), message));
    }
    match given.argument {
        ValueRef::Document(doc) if doc.is_empty() => {}
        _ => return Err(Error::new(Code(5371603), format!("{name} must be specified with '{{}}' as the value"))),
    }
    let nothing = Expression::literal(ValueRef::Null);
    let collation = given.scope.collation().clone();
    let make = move || -> Box<dyn Sliding> {
        Box::new(Ranking { ties, count: 0, rank: 0, last: None, collation: collation.clone() })
    };
    Ok(given.windowed(nothing, Bounds::SO_FAR, ties != Ties::None, make))
}

struct Ranking {
    ties: Ties,
    count: i64,
    rank: i64,
    last: Option<Value<'static>>,
    collation: Option<Arc<Collation>>,
}

impl Sliding for Ranking {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        self.count += 1;
        if self.ties == Ties::None {
            self.rank = self.count;
            return Ok(());
        }
        // Missing and null are two places, an array and its element as well, though they sort as one.
        let is_tie = self.last.as_ref().is_some_and(|last| {
            last.is_missing() == item.position.is_missing()
                && compare_values(last, &item.position, Collator::of(&self.collation)).is_eq()
        });
        if !is_tie {
            self.rank = if self.ties == Ties::Gap { self.count } else { self.rank + 1 };
            self.last = Some(item.position.clone());
        }
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(Number::narrowest(self.rank).to_value().into())
    }

    fn memory(&self) -> usize {
        self.last.as_ref().map_or(0, Value::heap_bytes)
    }
}
