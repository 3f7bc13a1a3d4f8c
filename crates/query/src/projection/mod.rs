//! Projections: which fields of a document a client gets, and in which shape. Serves `find`, `$project`, `$unset`
//! and, in the dialect that keeps everything else, `$addFields`.
//!
//! [`parse`] and [`add_fields`] turn a specification into a [`tree::Node`], one for each level of field names;
//! [`apply`] walks a raw document along it once and writes the result, copying untouched fields as they stand.

use espalier_value::{DocBuf, Path, RawDoc, Result, ValueRef};

use crate::context::Context;
use crate::expression::{Deps, Env, Scope};
use crate::filter::Filter;
use crate::registry::{Entry, State};
use crate::stage::origin::{Origin, first};

mod add_fields;
mod apply;
mod keeping;
mod parse;
mod slice;
#[cfg(test)]
mod tests;
mod tree;

use tree::{Action, Node};

/// A parsed projection.
#[derive(Debug)]
pub struct Projection {
    root: Node,
    source: DocBuf,
    positional: bool,
    /// Finds the element that a positional `$` means, if it was given.
    filter: Option<Box<Filter>>,
}

/// The two dialects of a specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The `projection` of a `find`: has `$slice`, `$elemMatch` and the positional `$`.
    Find,
    /// `$project` and `$unset`.
    Aggregate,
}

impl Projection {
    /// Parses a specification. An empty one is refused in a pipeline and lets everything through in a `find`.
    pub fn parse(spec: RawDoc<'_>, scope: &Scope, kind: Kind) -> Result<Projection> {
        let parsed = parse::parse(spec, scope, kind)?;
        if kind == Kind::Find {
            scope.settle()?;
        }
        let source = DocBuf::from_raw(spec);
        Ok(Projection { root: parsed.root, positional: parsed.positional, source, filter: None })
    }

    /// Gives it the filter of the command, from which a positional `$` takes the element. It then finds the position by
    /// itself, as MongoDB does: with the conditions in the order in which they are written, not as they are run.
    pub fn with_filter(mut self, filter: RawDoc<'_>, scope: &Scope) -> Result<Projection> {
        if self.positional {
            self.filter = Some(Box::new(Filter::parse_in_order(filter, scope)?));
        }
        Ok(self)
    }

    /// Parses the specification of `$addFields` and `$set`: computed fields beside everything there is.
    pub fn parse_add_fields(spec: RawDoc<'_>, scope: &Scope) -> Result<Projection> {
        let root = add_fields::parse(spec, scope)?;
        Ok(Projection { root, positional: false, source: DocBuf::from_raw(spec), filter: None })
    }

    /// Writes the projected document to `out`, replacing what is there. `position` is the array index at which the
    /// filter matched; it matters only if [`Projection::needs_position`].
    pub fn apply(&self, doc: RawDoc<'_>, position: Option<usize>, context: &Context, out: &mut DocBuf) -> Result<()> {
        let position = match &self.filter {
            Some(filter) => filter.matches_at(doc, context)?.and_then(|found| found.position),
            None => position,
        };
        out.clear();
        let run = apply::Run { env: Env::new(doc, context), position };
        out.append_with(|bytes| run.document(&self.root, doc, apply::Place::TOP, bytes))
    }

    /// As [`Projection::apply`] in a pipeline, but keeps the places of fields that are taken out, for a later stage that
    /// puts them back.
    pub(crate) fn apply_keeping(&self, doc: RawDoc<'_>, context: &Context, out: &mut DocBuf) -> Result<()> {
        out.clear();
        let run =
            keeping::Keeping { env: Env::new(doc, context), reserves: self.root.computes && !self.root.keeps_rest };
        out.append_with(|bytes| run.document(&self.root, doc, bytes))
    }

    /// The top-level fields that may come out missing though they have a place.
    pub(crate) fn vacates(&self) -> impl Iterator<Item = &str> {
        let keeps = self.root.keeps_rest || self.root.computes;
        (self.root.fields.iter().filter(move |_| keeps))
            .filter(|f| !matches!(f.action, Action::Include))
            .map(|f| &*f.name)
    }

