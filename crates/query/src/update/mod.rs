//! Updates: operator documents (`{$set: …}`), replacement documents and pipelines. Parsed once; `apply` writes the
//! updated document from the raw bytes of the old one, copying what is not touched.
//!
//! A walk through `{$inc: {"a.n": 1}, $push: {tags: "x"}}`: `operators` reads each path into the `tree`, refusing
//! conflicts; `apply` lets `walk` pass over the document once, which copies runs of untouched fields, enters `a`,
//! lends the values at `a.n` and `tags` to their `operator` as a slot and writes what those say; what is missing is
//! created at the end of its parent. Nothing written yet counts until the whole walk has succeeded.

use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::Scope;
use crate::registry::Entry;

mod array_filters;
mod branches;
mod describe;
mod diff;
mod id;
mod insert;
mod names;
mod nesting;
mod operator;
mod operators;
mod path;
mod pipeline;
mod replacement;
mod trail;
mod tree;
mod upsert;
mod walk;

pub use describe::Description;
pub use insert::{Prepared, prepare_insert};

use operators::Operators;
use pipeline::Stages;
use replacement::Replacement;

/// A parsed update.
#[derive(Debug)]
pub struct Update {
    body: Body,
}

#[derive(Debug)]
enum Body {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Stages),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Replacement,
    Operators,
    Pipeline,
}

/// What an update needs to know beside the document.
#[derive(Clone, Copy)]
pub struct Apply<'a> {
    pub context: &'a Context,
    /// The index of the array element that the filter matched, which `$` stands for.
    pub position: Option<usize>,
    /// True for the document an upsert is about to insert: `$setOnInsert` has effect.
    pub inserting: bool,
}

impl<'a> Apply<'a> {
    pub fn new(context: &'a Context) -> Apply<'a> {
        Apply { context, position: None, inserting: false }
    }
}

impl Update {
    /// Parses the `u` of an update command (a document, or an array: a pipeline) with its `arrayFilters`. Everything
    /// that is wrong with it whatever the document is refused here.
    pub fn parse(spec: ValueRef<'_>, array_filters: &[RawDoc<'_>], scope: &Scope) -> Result<Update> {
        let body = match spec {
            ValueRef::Document(doc) if doc.first().is_some_and(|e| e.name_bytes().starts_with(b"$")) => {
                Body::Operators(Operators::parse(doc, array_filters, scope)?)
            }
            ValueRef::Document(doc) => Body::Replacement(Replacement::parse(doc)?),
            ValueRef::Array(_) if !array_filters.is_empty() => {
                let message = "arrayFilters may not be specified for pipeline-style updates";
                return Err(Error::failed_to_parse(message));
            }
            ValueRef::Array(stages) => Body::Pipeline(Stages::parse(stages, scope)?),
            _ => {
                let message = "Update argument must be either an object or an array";
                return Err(Error::failed_to_parse(message));
            }
        };
        Ok(Update { body })
    }

    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Operators(_) => Kind::Operators,
            Body::Replacement(_) => Kind::Replacement,
            Body::Pipeline(_) => Kind::Pipeline,
        }
    }

    /// Whether a path has `$`, so that `apply` needs the position the filter matched.
    pub fn needs_position(&self) -> bool {
        match &self.body {
            Body::Operators(operators) => operators.needs_position(),
            Body::Replacement(_) | Body::Pipeline(_) => false,
        }
    }

    /// The updated document, or `None` if the update changes nothing. After an error nothing has changed.
    pub fn apply(&self, doc: RawDoc<'_>, how: &Apply<'_>) -> Result<Option<DocBuf>> {
        match &self.body {
            Body::Operators(operators) => operators.apply(doc, how),
            Body::Replacement(replacement) => replacement.apply(doc, how.context),
            Body::Pipeline(stages) => stages.apply(doc, how.context),
        }
    }

    /// As [`Update::apply`], with what change streams tell of it.
    pub fn apply_described(&self, doc: RawDoc<'_>, how: &Apply<'_>) -> Result<Option<(DocBuf, Description)>> {
        match &self.body {
            Body::Operators(operators) => operators.apply_described(doc, how),
            Body::Replacement(replacement) => {
                Ok(replacement.apply(doc, how.context)?.map(|updated| (updated, Description::Replaced)))
            }
            Body::Pipeline(stages) => Ok(stages.apply(doc, how.context)?.map(|updated| {
                let told = diff::description(doc, updated.as_raw());
                (updated, told)
            })),
        }
    }

    /// The paths that the update may write at or below, up to the first part that depends on the document; `None` if
    /// it may write anywhere. An index on a path that is neither above, at nor below one of them stays as it is.
    pub fn touched_paths(&self) -> Option<&[Path]> {
        match &self.body {
            Body::Operators(operators) => Some(operators.touched()),
            Body::Replacement(_) | Body::Pipeline(_) => None,
        }
    }

    /// The update that stores this document as it is, whatever it looks like: for a layer that has made it itself.
    pub fn stored(doc: DocBuf) -> Update {
        Update { body: Body::Replacement(Replacement::stored(doc)) }
    }

    /// As [`Update::stored`], and written even if the document is that already: for a layer that needs whoever writes the
    /// document at the same time to notice.
    pub fn touched(doc: DocBuf) -> Update {
        Update { body: Body::Replacement(Replacement::touched(doc)) }
    }

    /// True if all it does at or below the path is to append to the array there, whatever the array holds.
    pub fn appends_to(&self, path: &Path) -> bool {
        match &self.body {
            Body::Operators(operators) => operators.appends_to(path),
            Body::Replacement(_) | Body::Pipeline(_) => false,
        }
    }

    /// The fields that the update adds to by `$inc`, if that is all it does and each is named in full.
    pub fn increments(&self) -> Option<&[Path]> {
        match &self.body {
            Body::Operators(operators) => operators.increments(),
            Body::Replacement(_) | Body::Pipeline(_) => None,
        }
    }

    /// The document to insert where no document matched: the filter's equalities, then the update. `_id` is the
    /// filter's or the update's, else `new_id`, and stands first.
    pub fn upsert(&self, equalities: &[(&Path, ValueRef<'_>)], new_id: [u8; 12], context: &Context) -> Result<DocBuf> {
        upsert::document(self, equalities, new_id, context)
    }
}

/// MongoDB's update operators and what Espalier does with them.
pub fn registry() -> impl Iterator<Item = Entry> {
    operator::entries()
}

/// The time as a BSON timestamp, for `$currentDate` and for zero timestamps that the server fills in.
fn timestamp(context: &Context) -> u64 {
    match context.cluster_time {
        0 => ((context.now_ms.max(0) as u64 / 1000) << 32) | 1,
        time => time,
    }
}

fn immutable_id(path: &str) -> Error {
    let message = format!("Performing an update on the path '{path}' would modify the immutable field '_id'");
    Error::new(Code::ImmutableField, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod model;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
