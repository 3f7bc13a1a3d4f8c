//! Which documents of the source belong to which of the collection: `on: {productId: "_id"}`.

use std::sync::Arc;

use espalier_query::Context;
use espalier_query::sort::Sort;
use espalier_store::{Find, IndexKind, IndexSpec, Namespace, Transaction};
use espalier_value::{DocBuf, Path, RawDoc, Result, Value, ValueRef, key};

use crate::bson::value_at;
use crate::fields::Fields;
use crate::stored;
use crate::write::Turn;

/// A source and the pairs of fields that are equal in a document of it and the one it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub from: Box<str>,
    pairs: Vec<(Path, Path)>,
}

/// What a document of the source and the one it belongs to have in common.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    values: Vec<Value<'static>>,
    /// Equal for equal keys.
    pub bytes: Vec<u8>,
}

impl Key {
    fn of<'p>(doc: RawDoc<'_>, paths: impl Iterator<Item = &'p Path>) -> Option<Key> {
        let (mut values, mut bytes) = (Vec::new(), Vec::new());
        for path in paths {
            // Nothing and null belong to nobody, and a list to nobody in particular.
            let value = value_at(doc, path.parts())?;
            if matches!(value, ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_)) {
                return None;
            }
            bytes.extend_from_slice(&key::of(value));
            values.push(Value::own(value));
        }
        Some(Key { values, bytes })
    }

    /// Of values that were a key's.
    pub fn new<'v>(values: impl Iterator<Item = ValueRef<'v>>) -> Key {
        let values: Vec<Value<'static>> = values.map(Value::own).collect();
        let bytes = values.iter().flat_map(|value| key::of(value.or_null())).collect();
        Key { values, bytes }
    }

    pub fn to_array(&self) -> espalier_value::ArrayBuf {
        self.values.iter().map(Value::or_null).collect()
    }
}

impl Link {
    pub fn parse(fields: &Fields<'_>, collection: &str) -> Result<Link> {
        let from = fields.required_str("from")?;
        if from == collection {
            return Err(fields.error("from", "must be another collection than the one it is declared on"));
        }
        let from = fields.checked_collection("from", from)?;
        let on = fields.doc("on")?.ok_or_else(|| fields.error("on", "is required"))?;
        let mut pairs: Vec<(Path, Path)> = Vec::new();
        for elem in on {
            let at = format!("on.{}", elem.name());
            let ValueRef::String(target) = elem.value() else {
                return Err(fields.error(&at, format!("must be a string, not {}", elem.value().ty().name())));
            };
            let pair = (field(fields, &at, elem.name())?, field(fields, &at, target)?);
            if pairs.iter().any(|other| other.0 == pair.0 || other.1 == pair.1) {
                return Err(fields.error(&at, "has a field that is there already"));
            }
            pairs.push(pair);
        }
        if pairs.is_empty() {
            return Err(fields.error("on", "must name at least one field"));
        }
        Ok(Link { from, pairs })
    }

    /// The same from the other side: `on` names a field of the collection first, and of the source second.
    pub fn turned(mut self) -> Link {
        self.pairs.iter_mut().for_each(|(source, own)| std::mem::swap(source, own));
        self
    }

    /// Refuses a link by a field that the pattern itself keeps.
    pub fn check_apart(&self, fields: &Fields<'_>, kept: &[Path]) -> Result<()> {
        let own = self.pairs.iter().map(|(_, own)| own);
        match own.flat_map(|own| kept.iter().map(move |kept| (own, kept))).find(|(own, kept)| overlap(own, kept)) {
            Some((own, kept)) => Err(fields.error("on", format!("'{own}' is what it keeps itself in '{kept}'"))),
            None => Ok(()),
        }
    }

    /// As it is declared.
    pub fn on(&self) -> DocBuf {
        let mut on = DocBuf::new();
        for (source, own) in &self.pairs {
            on.append(source.as_str(), own.as_str());
        }
        on
    }

    pub fn source(&self, ns: &Namespace) -> Namespace {
        Namespace::new(ns.db(), &self.from)
    }

    /// The fields at the top of the source's documents that it looks at.
    pub fn reads(&self) -> impl Iterator<Item = Box<str>> {
        self.pairs.iter().map(|(source, _)| source.first().into())
    }

    /// The same of the collection's own documents.
    pub fn depends(&self) -> Vec<&str> {
        self.pairs.iter().map(|(_, own)| own.first()).collect()
    }

    /// The key of a document of the source.
    pub fn key(&self, source: RawDoc<'_>) -> Option<Key> {
        Key::of(source, self.pairs.iter().map(|(source, _)| source))
    }

    /// The key of a document of the collection.
    pub fn own_key(&self, doc: RawDoc<'_>) -> Option<Key> {
        Key::of(doc, self.pairs.iter().map(|(_, own)| own))
    }

