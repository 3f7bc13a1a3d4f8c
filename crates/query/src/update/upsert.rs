//! The document an upsert inserts: the equalities of the filter in the order of their paths, then the update on top,
//! `_id` first.

use std::collections::HashSet;

use espalier_value::{Code, DocBuf, Error, Path, Result, ValueRef};

use super::{Apply, Kind, Update, id, nesting};
use crate::context::Context;

pub(super) fn document(
    update: &Update,
    equalities: &[(&Path, ValueRef<'_>)],
    new_id: [u8; 12],
    context: &Context,
) -> Result<DocBuf> {
    let base = match update.kind() {
        Kind::Replacement => only_id(equalities)?,
        Kind::Operators | Kind::Pipeline => from_equalities(equalities)?,
    };
    let how = Apply { context, position: None, inserting: true };
    let built = update.apply(base.as_raw(), &how)?.unwrap_or(base);
    id_first(built, new_id)
}

/// A replacement takes nothing over but the whole `_id`.
fn only_id(equalities: &[(&Path, ValueRef<'_>)]) -> Result<DocBuf> {
    let mut doc = DocBuf::new();
    for (path, value) in equalities.iter().filter(|(path, _)| path.first() == "_id") {
        if !path.is_single() {
            let message = format!("field at '_id' must be exactly specified, field at sub-path '{path}'found");
            return Err(Error::new(Code::NotExactValueField, message));
        }
        doc.append("_id", *value);
    }
    Ok(doc)
}

fn from_equalities(equalities: &[(&Path, ValueRef<'_>)]) -> Result<DocBuf> {
    let mut sorted: Vec<(&Path, ValueRef<'_>)> = equalities.to_vec();
    sorted.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    for pair in sorted.windows(2) {
        let (upper, lower) = (pair[0].0, pair[1].0);
        if upper == lower {
            return Err(not_single(format!("path '{upper}' is matched twice")));
        }
    }
    let paths: HashSet<&str> = sorted.iter().map(|(path, _)| path.as_str()).collect();
    for (path, value) in &sorted {
        nesting::check(path.parts().len() + nesting::depth(*value))?;
        let dots = path.as_str().match_indices('.');
        if let Some(upper) = dots.map(|(at, _)| &path.as_str()[..at]).find(|above| paths.contains(above)) {
            return Err(not_single(format!("both paths '{path}' and '{upper}' are matched")));
        }
    }
    if sorted.first().is_some_and(|(path, _)| path.as_str().is_empty()) {
        // MongoDB reads the empty path as the document itself here, and says so.
        return Err(Error::new(Code::IllegalOperation, "Cannot call setValue on the root object"));
    }
    let mut doc = DocBuf::new();
    write(&mut doc, &sorted, 0);
    Ok(doc)
}

fn not_single(what: String) -> Error {
    Error::new(Code::NotSingleValueField, format!("cannot infer query fields to set, {what}"))
}

/// Writes the fields of entries that agree on the first `depth` parts. Sorted by text, those that share one more part
/// stand together.
fn write(doc: &mut DocBuf, entries: &[(&Path, ValueRef<'_>)], depth: usize) {
    let part = |path: &Path| path.parts().get(depth).map(|p| p.name().to_string());
    let mut rest = entries;
    while let Some((path, value)) = rest.first() {
        let name = part(path).unwrap_or_default();
        if path.parts().len() == depth + 1 {
            doc.append(&name, *value);
            rest = &rest[1..];
            continue;
        }
        let same = rest.iter().take_while(|(p, _)| part(p).as_deref() == Some(name.as_str())).count().max(1);
        doc.append_doc(&name, |inner| write(inner, &rest[..same], depth + 1));
        rest = &rest[same..];
    }
}

fn id_first(doc: DocBuf, new_id: [u8; 12]) -> Result<DocBuf> {
    let own = doc.as_raw().elem("_id");
    if let Some(elem) = own {
        id::check(elem.value())?;
        if doc.as_raw().first().is_some_and(|first| first.name_bytes() == b"_id") {
            return Ok(doc);
        }
    }
    let mut ordered = DocBuf::with_capacity(doc.len_bytes() + 17);
    match own {
        Some(elem) => ordered.append_elem(elem),
        None => ordered.append("_id", ValueRef::ObjectId(new_id)),
    };
    for elem in doc.as_raw().iter().filter(|e| e.name_bytes() != b"_id") {
        ordered.append_elem(elem);
    }
    Ok(ordered)
}
