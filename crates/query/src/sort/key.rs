//! A document's sort key. Without arrays on the paths it is written field by field; with arrays every combination
//! that an index on the same fields would have is made, and the least one (in the order of the sort) is the key.

use espalier_value::path::Part;
use espalier_value::{Code, Collator, Error, RawArray, RawDoc, Result, ValueRef};
use smallvec::SmallVec;

use super::SortField;

/// Appends the key; false if it is seen on the way that it is beyond the bound.
#[inline]
pub(super) fn write(
    fields: &[SortField],
    collator: Collator<'_>,
    doc: RawDoc<'_>,
    bound: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let start = out.len();
    if let [only] = fields
        && only.path.as_str() == "_id"
    {
        // As in the index on `_id`, which no array can be: where a `$group` has made one, it is compared whole.
        collator.encode_directed(out, doc.get("_id").unwrap_or(ValueRef::Null), only.descending);
        return Ok(bound.is_none_or(|bound| out[start..] < *bound));
    }
    let mut beyond = false;
    for (at, field) in fields.iter().enumerate() {
        match walk(Some(ValueRef::Document(doc)), field.path.parts()) {
            // Only to see that there are no arrays, which could be an error.
            Walk::End(_) if beyond => {}
            Walk::End(value) => {
                collator.encode_directed(out, value, field.descending);
                // The first field decides nearly always, and with it the others need no key.
                if let (0, Some(bound)) = (at, bound) {
                    let first = &out[start..];
                    beyond = *first > bound[..first.len().min(bound.len())];
                }
            }
            Walk::Array(..) => {
                out.truncate(start);
                through_arrays(fields, collator, doc, out)?;
                return Ok(bound.is_none_or(|bound| out[start..] < *bound));
            }
        }
    }
    Ok(!beyond)
}

/// Where a path has led so far.
#[derive(Clone, Copy)]
enum Walk<'a, 'p> {
    /// To a value; null if it leads to nothing.
    End(ValueRef<'a>),
    /// To an array, with this much of the path to go.
    Array(RawArray<'a>, &'p [Part]),
}

fn walk<'a, 'p>(mut value: Option<ValueRef<'a>>, mut parts: &'p [Part]) -> Walk<'a, 'p> {
    loop {
        match (value, parts) {
            (Some(ValueRef::Array(array)), _) => return Walk::Array(array, parts),
            (value, []) => return Walk::End(value.unwrap_or(ValueRef::Null)),
            (Some(ValueRef::Document(doc)), [part, rest @ ..]) => {
                value = doc.get(part.name());
                parts = rest;
            }
            _ => return Walk::End(ValueRef::Null),
        }
    }
}

type Walks<'a, 'p> = SmallVec<[Walk<'a, 'p>; 4]>;

#[cold]
fn through_arrays(fields: &[SortField], collator: Collator<'_>, doc: RawDoc<'_>, out: &mut Vec<u8>) -> Result<()> {
    let walks: Walks<'_, '_> =
        fields.iter().map(|field| walk(Some(ValueRef::Document(doc)), field.path.parts())).collect();
    let mut best = Best { fields, collator, least: None, scratch: Vec::new() };
    best.expand(walks)?;
    out.extend_from_slice(best.least.as_deref().unwrap_or_default());
    Ok(())
}

struct Best<'f> {
    fields: &'f [SortField],
    collator: Collator<'f>,
    least: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Best<'_> {
    /// Opens the array that the walks have come to, one combination for each element; done if there is none.
    fn expand(&mut self, walks: Walks<'_, '_>) -> Result<()> {
        let Some(array) = common_array(&walks)? else {
            self.consider(&walks);
            return Ok(());
        };
        // A number that is an index of the array means that element, in every combination.
        let mut fixed: Walks<'_, '_> = SmallVec::new();
        let mut open = false;
        for walked in &walks {
            let Walk::Array(array, parts) = *walked else {
                fixed.push(*walked);
                continue;
            };
            fixed.push(match (at_index(array, parts)?, parts) {
                // As everywhere, an empty array counts as undefined; others are compared whole.
                (Some(ValueRef::Array(array)), [_]) if array.is_empty() => Walk::End(ValueRef::Undefined),
                (Some(element), [_]) => Walk::End(element),
                (Some(element), [_, rest @ ..]) => walk(Some(element), rest),
                _ => {
                    open = true;
                    *walked
                }
            });
        }
        if !open {
            return self.expand(fixed);
        }
        if array.is_empty() {
            return self.expand(enter(&walks, &fixed, array, ValueRef::Undefined));
        }
        array.iter().try_for_each(|element| self.expand(enter(&walks, &fixed, array, element)))
    }

    fn consider(&mut self, walks: &[Walk<'_, '_>]) {
        self.scratch.clear();
        for (field, walked) in self.fields.iter().zip(walks) {
            if let Walk::End(value) = walked {
                self.collator.encode_directed(&mut self.scratch, *value, field.descending);
            }
        }
        match &mut self.least {
            Some(least) if *least <= self.scratch => {}
            Some(least) => std::mem::swap(least, &mut self.scratch),
            None => self.least = Some(self.scratch.clone()),
        }
    }
}

/// The array that paths have come to. Two different ones would have to be combined each with each, which MongoDB
/// refuses.
fn common_array<'a>(walks: &[Walk<'a, '_>]) -> Result<Option<RawArray<'a>>> {
    let mut common: Option<RawArray<'a>> = None;
    for walked in walks {
        if let Walk::Array(array, _) = walked {
            match common {
                Some(other) if !std::ptr::eq(other.as_bytes(), array.as_bytes()) => {
                    return Err(Error::bad_value("cannot sort with keys that are parallel arrays"));
                }
                _ => common = Some(*array),
            }
        }
    }
    Ok(common)
}

/// The walks with the open ones led into one element of the array.
fn enter<'a, 'p>(
    walks: &[Walk<'a, 'p>],
    fixed: &[Walk<'a, 'p>],
    array: RawArray<'a>,
    element: ValueRef<'a>,
) -> Walks<'a, 'p> {
    let still_open = |walked: &Walk<'a, 'p>| match walked {
        Walk::Array(other, parts) if std::ptr::eq(other.as_bytes(), array.as_bytes()) => Some(*parts),
        _ => None,
    };
    walks
        .iter()
        .zip(fixed)
        .map(|(before, now)| match (still_open(before), still_open(now)) {
            (Some(_), Some([])) => Walk::End(element),
            (Some(_), Some(parts)) => match element {
                ValueRef::Document(_) => walk(Some(element), parts),
                _ => Walk::End(ValueRef::Null),
            },
            _ => *now,
        })
        .collect()
}

/// The element that a number in a path means, if the array is that long.
fn at_index<'a>(array: RawArray<'a>, parts: &[Part]) -> Result<Option<ValueRef<'a>>> {
    let Some(part) = parts.first() else { return Ok(None) };
    let Some(element) = part.index().and_then(|index| array.get(index)) else { return Ok(None) };
    let named = |value: ValueRef<'_>| value.as_doc().is_some_and(|doc| doc.elem(part.name()).is_some());
    if array.iter().any(named) {
        let message = format!(
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{}'",
            part.name()
        );
        return Err(Error::new(Code(16746), message));
    }
    Ok(Some(element))
}
