//! An index as declared: its key, its options, and MongoDB's rules for both.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_value::{DocBuf, Path, RawDoc};

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
    Hashed,
}

impl IndexSpec {
    /// The `key` document.
    pub fn key(&self) -> RawDoc<'_> {
        self.listed.as_raw().get_doc("key").unwrap_or(RawDoc::EMPTY)
    }

    pub fn is_wildcard(&self) -> bool {
        self.parts.iter().any(|p| p.kind == IndexKind::Wildcard)
    }
}

#[derive(Clone, Debug)]
pub struct IndexInfo {
    pub spec: IndexSpec,
    pub building: bool,
    /// Uses since the server started, for `$indexStats`.
    pub accesses: u64,
}