    /// The `_id` of the one document that a key can belong to, if it is linked by that.
    pub fn id<'k>(&self, key: &'k Key) -> Option<ValueRef<'k>> {
        match (&self.pairs[..], &key.values[..]) {
            ([(_, own)], [value]) if own.as_str() == "_id" => Some(value.or_null()),
            _ => None,
        }
    }

    /// What stands for the documents that a document of the source belongs to: the one itself, if it is linked by `_id`.
    pub fn turn(&self, ns: &Namespace, source: RawDoc<'_>) -> Option<Turn> {
        let key = self.key(source)?;
        if let Some(id) = self.id(&key) {
            return Some((ns.clone(), Value::own(id)));
        }
        let own: Vec<&str> = self.pairs.iter().map(|(_, own)| own.as_str()).collect();
        let by = Namespace::new(ns.db(), &format!("{}${}", ns.collection(), own.join("$")));
        Some((by, Value::own(ValueRef::Array(key.to_array().as_raw()))))
    }

    pub fn is_by_id(&self) -> bool {
        matches!(&self.pairs[..], [(_, own)] if own.as_str() == "_id")
    }

    /// The documents of the collection with this key.
    pub fn owners(&self, at: &dyn Transaction, ns: &Namespace, key: &Key) -> Result<Vec<DocBuf>> {
        self.owners_up_to(at, ns, key, u64::MAX)
    }

    /// The first few of them.
    pub fn owners_up_to(&self, at: &dyn Transaction, ns: &Namespace, key: &Key, most: u64) -> Result<Vec<DocBuf>> {
        let find = stored::query(self.filter(key, false)?);
        let mut cursor = crate::read::find(at, ns, &find)?;
        let mut owners = Vec::new();
        while (owners.len() as u64) < most && cursor.advance()? {
            if self.own_key(cursor.doc()).is_some_and(|own| own.bytes == key.bytes) {
                owners.push(DocBuf::from_raw(cursor.doc()));
            }
        }
        Ok(owners)
    }

    /// Calls `each` with the documents of the source with this key, in an order if one is given, until it says no more.
    pub fn members(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        key: &Key,
        sort: Option<Arc<Sort>>,
        mut each: impl FnMut(RawDoc<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut find = Find::new(self.filter(key, true)?, Arc::new(Context::default()));
        find.sort = sort;
        let mut cursor = crate::read::find(at, &self.source(ns), &find)?;
        while cursor.advance()? {
            // An equality lets a list through that has the value among others.
            if self.key(cursor.doc()).is_some_and(|own| own.bytes == key.bytes) && !each(cursor.doc())? {
                break;
            }
        }
        Ok(())
    }

    /// The filter for the documents of the collection with this key and no others.
    pub fn own_filter(&self, key: &Key) -> Result<Arc<espalier_query::Filter>> {
        let mut condition = DocBuf::new();
        for ((_, own), value) in self.pairs.iter().zip(&key.values) {
            condition.append_doc(own.as_str(), |doc| {
                // An equality lets a list through that has the value among others.
                doc.append("$eq", value.or_null()).append_doc("$not", |doc| {
                    doc.append("$type", "array");
                });
            });
        }
        stored::filter(&condition)
    }

    /// As [`Link::own_filter`], but it lets lists through that have a value of the key among others.
    pub fn near_filter(&self, key: &Key) -> Result<Arc<espalier_query::Filter>> {
        self.filter(key, false)
    }

    fn filter(&self, key: &Key, source: bool) -> Result<Arc<espalier_query::Filter>> {
        let mut condition = DocBuf::new();
        for ((theirs, own), value) in self.pairs.iter().zip(&key.values) {
            let path = if source { theirs } else { own };
            stored::equal(&mut condition, path.as_str(), value.or_null());
        }
        stored::filter(&condition)
    }

    /// Makes the indexes by which both sides are found, where there is none: of the source with these fields behind.
    pub fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace, behind: &[(Path, bool)]) -> Result<()> {
        let mut parts: Vec<(Path, bool)> = self.pairs.iter().map(|(source, _)| (source.clone(), false)).collect();
        parts.extend(behind.iter().cloned());
        ensure_index(tx, &self.source(ns), &parts)?;
        if !self.is_by_id() && tx.collection(ns)?.is_some() {
            let parts: Vec<(Path, bool)> = self.pairs.iter().map(|(_, own)| (own.clone(), false)).collect();
            ensure_index(tx, ns, &parts)?;
        }
        Ok(())
    }
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.is_prefix_of(b) || b.is_prefix_of(a)
}

/// The path of a field, which may be `_id`.
fn field(fields: &Fields<'_>, at: &str, text: &str) -> Result<Path> {
    if text == "_id" { Ok(Path::new("_id")) } else { fields.checked_path(at, text) }
}

/// Makes an index with these fields first, unless there is one.
fn ensure_index(tx: &mut dyn Transaction, ns: &Namespace, parts: &[(Path, bool)]) -> Result<()> {
    let roles = crate::roles::Roles::of(tx, ns)?;
    let layout = roles.and_then(|roles| roles.layout.clone());
    let there = match &layout {
        Some(layout) => layout.indexes(tx, ns)?,
        None => tx.indexes(ns)?,
    };
    let fits = |spec: &IndexSpec| {
        let plain = !spec.sparse && spec.partial.is_none() && spec.collation.is_none() && !spec.hidden;
        plain
            && spec.parts.len() >= parts.len()
            && spec.parts.iter().zip(parts).all(|(part, (path, descending))| {
                let kind = if *descending { IndexKind::Descending } else { IndexKind::Ascending };
                part.path == *path && part.kind == kind
            })
    };
    let mut key = DocBuf::new();
    for (path, descending) in parts {
        key.append(path.as_str(), if *descending { -1 } else { 1 });
    }
    let spec = match there.into_iter().find(|info| fits(&info.spec)) {
        Some(info) if !info.building => return Ok(()),
        // It may never be finished: its end is waited for, and if need be it is built here.
        Some(info) => info.spec,
        None => index_spec(&key)?,
    };
    match layout {
        Some(layout) => layout.create_indexes(tx, ns, &[spec]).map(drop),
        None => tx.create_indexes(ns, &[spec]).map(drop),
    }
}

/// An ordinary index, under the name that it would have of a client.
fn index_spec(key: &DocBuf) -> Result<IndexSpec> {
    let name: Vec<String> = key.as_raw().iter().map(|elem| format!("{}_{}", elem.name(), elem.value())).collect();
    let mut spec = DocBuf::new();
    spec.append("key", key).append("name", &name.join("_"));
    IndexSpec::parse(spec.as_raw())
}
