//! An index as declared: its key and its options.

mod parse;

use std::sync::Arc;

use espalier_query::Filter;
use espalier_value::{Collation, Collator, DocBuf, Error, Path, RawDoc, Result};

/// A parsed index specification.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    pub name: String,
    pub parts: Vec<KeyPart>,
    pub unique: bool,
    pub sparse: bool,
    pub hidden: bool,
    pub partial: Option<Arc<Filter>>,
    /// `wildcardProjection`, as given.
    pub wildcard_projection: Option<DocBuf>,
    pub expire_after_seconds: Option<f64>,
    /// How its keys compare strings; `None` is as bytes.
    pub collation: Option<Arc<Collation>>,
    /// It was declared with a collation, be it the simple one.
    names_collation: bool,
    /// As `listIndexes` shows it, `v`, `key` and `name` included.
    pub listed: DocBuf,
}

/// One field of an index key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// For a wildcard part, the path above `$**` (empty text for the root).
    pub path: Path,
    pub kind: IndexKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    Ascending,
    Descending,
    Wildcard,
}

#[derive(Clone, Debug)]
pub struct IndexInfo {
    pub spec: IndexSpec,
    pub building: bool,
    /// Uses since the server started, for `$indexStats`.
    pub accesses: u64,
}

impl IndexInfo {
    /// True if it leads to every document with a given value at the path, whatever the value, in this order of values.
    pub fn finds_any_value(&self, path: &str, collator: Collator<'_>) -> bool {
        let spec = &self.spec;
        let first = spec.parts.first().is_some_and(|part| part.path.as_str() == path);
        first
            && spec.collator() == collator
            && !self.building
            && !spec.hidden
            && !spec.sparse
            && spec.partial.is_none()
            && !spec.is_wildcard()
    }
}

impl IndexSpec {
    /// The index every collection has.
    pub fn id() -> IndexSpec {
        let mut listed = DocBuf::new();
        listed
            .append("v", 2)
            .append_doc("key", |key| {
                key.append("_id", 1);
            })
            .append("name", "_id_");
        IndexSpec {
            name: "_id_".into(),
            parts: vec![KeyPart { path: Path::new("_id"), kind: IndexKind::Ascending }],
            unique: true,
            sparse: false,
            hidden: false,
            partial: None,
            wildcard_projection: None,
            expire_after_seconds: None,
            collation: None,
            names_collation: false,
            listed,
        }
    }

    /// The index every collection has, for one with this default collation.
    pub fn id_of(collation: &Option<Arc<Collation>>) -> IndexSpec {
        let mut spec = IndexSpec::id();
        if let Some(collation) = collation {
            spec.listed.append("collation", &collation.listed());
            spec.collation = Some(Arc::clone(collation));
        }
        spec
    }

    /// This index on a collection with a default collation, which it takes over unless it names one itself.
    pub fn on(&self, default: &Option<Arc<Collation>>) -> Result<IndexSpec> {
        match default {
            Some(_) if self.is_id() && self.names_collation && self.collation != *default => {
                Err(Error::bad_value("The _id index must have the same collation as the collection."))
            }
            None if self.is_id() && self.collation.is_some() => {
                Err(Error::bad_value("The _id index must have the same collation as the collection."))
            }
            Some(_) if self.is_id() => Ok(IndexSpec::id_of(default)),
            Some(default) if !self.names_collation => {
                let mut listed = self.listed.clone();
                listed.append("collation", &default.listed());
                IndexSpec::parse(listed.as_raw())
            }
            _ => Ok(self.clone()),
        }
    }

    /// The order of values in its keys.
    pub fn collator(&self) -> Collator<'_> {
        Collator::of(&self.collation)
    }

    pub fn is_id(&self) -> bool {
        self.name == "_id_"
    }

    /// The `key` document.
    pub fn key(&self) -> RawDoc<'_> {
        self.listed.as_raw().get_doc("key").unwrap_or(RawDoc::EMPTY)
    }

    pub fn is_wildcard(&self) -> bool {
        self.parts.iter().any(|p| p.kind == IndexKind::Wildcard)
    }
}
