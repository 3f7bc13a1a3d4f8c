//! Leads a dotted path to its values, through documents and arrays, as queries do.
//!
//! An array in the middle of a path is looked through one level deep: each element that is a document is entered.
//! A number in the path means the field of that name and the array element at that index, both. A path that ends in
//! nothing yields `None` once for each place where a field could have been, so that null can match it; an array
//! without documents offers no such place.

use espalier_value::path::Part;
use espalier_value::{RawArray, RawDoc, Result, ValueRef};

use super::Reach;

/// Sees each candidate until it says true. The second argument is where a predicate may note a position of its own.
pub(crate) trait Visit {
    fn visit(&mut self, value: Option<ValueRef<'_>>, position: &mut Option<usize>) -> Result<bool>;

    fn reach(&self) -> Reach;

    /// Sees the array at the end of the path, after its elements.
    fn visit_array(&mut self, array: RawArray<'_>, position: &mut Option<usize>) -> Result<bool> {
        self.visit(Some(ValueRef::Array(array)), position)
    }
}

/// Tries the values at `parts` in `doc`. On a hit, `position` is the index in the outermost array that was looked
/// through, if any was: naming an index in the path is not looking through.
#[inline]
pub(crate) fn document<V: Visit>(
    doc: RawDoc<'_>,
    parts: &[Part],
    visitor: &mut V,
    position: &mut Option<usize>,
) -> Result<bool> {
    match parts.split_first() {
        Some((first, rest)) => value(doc.get(first.name()), rest, visitor, position),
        None => visitor.visit(Some(ValueRef::Document(doc)), position),
    }
}

/// Tries the values at `rest` below a value that the path has already led to.
pub(crate) fn value<V: Visit>(
    value: Option<ValueRef<'_>>,
    rest: &[Part],
    visitor: &mut V,
    position: &mut Option<usize>,
) -> Result<bool> {
    if rest.is_empty() {
        return end(value, visitor, position);
    }
    match value {
        Some(ValueRef::Document(doc)) => document(doc, rest, visitor, position),
        Some(ValueRef::Array(array)) => through(array, rest, visitor, position),
        _ => visitor.visit(None, position),
    }
}

/// The path ends here: an array offers its elements, then itself.
fn end<V: Visit>(value: Option<ValueRef<'_>>, visitor: &mut V, position: &mut Option<usize>) -> Result<bool> {
    if let Some(ValueRef::Array(array)) = value
        && visitor.reach() == Reach::Elements
    {
        for (index, element) in array.iter().enumerate() {
            if visitor.visit(Some(element), position)? {
                *position = Some(index);
                return Ok(true);
            }
        }
        return visitor.visit_array(array, position);
    }
    visitor.visit(value, position)
}

/// An array with more path to go.
fn through<V: Visit>(
    array: RawArray<'_>,
    parts: &[Part],
    visitor: &mut V,
    position: &mut Option<usize>,
) -> Result<bool> {
    let Some((part, rest)) = parts.split_first() else { return Ok(false) };
    for (index, element) in array.iter().enumerate() {
        let named = part.index() == Some(index);
        let hit = match element {
            ValueRef::Document(doc) => {
                if document(doc, parts, visitor, position)? {
                    // The outermost array wins over those further in.
                    *position = Some(index);
                    return Ok(true);
                }
                match (named, rest) {
                    (false, _) => false,
                    (true, []) => visitor.visit(Some(element), position)?,
                    (true, rest) => document(doc, rest, visitor, position)?,
                }
            }
            _ if !named => false,
            _ if rest.is_empty() => visitor.visit(Some(element), position)?,
            ValueRef::Array(inner) => through(inner, rest, visitor, position)?,
            _ => false,
        };
        if hit {
            return Ok(true);
        }
    }
    Ok(false)
}
