//! The keys of a document in an index: one, or several where a path leads through an array (a multikey index).
//!
//! A missing field is indexed as null, an empty array as undefined. Fields of a compound index that lead through
//! the same array are taken from the same element; two different arrays in one key are refused, as they would
//! multiply. A number in a path (`a.0`) names an element of an array, which still counts as an array then.

use espalier_store::{IndexKind, IndexSpec};
use espalier_value::key::Types;
use espalier_value::path::Part;
use espalier_value::{Code, Error, RawArray, RawDoc, Result, ValueRef};

/// Encoded keys with what is needed to read the values back.
#[derive(Default, Debug)]
pub struct Keys {
    /// Sorted, without duplicates: encoded key, type bytes.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// A bit for each part of the key whose path leads through an array in this document.
    pub multikey: u64,
}

impl Keys {
    /// The type bytes of an encoded key, if it is among these.
    pub fn get(&self, encoded: &[u8]) -> Option<&Vec<u8>> {
        let found = self.entries.binary_search_by(|(key, _)| key.as_slice().cmp(encoded));
        found.ok().and_then(|at| self.entries.get(at)).map(|(_, types)| types)
    }
}

/// How far one part of the key has been followed.
#[derive(Clone, Copy)]
enum Walk<'a> {
    Missing,
    At(ValueRef<'a>),
    /// Stopped before an array, with the rest of the path.
    Array(RawArray<'a>, &'a [Part]),
}

/// Where a part of the key leads that goes on with the number of an element.
#[derive(Clone, Copy)]
struct Numbered<'a> {
    walk: Walk<'a>,
    /// The element is an array itself.
    is_array: bool,
}

/// The keys of `doc` in an ordinary (not wildcard) index; partial filters are the caller's.
pub fn keys(spec: &IndexSpec, doc: RawDoc<'_>) -> Result<Keys> {
    let mut out = Keys::default();
    let mut walks = Vec::with_capacity(spec.parts.len());
    for part in &spec.parts {
        walks.push(follow(ValueRef::Document(doc), part.path.parts()));
    }
    expand(spec, &walks, true, &mut out)?;
    if out.entries.len() > 1 {
        out.entries.sort_unstable();
        out.entries.dedup_by(|a, b| a.0 == b.0);
    }
    Ok(out)
}

fn follow<'a>(mut value: ValueRef<'a>, mut parts: &'a [Part]) -> Walk<'a> {
    loop {
        match (value, parts) {
            (ValueRef::Array(array), parts) => return Walk::Array(array, parts),
            (value, []) => return Walk::At(value),
            (ValueRef::Document(doc), [part, rest @ ..]) => match doc.get(part.name()) {
                Some(inner) => (value, parts) = (inner, rest),
                None => return Walk::Missing,
            },
            _ => return Walk::Missing,
        }
    }
}

/// Adds a key for each element of the array that parts have stopped at. `unwraps` is false below a numbered element
/// that is an array: where a path ends there, that array is one value.
fn expand<'a>(spec: &'a IndexSpec, walks: &[Walk<'a>], unwraps: bool, out: &mut Keys) -> Result<()> {
    let Some(array) = the_array(spec, walks)? else {
        push(spec, walks, out);
        return Ok(());
    };
    let mut numbered: Vec<Option<Numbered<'a>>> = Vec::with_capacity(walks.len());
    for (i, walk) in walks.iter().enumerate() {
        let Walk::Array(_, rest) = walk else {
            numbered.push(None);
            continue;
        };
        let element = element_at(array, rest);
        // One element, named by its number, does not make several keys.
        let multiplies = if rest.is_empty() { unwraps } else { element.is_none() };
        out.multikey |= u64::from(multiplies) << i;
        numbered.push(element);
    }
    let mut inner = walks.to_vec();
    let mut step = |element: Option<ValueRef<'a>>, out: &mut Keys| {
        let mut unwraps_inside = true;
        for (i, (to, from)) in inner.iter_mut().zip(walks).enumerate() {
            let Walk::Array(_, rest) = from else { continue };
            *to = match (element, rest) {
                (None, []) => Walk::At(ValueRef::Undefined),
                (Some(element), []) => Walk::At(if unwraps { element } else { ValueRef::Array(array) }),
                (None, _) => Walk::Missing,
                (Some(element), [part, ..]) => {
                    let named = element.as_doc().filter(|doc| doc.get(part.name()).is_some());
                    match (named, numbered[i]) {
                        (Some(_), Some(_)) => return Err(ambiguous(part)),
                        (Some(doc), None) => follow(ValueRef::Document(doc), rest),
                        (None, Some(numbered)) => {
                            unwraps_inside &= !numbered.is_array;
                            numbered.walk
                        }
                        (None, None) => Walk::Missing,
                    }
                }
            };
        }
        expand(spec, &inner, unwraps_inside, out)
    };
    if array.is_empty() {
        return step(None, out);
    }
    array.iter().try_for_each(|element| step(Some(element), out))
}

/// What the rest of a path means if it begins with the number of an element.
fn element_at<'a>(array: RawArray<'a>, rest: &'a [Part]) -> Option<Numbered<'a>> {
    let (part, rest) = rest.split_first()?;
    let element = array.get(part.index()?)?;
    Some(Numbered { walk: follow(element, rest), is_array: matches!(element, ValueRef::Array(_)) })
}

fn ambiguous(part: &Part) -> Error {
    let message = format!(
        "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: \
         '{}'",
        part.name()
    );
    Error::new(Code(16746), message)
}

/// The array that some parts have stopped at; an error if they have stopped at different ones.
fn the_array<'a>(spec: &IndexSpec, walks: &[Walk<'a>]) -> Result<Option<RawArray<'a>>> {
    let mut found: Option<(usize, RawArray<'a>)> = None;
    for (i, walk) in walks.iter().enumerate() {
        let Walk::Array(array, _) = walk else { continue };
        match found {
            None => found = Some((i, *array)),
            Some((_, first)) if std::ptr::eq(first.as_bytes().as_ptr(), array.as_bytes().as_ptr()) => {}
            Some((first, _)) => {
                return Err(Error::new(
                    Code::CannotIndexParallelArrays,
                    format!(
                        "cannot index parallel arrays [{}] [{}]",
                        spec.parts[i].path.parts().last().map_or("", Part::name),
                        spec.parts[first].path.parts().last().map_or("", Part::name)
                    ),
                ));
            }
        }
    }
    Ok(found.map(|(_, array)| array))
}

fn push(spec: &IndexSpec, walks: &[Walk<'_>], out: &mut Keys) {
    if spec.sparse && walks.iter().all(|w| matches!(w, Walk::Missing)) {
        return;
    }
    let mut encoded = Vec::with_capacity(16 * walks.len());
    let mut types = Types::new();
    for (part, walk) in spec.parts.iter().zip(walks) {
        let descending = part.kind == IndexKind::Descending;
        match walk {
            Walk::At(value) => {
                spec.collator().encode_directed(&mut encoded, *value, descending);
                types.note(*value);
            }
            _ => {
                spec.collator().encode_directed(&mut encoded, ValueRef::Null, descending);
                types.note_missing();
            }
        }
    }
    out.entries.push((encoded, types.as_bytes().to_vec()));
}
