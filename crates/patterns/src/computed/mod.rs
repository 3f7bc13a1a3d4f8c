//! `computed`: aggregates over the documents of another collection, kept in the one they belong to.
//!
//! Invariant: each field equals the aggregation over the documents of the source that belong to the document.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `from` | required | the collection that is summed up |
//! | `on` | required | `{productId: "_id"}`: the field of the source that equals which field of this collection |
//! | `into` | required | the object in which the fields are kept |
//! | `fields` | required | `{name: {$avg: "$rating", round: 1}}`; `$count $sum $avg $min $max $countBy $first $last` |
//! | `sums` | `sums` | the field beside them that keeps the exact sums that averages are made of |
//! | `freshness` | `commit` | or a time such as `1s`: how much later the fields may follow |
//!
//! Documents of the source whose `on` field is missing, null or a list belong to nobody.

mod declare;
mod field;
mod sum;

use std::time::Duration;

use espalier_query::Context;
use espalier_query::expression::{Env, Scope};
use espalier_store::{Namespace, Transaction};
use espalier_value::{Path, RawDoc, Result};

pub use declare::COMPUTED;
use field::{Field, State};

use crate::derive::{Key, Link, Moved, Patch, Reads, Summary};
use crate::freshness::Freshness;

/// A declaration, read.
#[derive(Debug)]
pub(crate) struct Computed {
    link: Link,
    fields: Vec<Field>,
    reads: Reads,
    owns: Vec<Path>,
    freshness: Freshness,
    noted: Option<Path>,
}

impl Summary for Computed {
    fn kind(&self) -> &'static str {
        "computed"
    }

    fn link(&self) -> &Link {
        &self.link
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn owns(&self) -> &[Path] {
        &self.owns
    }

    fn behind(&self) -> Vec<Vec<(Path, bool)>> {
        self.fields.iter().filter_map(Field::behind).collect()
    }

    fn anew(&self, at: &dyn Transaction, ns: &Namespace, key: Option<&Key>, context: &Context) -> Result<Patch> {
        let mut patch = Patch::default();
        let all: Vec<Left<'_>> = self.fields.iter().map(|field| (field, None)).collect();
        self.count(at, ns, key, &all, context, &mut patch)?;
        Ok(patch)
    }

    fn within(&self) -> Option<Duration> {
        self.freshness.within
    }

    fn noted(&self) -> Option<&Path> {
        self.noted.as_ref()
    }

    fn told(&self, moved: &Moved<'_>, context: &Context) -> Result<Option<Patch>> {
        let mut patch = Patch::default();
        let left = self.tell(moved, context, &mut patch)?;
        Ok(left.is_empty().then_some(patch))
    }

    fn adjusted(&self, at: &dyn Transaction, ns: &Namespace, moved: &Moved<'_>, context: &Context) -> Result<Patch> {
        let mut patch = Patch::default();
        let left = self.tell(moved, context, &mut patch)?;
        self.count(at, ns, Some(moved.key), &left, context, &mut patch)?;
        Ok(patch)
    }
}

/// A field that the source has to be asked for, and what its value cannot go beyond.
type Left<'f> = (&'f Field, Option<State>);

impl Computed {
    /// Puts what follows from the documents that went and came into the patch; gives the fields that it does not tell.
    fn tell(&self, moved: &Moved<'_>, context: &Context, patch: &mut Patch) -> Result<Vec<Left<'_>>> {
        let mut left = Vec::new();
        for field in &self.fields {
            let mut state = field.read(moved.owner);
            let mut bound = field.read(moved.owner);
            for (docs, came) in [(moved.gone, false), (moved.come, true)] {
                for doc in docs {
                    let value = field.value(*doc, context)?;
                    state = state.and_then(|state| state.moved(value.as_ref(), came));
                    if came && let Some(bound) = &mut bound {
                        bound.add(value.as_ref());
                    }
                }
            }
            match state {
                Some(state) => field.write(state, patch, context)?,
                None => left.push((field, bound)),
            }
        }
        Ok(left)
    }

    /// Goes through the documents of the source for these fields: all of them at once, or to the one that decides.
    fn count(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        key: Option<&Key>,
        fields: &[Left<'_>],
        context: &Context,
        patch: &mut Patch,
    ) -> Result<()> {
        let (ordered, counted): (Vec<&Left<'_>>, Vec<&Left<'_>>) =
            fields.iter().partition(|(field, _)| field.order().is_some());
        for (field, _) in ordered {
            let mut state = field.empty();
            if let Some(key) = key {
                self.link.members(at, ns, key, field.order(), |doc| {
                    context.interrupt.check()?;
                    let value = field.value(doc, context)?;
                    Ok(!state.settle(value.as_ref()))
                })?;
            }
            field.write(state, patch, context)?;
        }
        if counted.is_empty() {
            return Ok(());
        }
        let mut states: Vec<State> = counted.iter().map(|(field, _)| field.empty()).collect();
        if let Some(key) = key {
            self.link.members(at, ns, key, None, |doc| {
                context.interrupt.check()?;
                let mut more = false;
                for ((field, bound), state) in counted.iter().zip(&mut states) {
                    let value = field.value(doc, context)?;
                    state.add(value.as_ref());
                    more |= !state.reaches(bound.as_ref());
                }
                Ok(more)
            })?;
        }
        for ((field, _), state) in counted.iter().zip(states) {
            field.write(state, patch, context)?;
        }
        Ok(())
    }
}

/// The value of an expression for a document.
fn eval<'d>(
    expression: &espalier_query::Expression,
    doc: RawDoc<'d>,
    context: &'d Context,
) -> Result<espalier_value::Value<'static>> {
    Ok(expression.eval(&Env::new(doc, context))?.into_owned())
}

/// Expressions in a declaration know no variables of a command.
fn scope() -> Scope {
    Scope::default()
}
