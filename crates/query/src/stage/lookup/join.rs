//! `{$match: {$expr: {$eq: ["$field", …]}}}` at the beginning of a correlated pipeline: what the expression lets
//! through has the value at the field, so that an index or a table can find it. The pipeline itself still runs in
//! full on what is found.

use espalier_value::{Path, RawArray, RawDoc, Result, Value, ValueRef};

use crate::context::Context;
use crate::expression::{Env, Expression, Scope, field_path};

#[derive(Debug)]
pub(super) struct Join {
    pub path: Path,
    value: Expression,
}

impl Join {
    /// Looks for one in the first stage.
    pub fn find(stages: RawArray<'_>, scope: &Scope) -> Option<Join> {
        let filter = stages.get(0)?.as_doc()?.get("$match")?.as_doc()?;
        in_filter(filter, scope)
    }

    /// The value that the field must have; `None` if it has to be looked for in another way: what equals null or an
    /// array in an expression is not what equals it in a filter.
    pub fn value(&self, context: &Context) -> Result<Option<Value<'static>>> {
        let value = self.value.eval(&Env::new(RawDoc::EMPTY, context))?;
        let fit = value.as_ref().is_some_and(|value| !value.is_nullish() && value.as_array().is_none());
        Ok(fit.then(|| value.into_owned()))
    }
}

fn in_filter(filter: RawDoc<'_>, scope: &Scope) -> Option<Join> {
    filter.iter().find_map(|elem| match (elem.name(), elem.value()) {
        ("$expr", ValueRef::Document(expression)) => in_expression(expression, scope),
        ("$and", ValueRef::Array(parts)) => {
            parts.iter().filter_map(ValueRef::as_doc).find_map(|part| in_filter(part, scope))
        }
        _ => None,
    })
}

fn in_expression(expression: RawDoc<'_>, scope: &Scope) -> Option<Join> {
    let first = expression.first()?;
    let ValueRef::Array(arguments) = first.value() else { return None };
    match first.name() {
        "$and" => arguments.iter().filter_map(ValueRef::as_doc).find_map(|part| in_expression(part, scope)),
        "$eq" => {
            let (a, b) = (arguments.get(0)?, arguments.get(1)?);
            sides(a, b, scope).or_else(|| sides(b, a, scope))
        }
        _ => None,
    }
}

fn sides(field: ValueRef<'_>, value: ValueRef<'_>, scope: &Scope) -> Option<Join> {
    let path = field.as_str()?.strip_prefix('$').filter(|path| !path.starts_with('$'))?;
    let value = Expression::parse(value, scope).ok()?;
    if !value.dependencies().is_none() || value.is_constant() {
        return None;
    }
    Some(Join { path: field_path::parse(path).ok()?, value })
}
