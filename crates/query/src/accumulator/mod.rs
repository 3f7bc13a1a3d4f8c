//! Accumulators: what `$group`, windows and computed fields make of many values.
//!
//! One file each: a `static` [`Definition`] and a state that takes values (`push`), takes the [`Accumulator::partial`]
//! of another state of its kind (`merge`: parallel groups, groups spilled to disk), gives one back where it can
//! (`retract`) and yields its result (`finish`). [`parse`] turns `{$sum: "$price"}` into an [`AccumulatorSpec`], which holds
//! the expression to evaluate for each document and makes a [`State`] for each group.

use std::sync::Arc;

use espalier_value::{Code, Collation, Error, RawDoc, Result, Value, ValueRef};

use crate::context::Context;
use crate::expression::{Env, Expression, Operator, Scope};
use crate::registry::Entry;

mod add_to_set;
mod avg;
mod bottom;
mod bottom_n;
mod count;
mod definition;
mod expression_form;
mod first;
mod first_n;
mod javascript;
mod last;
mod last_n;
mod limited;
mod max;
mod max_n;
pub(crate) mod merge_objects;
mod min;
mod min_n;
mod push;
mod ranked;
mod state;
mod std_dev;
mod std_dev_pop;
mod std_dev_samp;
mod sum;
pub(crate) mod summation;
#[cfg(test)]
mod tests;
mod top;
mod top_n;

use definition::{Definition, Given, Make, Parse};
pub(crate) use ranked::pair;
pub use state::State;

/// The accumulators in order of name.
static ALL: &[&Definition] = &[
    &javascript::ACCUMULATOR,
    &add_to_set::ADD_TO_SET,
    &avg::AVG,
    &bottom::BOTTOM,
    &bottom_n::BOTTOM_N,
    &count::COUNT,
    &first::FIRST,
    &first_n::FIRST_N,
    &last::LAST,
    &last_n::LAST_N,
    &max::MAX,
    &max_n::MAX_N,
    &merge_objects::MERGE_OBJECTS,
    &min::MIN,
    &min_n::MIN_N,
    &push::PUSH,
    &std_dev_pop::STD_DEV_POP,
    &std_dev_samp::STD_DEV_SAMP,
    &sum::SUM,
    &top::TOP,
    &top_n::TOP_N,
];

/// Those that are expressions too: `{$sum: ["$a", "$b"]}`. In order of name.
pub(crate) static EXPRESSIONS: &[&Operator] = &[
    &avg::EXPRESSION,
    &max::EXPRESSION,
    &min::EXPRESSION,
    &std_dev_pop::EXPRESSION,
    &std_dev_samp::EXPRESSION,
    &sum::EXPRESSION,
];

/// The state of one accumulator in one group.
pub trait Accumulator: Send + std::fmt::Debug {
    /// Takes the value that the expression gave for a document; `None` is missing.
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()>;

    /// True if no further value matters: then the expression need not, and must not, be evaluated.
    fn is_full(&self) -> bool {
        false
    }

    /// Takes what another state of the same kind has gathered. Its values count as later than this one's.
    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()>;

    /// What was gathered so far, in a form that [`Accumulator::merge`] takes and that can be stored.
    fn partial(&self) -> Value<'static>;

    /// Takes a pushed value back. False if this cannot be done exactly; the caller must then compute anew.
    fn retract(&mut self, _value: Option<ValueRef<'_>>) -> bool {
        false
    }

    fn finish(&mut self) -> Value<'static>;

    /// The result so far; more may come.
    fn peek(&mut self) -> Value<'static> {
        self.finish()
    }

    /// Bytes held, for the memory limit of a blocking stage.
    fn memory(&self) -> usize;
}

/// A parsed accumulator of a `$group` or window field.
#[derive(Debug)]
pub struct AccumulatorSpec {
    name: &'static str,
    expression: Expression,
    /// `n`, evaluated once for each group on the group's `_id`.
    count: Option<Expression>,
    make: Make,
    /// How it compares strings.
    collation: Option<Arc<Collation>>,
}

impl AccumulatorSpec {
    /// The operator, `$sum`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What to evaluate for each document and push.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// Takes the expression out, for a caller that keeps it elsewhere.
    pub(crate) fn take_expression(&mut self) -> Expression {
        std::mem::replace(&mut self.expression, Expression::literal(ValueRef::Null))
    }

    /// The state of a new group. `key` is the document that `n` may refer to: the fields of the group's `_id`.
    pub fn make(&self, key: RawDoc<'_>, context: &Context) -> Result<State> {
        let count = self.count(key, context)?;
        Ok((self.make)(Given { count, collation: &self.collation }))
    }

    /// `n` for the group of this key; 1 if there is none.
    pub(crate) fn count(&self, key: RawDoc<'_>, context: &Context) -> Result<usize> {
        match &self.count {
            None => Ok(1),
            Some(count) => crate::expression::count_of(&count.eval(&Env::new(key, context))?),
        }
    }
}

/// Parses `{$sum: …}`, the value of `field` in a `$group`.
pub fn parse(field: &str, spec: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    if field.contains('.') {
        return refuse(40235, format!("The field name '{field}' cannot contain '.'"));
    }
    if field.starts_with('$') {
        return refuse(40236, format!("The field name '{field}' cannot be an operator name"));
    }
    let elem = match spec {
        ValueRef::Document(doc) if doc.count() > 1 => {
            return refuse(40238, format!("The field '{field}' must specify one accumulator"));
        }
        ValueRef::Document(doc) => doc.first(),
        _ => None,
    };
    let Some(elem) = elem.filter(|e| e.name().starts_with('$')) else {
        return refuse(40234, format!("The field '{field}' must be an accumulator object"));
    };
    if let (Some(Definition { name, parse: Parse::Unary(_), .. }), ValueRef::Array(_)) =
        (find(elem.name()), elem.value())
    {
        return refuse(40237, format!("The {name} accumulator is a unary operator"));
    }
    parse_argument(elem.name(), elem.value(), scope)
}

fn find(name: &str) -> Option<&'static Definition> {
    ALL.binary_search_by(|definition| definition.name.cmp(name)).ok().map(|at| ALL[at])
}

/// Parses the argument of an accumulator. An array is an expression here, unlike in a `$group`.
pub(crate) fn parse_argument(name: &str, argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let Some(definition) = find(name) else {
        return refuse(15952, format!("unknown group operator '{name}'"));
    };
    match definition.parse {
        Parse::Unary(make) => {
            let expression = Expression::parse(argument, scope)?;
            let collation = scope.collation().clone();
            Ok(AccumulatorSpec { name: definition.name, expression, count: None, make, collation })
        }
        Parse::Special(parse) => parse(argument, scope),
        Parse::Unsupported => refuse(
            Code::CommandNotSupported.0,
            format!("The accumulator {} is known but not supported by Espalier", definition.name),
        ),
    }
}

/// Every accumulator of MongoDB 6.0.
pub fn registry() -> impl Iterator<Item = Entry> {
    ALL.iter().map(|definition| definition.entry())
}
