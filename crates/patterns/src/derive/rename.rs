//! A collection gets another name: those that know it by the old one follow in the same commit. They are the collections whose
//! derivations read it, those that note that it watches them, and those that hold its documents.

use espalier_store::{CollectionOptions, Follow};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::watch::WATCHERS;
use crate::declare::{pending, with_listed};

/// What becomes of the options of the others.
pub(crate) fn follow<'f>(from: &'f str, to: &'f str) -> Box<Follow<'f>> {
    Box::new(move |name, options| renamed(name, options, from, to))
}

fn renamed(name: &str, options: &CollectionOptions, from: &str, to: &str) -> Result<Option<CollectionOptions>> {
    let before = options.listed.as_raw();
    let mut after = DocBuf::new();
    for elem in before {
        match (elem.name(), elem.value()) {
            ("patterns", ValueRef::Array(list)) => after.append("patterns", &declarations(list, from, to)),
            (WATCHERS, ValueRef::Array(list)) => {
                let new = |watcher: ValueRef<'_>| watcher.as_str() == Some(from);
                let list: ArrayBuf =
                    list.iter().map(|watcher| if new(watcher) { ValueRef::String(to) } else { watcher }).collect();
                after.append(WATCHERS, &list)
            }
            ("patternOwner", ValueRef::Document(owner)) => {
                after.append("patternOwner", &with_name(owner, "collection", from, to))
            }
            _ => after.append_elem(elem),
        };
    }
    if after.as_bytes() == before.as_bytes() {
        return Ok(None);
    }
    if pending(before).is_some() {
        let message = format!(
            "the patterns of {name}, which knows {from} by its name, are being migrated; rename it when that has ended"
        );
        return Err(Error::new(Code(117), message));
    }
    Ok(Some(with_listed(options, after)))
}

/// The declarations, with another source for derivations that read the one.
fn declarations(list: RawArray<'_>, from: &str, to: &str) -> ArrayBuf {
    let mut out = ArrayBuf::new();
    for declaration in list.iter() {
        let one = declaration.as_doc().and_then(|declaration| declaration.iter().next());
        match one.map(|elem| (elem.name(), elem.value())) {
            // Only derivations have a source.
            Some((kind, ValueRef::Document(options))) => {
                out.push_doc(|doc| {
                    doc.append(kind, &with_name(options, "from", from, to));
                });
            }
            _ => {
                out.push(declaration);
            }
        }
    }
    out
}

/// The document with another name in a field that has the one.
fn with_name(doc: RawDoc<'_>, field: &str, from: &str, to: &str) -> DocBuf {
    let mut out = DocBuf::new();
    for elem in doc {
        match elem.name() == field && elem.value().as_str() == Some(from) {
            true => out.append(field, to),
            false => out.append_elem(elem),
        };
    }
    out
}
