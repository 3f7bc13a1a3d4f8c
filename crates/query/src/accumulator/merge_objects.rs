//! `$mergeObjects`: the fields of several documents in one; of two with one name the last counts.

use espalier_value::{Code, DocBuf, Error, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::{Accumulator, State};

pub(super) static MERGE_OBJECTS: Definition = Definition {
    name: "$mergeObjects",
    parse: Parse::Unary(|_| State::other(MergeObjects::default())),
    doc: "The fields of the documents in one; of two with one name the last counts.",
};

#[derive(Debug, Default)]
struct MergeObjects {
    merged: DocBuf,
}

impl Accumulator for MergeObjects {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        match value {
            None => Ok(()),
            Some(value) => merge(&mut self.merged, value),
        }
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        merge(&mut self.merged, partial)
    }

    fn partial(&self) -> Value<'static> {
        Value::document(self.merged.clone())
    }

    fn finish(&mut self) -> Value<'static> {
        Value::document(std::mem::take(&mut self.merged))
    }

    fn peek(&mut self) -> Value<'static> {
        self.partial()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.merged.len_bytes()
    }
}

/// Sets the fields of `value` in `into`. A field that is there keeps its place.
pub(crate) fn merge(into: &mut DocBuf, value: ValueRef<'_>) -> Result<()> {
    let doc = match value {
        ValueRef::Null | ValueRef::Undefined => return Ok(()),
        ValueRef::Document(doc) => doc,
        other => {
            let message =
                format!("$mergeObjects requires object inputs, but input {other} is of type {}", other.ty().name());
            return Err(Error::new(Code(40400), message));
        }
    };
    if into.is_empty() {
        *into = DocBuf::from_raw(doc);
        return Ok(());
    }
    let mut merged = DocBuf::with_capacity(into.len_bytes() + doc.as_bytes().len());
    for old in into.as_raw() {
        merged.append_elem(doc.elem(old.name()).unwrap_or(old));
    }
    for new in doc {
        if into.as_raw().elem(new.name()).is_none() {
            merged.append_elem(new);
        }
    }
    *into = merged;
    Ok(())
}
