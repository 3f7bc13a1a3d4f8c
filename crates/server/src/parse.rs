//! The parts that several commands share: filters, sorts, hints, projections, `let`, collations.

use std::sync::Arc;

use espalier_query::expression::{Env, Scope, validate_name_to_define};
use espalier_query::projection::{Kind, Projection};
use espalier_query::sort::{Order, Sort};
use espalier_query::{Context, Expression, Filter};
use espalier_store::Hint;
use espalier_value::{Collation, DocBuf, Error, RawDoc, Result, ValueRef};

use crate::fields::Field;

pub fn filter(doc: RawDoc<'_>, scope: &Scope) -> Result<Arc<Filter>> {
    if doc.is_empty() {
        return Ok(Arc::new(Filter::empty()));
    }
    Filter::parse(doc, scope).map(Arc::new)
}

/// Evaluates a command's `let` into its context; gives the scope for everything parsed after it.
pub fn lets(spec: Option<RawDoc<'_>>, context: &mut Context) -> Result<Scope> {
    let Some(spec) = spec else { return Ok(Scope::of(context)) };
    for elem in spec {
        validate_name_to_define(elem.name())?;
        // A later variable may use an earlier one.
        let scope = Scope::of(context);
        let expression = Expression::parse(elem.value(), &scope)?;
        let value = {
            let env = Env::new(RawDoc::EMPTY, context);
            expression.eval(&env)?.into_owned()
        };
        context.lets.push((elem.name().into(), value));
    }
    Ok(Scope::of(context))
}

/// A sort, or the natural order, which is a way of reading.
pub fn order(spec: Option<RawDoc<'_>>, scope: &Scope) -> Result<(Option<Arc<Sort>>, Option<Hint>)> {
    let Some(spec) = spec else { return Ok((None, None)) };
    Ok(match Sort::parse_order(spec, scope)? {
        None => (None, None),
        Some(Order::Fields(sort)) => (Some(Arc::new(sort)), None),
        Some(Order::Natural { reverse }) => (None, Some(Hint::Natural { reverse })),
    })
}

pub fn hint(value: ValueRef<'_>) -> Result<Option<Hint>> {
    match value {
        ValueRef::String(name) => Ok(Some(Hint::Name(name.into()))),
        ValueRef::Document(doc) if doc.is_empty() => Ok(None),
        ValueRef::Document(doc) => match doc.elem("$natural") {
            Some(_) => Ok(order(Some(doc), &Scope::default())?.1),
            None => Ok(Some(Hint::Key(DocBuf::from_raw(doc)))),
        },
        value if value.is_nullish() => Ok(None),
        _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
    }
}

/// A command's `collation` before it is looked at; an empty one is none.
pub fn collation<'a>(field: &Field<'a, '_>) -> Result<Option<RawDoc<'a>>> {
    Ok(field.doc()?.filter(|doc| !doc.is_empty()))
}

/// Scope and context of one write of several, which may name a collation of its own.
pub fn own_collation(
    asked: Option<RawDoc<'_>>,
    scope: &Scope,
    context: &Arc<Context>,
) -> Result<(Scope, Arc<Context>)> {
    let Some(asked) = asked else { return Ok((scope.clone(), Arc::clone(context))) };
    let collation = Collation::parse(asked, "")?;
    Ok((scope.clone().collated(collation.clone()), Arc::new(context.with_collation(collation))))
}

/// A `find`'s projection; an empty one is none. The filter is what a positional `$` refers to.
pub fn projection(spec: Option<RawDoc<'_>>, filter: RawDoc<'_>, scope: &Scope) -> Result<Option<Arc<Projection>>> {
    match spec {
        Some(spec) if !spec.is_empty() => {
            let projection = Projection::parse(spec, scope, Kind::Find)?.with_filter(filter, scope)?;
            Ok(Some(Arc::new(projection)))
        }
        _ => Ok(None),
    }
}
