//! A typed `find`: what to read, in which order, in which shape.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::sort::Sort;
use espalier_query::stage::Group;
use espalier_query::{Context, Filter};
use espalier_value::DocBuf;

#[derive(Clone, Debug)]
pub struct Find {
    pub filter: Arc<Filter>,
    pub sort: Option<Arc<Sort>>,
    pub projection: Option<Arc<Projection>>,
    pub skip: u64,
    /// `None`: no limit.
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
    /// Bounds on the hinted index: inclusive below, exclusive above.
    pub min: Option<DocBuf>,
    pub max: Option<DocBuf>,
    pub return_key: bool,
    pub show_record_id: bool,
    pub tailable: Option<Tailable>,
    /// Sorts in memory may use the disk beyond their limit.
    pub allow_disk_use: bool,
    /// Paths the caller will look at, if it is not all of the document (for plans that need no document).
    pub needs: Option<Vec<String>>,
    /// The `$group` that reads the documents: the cursor may lend what many of them add up to
    /// ([`espalier_query::Stream::lend_partials`]).
    pub group: Option<Arc<Group>>,
    /// Of documents with the same value at a path only the first need come: a store that cannot tell which gives all.
    pub distinct: Option<Distinct>,
    pub context: Arc<Context>,
}

impl Find {
    /// The same for whoever looks at the different values at a path and nothing else.
    pub fn distinct_at(&self, path: &str) -> Find {
        let distinct = Some(Distinct { path: path.to_string(), missing: false });
        Find { needs: Some(vec![path.to_string()]), distinct, ..self.clone() }
    }

    /// True if nothing of the documents is needed but their number.
    pub fn is_count(&self) -> bool {
        let shown = self.projection.is_some() || self.return_key || self.show_record_id;
        !shown && self.needs.as_ref().is_some_and(Vec::is_empty)
    }

    pub fn new(filter: Arc<Filter>, context: Arc<Context>) -> Find {
        Find {
            filter,
            sort: None,
            projection: None,
            skip: 0,
            limit: None,
            hint: None,
            min: None,
            max: None,
            return_key: false,
            show_record_id: false,
            tailable: None,
            allow_disk_use: true,
            needs: None,
            group: None,
            distinct: None,
            context,
        }
    }
}

/// What makes documents the same for whoever looks at one of each.
#[derive(Clone, Debug)]
pub struct Distinct {
    pub path: String,
    /// Whether one without a value at the path is looked at too.
    pub missing: bool,
}

#[derive(Clone, Debug)]
pub enum Hint {
    /// By name.
    Name(String),
    /// By key pattern.
    Key(DocBuf),
    /// `{$natural: 1}` or `{$natural: -1}`.
    Natural { reverse: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tailable {
    Tail,
    /// `awaitData`: a `getMore` at the end waits for more.
    Await,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    AllPlansExecution,
}
