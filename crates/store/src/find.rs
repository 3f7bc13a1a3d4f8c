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
    /// Top-level paths the caller will look at, if it is not all of the document (for plans that need no document).
    pub needs: Option<Vec<String>>,
    /// The `$group` that reads the documents: the cursor may lend what many of them add up to
    /// ([`espalier_query::Stream::lend_partials`]).
    pub group: Option<Arc<Group>>,
    pub context: Arc<Context>,
}

impl Find {
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
            context,
        }
    }
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
