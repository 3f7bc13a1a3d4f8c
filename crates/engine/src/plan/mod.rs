//! The planner: from a filter and a sort to a way of reading. Looks at the bounds predicates offer and at the
//! indexes there are; an estimate by a short look into the index decides between candidates.

pub mod choose;
pub mod conditions;
pub mod distinct;
pub mod implies;
pub mod order;
pub mod scan;
pub mod wildcard;

use std::sync::Arc;

use espalier_query::sort::Sort;

use crate::catalog::Index;

pub use choose::plan;
pub use scan::{ByteInterval, IndexScan};

/// How a find is carried out, before projection, skip and limit.
#[derive(Debug)]
pub struct Plan {
    pub access: Access,
    /// The filter must be run on the documents; false if the index bounds say it all.
    pub residual: bool,
    /// The documents come in the order asked for.
    pub sorted: bool,
    /// The answer can be read from the index alone.
    pub covered: bool,
}

#[derive(Debug)]
pub enum Access {
    /// Every document, in natural order.
    Collection {
        reverse: bool,
    },
    Index(IndexScan),
    /// Documents from any of the scans, each once.
    Union(Vec<IndexScan>),
    /// Scans that are each in sort order, merged.
    Merge(Vec<IndexScan>),
}

/// What the caller wants of the order.
#[derive(Clone, Copy)]
pub enum Wanted<'s> {
    Any,
    Natural { reverse: bool },
    Sorted(&'s Sort),
}

impl Access {
    pub fn scans(&self) -> &[IndexScan] {
        match self {
            Access::Collection { .. } => &[],
            Access::Index(scan) => std::slice::from_ref(scan),
            Access::Union(scans) | Access::Merge(scans) => scans,
        }
    }
}

/// `COLLSCAN`, `IXSCAN { a: 1 }`, for logs and the profiler.
pub fn summary(indexes: &[Arc<Index>]) -> String {
    match indexes {
        [] => "COLLSCAN".to_string(),
        indexes => indexes.iter().map(|i| format!("IXSCAN {}", i.spec.key())).collect::<Vec<_>>().join(", "),
    }
}
