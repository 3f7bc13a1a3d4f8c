//! Pipelines: stages that turn a stream of documents into another.
//!
//! A stage is one file that exports a [`Definition`]; [`ALL`] lists them by name. [`Pipeline::parse`] turns an array
//! of stage documents into [`Stage`]s; [`Pipeline::leading`] is what a store can do of it by itself (filter, sort, skip,
//! limit, and which fields the rest will look at); [`Pipeline::run`] strings the rest together, each stage pulling
//! from the one before it.

use std::fmt::Debug;
use std::sync::Arc;

use espalier_value::{Code, Error, Path, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::{Deps, Scope};
use crate::filter::Filter;
use crate::registry::{Entry, State};
use crate::sort::Sort;
use crate::stream::Stream;

mod add_fields;
mod answers;
mod arrange;
mod bucket;
mod bucket_auto;
mod condition;
mod count;
mod densify;
mod documents;
mod facet;
mod fill;
mod granularity;
mod graph_lookup;
mod group;
mod leading;
mod limit;
mod lookup;
mod r#match;
mod matches;
mod merge;
pub(crate) mod origin;
mod out;
pub mod output;
mod pipeline;
mod places;
mod project;
mod redact;
mod replace_root;
mod replace_with;
mod run;
mod sample;
mod server_stage;
mod set;
mod set_window_fields;
mod skip;
mod sort;
mod sort_by_count;
pub mod sort_input;
pub mod sorter;
mod spilled;
mod sub_pipeline;
mod transform;
mod union_with;
mod unset;
mod unsupported;
mod unwind;

pub use group::Group;
pub use leading::Leading;
pub(crate) use leading::collect_filter;
pub use pipeline::Pipeline;
pub use run::{Collections, Limits, Run, Spill, SpillFile};
pub use transform::Transform;
pub(crate) use unwind::replace;

/// A parsed stage.
pub trait Stage: Debug + Send + Sync {
    /// `$match`, as written.
    fn name(&self) -> &'static str;

    /// The stream of what comes out, given what goes in. Nothing is read before the first `advance`.
    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>>;

    /// What it must see of its input, given what is looked at of its output.
    fn needs(&self, after: &Deps) -> Deps;

    /// What a store could do in its place, if the stage stands where a store's work ends.
    fn pushdown(&self) -> Option<Pushdown<'_>> {
        None
    }

    /// The stage as a function of one document, if it is one: what updates by pipeline use.
    fn transform(&self) -> Option<&dyn Transform> {
        None
    }

    /// Makes documents instead of taking them, so that it stands first and reads no collection.
    fn is_source(&self) -> bool {
        false
    }

    /// Writes to a collection, so that it stands last.
    fn writes(&self) -> bool {
        false
    }

    /// One stage for this and the one after it, if there is one that does the work of both better.
    fn absorb(&self, _next: &dyn Stage) -> Option<Arc<dyn Stage>> {
        None
    }

    /// The stage itself, if it is `$unwind`.
    fn as_unwind(&self) -> Option<&unwind::Unwind> {
        None
    }

    /// The group that it is or counts as, for a store that knows what documents add up to.
    fn group(self: Arc<Self>) -> Option<Arc<Group>> {
        None
    }

    /// The path, if of documents with the same value there it looks at no more than the first, and nothing at the path
    /// is to it what null is.
    fn first_of(&self) -> Option<&Path> {
        None
    }

    /// The same stage where something stands before it that a store or another engine does not do, if that matters.
    fn behind(&self) -> Option<Arc<dyn Stage>> {
        None
    }

    /// What fails in a constant part of a pipeline inside it, which is told after the errors of the stages around it.
    fn early(&self) -> Option<&Error> {
        None
    }

    /// What it does to the fields of a document, for [`places`].
    fn role(&self) -> places::Role<'_> {
        places::Role::Renews
    }

    /// The same stage, dealing with the places of fields that are taken out; `None` if that is nothing to it.
    fn with_places(&self, _places: places::Places) -> Option<Arc<dyn Stage>> {
        None
    }

    /// Whether conditions on its output may be tested on its input instead.
    fn ahead(&self) -> origin::Ahead {
        origin::Ahead::Never
    }

    /// Where the values at a path of its output come from; matters only if conditions may go ahead of it.
    fn origin(&self, _path: &str) -> origin::Origin {
        origin::Origin::Made
    }

    /// Where the documents are to be written that come out of it.
    fn output(&self) -> Option<&output::Output> {
        None
    }

    /// The same stage for a pipeline that looks at no more than the first `count` documents of its output, if it can
    /// make use of that.
    fn first(&self, _count: u64) -> Option<Arc<dyn Stage>> {
        None
    }
}

