//! Values for some fields of one document.

use std::sync::Arc;

use espalier_query::Context;
use espalier_store::Update;
use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, Value, ValueRef, compare};

use crate::bson::{value_at, with_value};
use crate::stored;

/// What some fields of a document are to be; missing is to be absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patch {
    fields: Vec<(Path, Value<'static>)>,
}

impl Patch {
    pub fn set(&mut self, path: Path, value: ValueRef<'_>) {
        self.put(path, Value::own(value));
    }

    pub fn put(&mut self, path: Path, value: Value<'static>) {
        self.fields.push((path, value));
    }

    /// Takes the fields of another along, which are others than its own.
    pub fn join(&mut self, other: Patch) {
        self.fields.extend(other.fields);
    }

    pub fn get(&self, path: &Path) -> Option<ValueRef<'_>> {
        self.fields.iter().find(|(own, _)| own == path).and_then(|(_, value)| value.as_ref())
    }

    pub fn has(&self, path: &Path) -> bool {
        self.fields.iter().any(|(own, _)| own == path)
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether a field at the top of a document is one it writes to.
    pub fn writes_below(&self, name: &str) -> bool {
        self.fields.iter().any(|(path, _)| path.first() == name)
    }

    /// The fields whose values the document does not have: path, what it is, what it is to be.
    pub fn differences<'a>(
        &'a self,
        doc: RawDoc<'a>,
    ) -> impl Iterator<Item = (&'a Path, Option<ValueRef<'a>>, Option<ValueRef<'a>>)> {
        self.fields.iter().filter_map(move |(path, value)| {
            let there = value_at(doc, path.parts());
            (!same(there, value.as_ref())).then_some((path, there, value.as_ref()))
        })
    }

    pub fn differs(&self, doc: RawDoc<'_>) -> bool {
        self.differences(doc).next().is_some()
    }

    /// The document with the values.
    pub fn applied(&self, doc: RawDoc<'_>) -> Result<DocBuf> {
        let mut out = DocBuf::from_raw(doc);
        for (path, value) in &self.fields {
            let Some(value) = value.as_ref() else { continue };
            check_way(out.as_raw(), path)?;
            out = with_value(out.as_raw(), path.parts(), value);
        }
        Ok(out)
    }

    /// The update of a document that stores them.
    pub fn update(&self, context: &Arc<Context>) -> Result<Update> {
        let (mut set, mut unset) = (DocBuf::new(), DocBuf::new());
        for (path, value) in &self.fields {
            match value.as_ref() {
                Some(value) => set.append(path.as_str(), value),
                None => unset.append(path.as_str(), true),
            };
        }
        let mut spec = DocBuf::new();
        for (name, fields) in [("$set", &set), ("$unset", &unset)] {
            if !fields.is_empty() {
                spec.append(name, fields);
            }
        }
        let update = stored::own_update(Arc::new(espalier_query::Filter::empty()), &spec)?;
        Ok(Update { context: context.clone(), ..update })
    }
}

/// Equal, and of the same type.
fn same(a: Option<ValueRef<'_>>, b: Option<ValueRef<'_>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.ty() == b.ty() && compare(a, b).is_eq(),
        _ => false,
    }
}

/// Refuses a document in which a path leads through something that is no document.
fn check_way(doc: RawDoc<'_>, path: &Path) -> Result<()> {
    let mut at = doc;
    for part in &path.parts()[..path.parts().len() - 1] {
        match at.get(part.name()) {
            None => return Ok(()),
            Some(ValueRef::Document(inner)) => at = inner,
            Some(other) => {
                let message = format!(
                    "the pattern keeps the field '{path}', but '{}' is not an object but {}",
                    part.name(),
                    other.ty().name()
                );
                return Err(Error::new(Code::PathNotViable, message));
            }
        }
    }
    Ok(())
}