    /// The top-level fields that it puts where they were.
    pub(crate) fn fills(&self) -> impl Iterator<Item = &str> {
        let fills = |action: &Action| match action {
            Action::Compute(_) => true,
            Action::Child(child) => child.computes,
            _ => false,
        };
        (self.root.fields.iter()).filter(move |f| self.root.keeps_rest && fills(&f.action)).map(|f| &*f.name)
    }

    /// As [`Projection::apply`], for one parsed in a scope with variables: `bound` are their values, `None` is missing.
    pub(crate) fn apply_bound<'d>(
        &'d self,
        doc: RawDoc<'d>,
        bound: impl Iterator<Item = Option<ValueRef<'d>>>,
        context: &'d Context,
        out: &mut DocBuf,
    ) -> Result<()> {
        out.clear();
        let mut env = Env::new(doc, context);
        bound.for_each(|value| env.push(value));
        let run = apply::Run { env, position: None };
        out.append_with(|bytes| run.document(&self.root, doc, apply::Place::TOP, bytes))
    }

    /// Whether it has a positional `$` and no filter to find its position with.
    pub fn needs_position(&self) -> bool {
        self.positional && self.filter.is_none()
    }

    /// The paths it reads; `None` if it needs the whole document.
    pub fn fields_needed(&self) -> Option<Vec<Path>> {
        let deps = self.dependencies();
        let mut needed: Vec<Path> = Vec::new();
        // Sorted, so a path comes before those below it.
        for path in deps.paths()?.map(Path::new) {
            if !needed.iter().any(|above| above.is_prefix_of(&path)) {
                needed.push(path);
            }
        }
        Some(needed)
    }

    /// What it reads of a document.
    pub fn dependencies(&self) -> Deps {
        let mut deps = Deps::default();
        self.root.collect("", &mut deps);
        deps
    }

    /// What it reads, given what is looked at of its result.
    pub fn needs(&self, after: &Deps) -> Deps {
        if !self.root.keeps_rest {
            return self.dependencies();
        }
        let mut deps = after.clone();
        self.root.collect_computed(&mut deps);
        deps
    }

    /// True if it only picks existing fields: nothing computed, cut or searched.
    pub fn is_simple_inclusion(&self) -> bool {
        !self.root.keeps_rest && self.root.leaves().all(|action| matches!(action, Action::Include))
    }

    /// True if it names fields inside of others.
    pub fn is_dotted(&self) -> bool {
        self.source().iter().any(|elem| elem.name().contains('.') || elem.value().as_doc().is_some())
    }

    /// True if everything that is not named is kept.
    pub fn is_exclusion(&self) -> bool {
        self.root.keeps_rest
    }

    /// True if it only leaves fields out.
    pub fn is_simple_exclusion(&self) -> bool {
        self.root.keeps_rest && self.root.leaves().all(|action| matches!(action, Action::Exclude))
    }

    /// Whether the top-level field comes out exactly as it went in (or is missing in both).
    pub fn preserves(&self, name: &str) -> bool {
        match self.root.find(name.as_bytes()) {
            Some(at) => matches!(self.root.fields[at].action, Action::Include),
            None => self.root.keeps_rest,
        }
    }

    /// Where the values at a path of the result come from.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        let name = first(path);
        match self.root.find(name.as_bytes()).map(|at| &self.root.fields[at].action) {
            None if self.root.keeps_rest => Origin::Same,
            Some(Action::Include) => Origin::Same,
            Some(Action::Compute(expression)) => match expression.as_field_path() {
                Some(from) if from.is_single() => Origin::renamed(path, name, from.as_str()),
                _ => Origin::Made,
            },
            _ => Origin::Made,
        }
    }

    /// The specification it was parsed from.
    pub fn source(&self) -> RawDoc<'_> {
        self.source.as_raw()
    }
}

/// The projection operators of MongoDB 6.0.
pub fn registry() -> impl Iterator<Item = Entry> {
    [
        ("$", State::Supported, "Keeps the first array element that the filter matched."),
        ("$elemMatch", State::Supported, "Keeps the first array element that meets a condition."),
        ("$meta", State::KnownUnsupported, "Adds what the server knows about a document, such as its text score."),
        ("$slice", State::Supported, "Keeps a run of an array's elements."),
    ]
    .into_iter()
    .map(|(name, state, doc)| Entry { name, state, doc })
}