/// Work that a store does as well as a stage.
#[derive(Clone, Copy, Debug)]
pub enum Pushdown<'a> {
    Filter(&'a Arc<Filter>),
    Sort(&'a Arc<Sort>, Option<u64>),
    Skip(u64),
    Limit(u64),
}

/// What a stage's file exports.
pub(crate) struct Definition {
    /// With its `$`.
    pub name: &'static str,
    pub parse: Parse,
    /// One sentence for the compatibility table.
    pub doc: &'static str,
}

pub(crate) enum Parse {
    Stage(fn(ValueRef<'_>, &Parser<'_>) -> Result<Stages>),
    /// The server answers it where it stands first in a command; nothing in a pipeline can.
    Server,
    /// MongoDB has it, Espalier does not.
    Unsupported,
}

/// One stage, or the stages that one is short for.
pub type Stages = Vec<Arc<dyn Stage>>;

/// What parsing a stage can see.
pub struct Parser<'a> {
    pub scope: &'a Scope,
    pub context: &'a Context,
    /// How many stages this pipeline stands inside of.
    pub depth: usize,
}

/// Every stage of MongoDB 6.0, by name.
static ALL: &[&Definition] = &[
    &add_fields::ADD_FIELDS,
    &bucket::BUCKET,
    &bucket_auto::BUCKET_AUTO,
    &server_stage::CHANGE_STREAM,
    &server_stage::COLL_STATS,
    &count::COUNT,
    &server_stage::CURRENT_OP,
    &densify::DENSIFY,
    &documents::DOCUMENTS,
    &facet::FACET,
    &fill::FILL,
    &unsupported::GEO_NEAR,
    &graph_lookup::GRAPH_LOOKUP,
    &group::GROUP,
    &server_stage::INDEX_STATS,
    &limit::LIMIT,
    &server_stage::LIST_LOCAL_SESSIONS,
    &server_stage::LIST_SESSIONS,
    &lookup::LOOKUP,
    &r#match::MATCH,
    &merge::MERGE,
    &out::OUT,
    &unsupported::PLAN_CACHE_STATS,
    &project::PROJECT,
    &redact::REDACT,
    &replace_root::REPLACE_ROOT,
    &replace_with::REPLACE_WITH,
    &sample::SAMPLE,
    &unsupported::SEARCH,
    &unsupported::SEARCH_META,
    &set::SET,
    &set_window_fields::SET_WINDOW_FIELDS,
    &unsupported::SHARDED_DATA_DISTRIBUTION,
    &skip::SKIP,
    &sort::SORT,
    &sort_by_count::SORT_BY_COUNT,
    &union_with::UNION_WITH,
    &unset::UNSET,
    &unwind::UNWIND,
];

impl Parser<'_> {
    /// Parses one `{$name: argument}`.
    pub fn stage(&self, spec: RawDoc<'_>) -> Result<Stages> {
        let mut elems = spec.iter();
        let (Some(elem), None) = (elems.next(), elems.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(Code(40323), message));
        };
        let name = elem.name();
        let Ok(at) = ALL.binary_search_by(|definition| definition.name.cmp(name)) else {
            return Err(Error::new(Code(40324), format!("Unrecognized pipeline stage name: '{name}'")));
        };
        match ALL[at].parse {
            Parse::Stage(parse) => parse(elem.value(), self),
            Parse::Server => {
                let message = format!("The stage {name} is supported only as the first stage of an aggregate command");
                Err(Error::new(Code::CommandNotSupported, message))
            }
            Parse::Unsupported => {
                Err(Error::new(Code::CommandNotSupported, format!("The stage {name} is not supported yet")))
            }
        }
    }
}

/// Every stage of MongoDB 6.0 and whether it can be used.
pub fn registry() -> impl Iterator<Item = Entry> {
    ALL.iter().map(|definition| {
        let state = match definition.parse {
            Parse::Stage(_) | Parse::Server => State::Supported,
            Parse::Unsupported => State::KnownUnsupported,
        };
        Entry { name: definition.name, state, doc: definition.doc }
    })
}

/// A stage alone, as most definitions give it.
fn one(stage: impl Stage + 'static) -> Result<Stages> {
    Ok(vec![Arc::new(stage)])
}

#[cfg(test)]
mod arrange_tests;
#[cfg(test)]
mod interrupt_tests;
#[cfg(test)]
mod tests;
