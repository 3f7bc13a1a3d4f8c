//! Aggregation expressions: `{$add: ["$price", 1]}`. Parsed once; constant parts are folded; evaluation lends values
//! from the document where it can.
//!
//! [`parse`] turns BSON into a tree of [`node::Node`]s and resolves every variable to a slot. An operator is one file in
//! the folder of its family, exporting one `static` [`operator::Operator`]; the family's `mod.rs` lists them in order of
//! name. A strict operator is a function of its evaluated arguments; a special one parses its own argument into
//! a [`node::Custom`] that decides what to evaluate (`$cond`, `$let`, `$map`, …).

use espalier_value::{Collator, Path, Result, Value, ValueRef};

pub mod deps;
mod early;
mod env;
pub mod field_path;
mod given;
mod node;
mod operator;
mod parse;
mod prelude;
mod scope;
mod sorted_output;
mod steps;

mod arithmetic;
mod array;
mod boolean;
mod comparison;
mod conditional;
mod data_size;
mod date;
mod literal;
mod misc;
mod object;
mod set;
mod string;
mod trigonometry;
mod types;
mod variable;

#[cfg(test)]
mod tests;

pub(crate) use date::time_unit::TimeUnit;
pub use deps::Deps;
pub use env::Env;
pub use scope::{Scope, validate_name_to_define};
pub use steps::Steps;

pub(crate) use array::n_of::count as count_of;
use node::Node;
pub(crate) use operator::{Args, Eval, Operator};
pub(crate) use sorted_output::sorted_output;

/// A parsed expression.
#[derive(Debug)]
pub struct Expression {
    root: Node,
}

impl Expression {
    pub fn parse(value: ValueRef<'_>, scope: &Scope) -> Result<Expression> {
        Ok(Expression { root: parse::operand(value, scope)? })
    }

    /// A constant.
    pub fn literal(value: ValueRef<'_>) -> Expression {
        Expression { root: Node::Literal(Value::own(value)) }
    }

    /// The field at a path of the root document; the path is taken as it is.
    pub fn field(path: Path) -> Expression {
        Expression { root: Node::Field(path) }
    }

    #[inline]
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        self.root.eval(env)
    }

    /// True if it gives the same value for every document; the value is then [`Expression::as_constant`].
    pub fn is_constant(&self) -> bool {
        matches!(self.root, Node::Literal(_))
    }

    pub fn as_constant(&self) -> Option<&Value<'static>> {
        match &self.root {
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// The path of a plain `"$a.b"`.
    pub fn as_field_path(&self) -> Option<&Path> {
        match &self.root {
            Node::Field(path) => Some(path),
            _ => None,
        }
    }

    /// As [`Expression::part`], for the one field of an object.
    pub(crate) fn only_part(&self) -> Option<&Path> {
        match &self.root {
            Node::Object(fields) if fields.len() == 1 => self.part(&fields.first()?.0),
            _ => None,
        }
    }

    /// The path of a field of an object, if that is a plain `"$a.b"` or one with null in its place where it is missing.
    pub(crate) fn part(&self, name: &str) -> Option<&Path> {
        let Node::Object(fields) = &self.root else { return None };
        match &fields.iter().find(|(field, _)| **field == *name)?.1 {
            Node::Field(path) => Some(path),
            Node::Custom(custom) => custom.field_or_null(),
            _ => None,
        }
    }

    /// What it reads of the root document.
    pub fn dependencies(&self) -> Deps {
        let mut deps = Deps::default();
        self.root.collect(&mut deps);
        deps
    }
}

/// Whether a value counts as true: everything but null, undefined, missing, false and zero.
pub fn truthy(value: &Value<'_>) -> bool {
    value.as_ref().is_some_and(truthy_ref)
}

pub fn truthy_ref(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null | ValueRef::Undefined => false,
        ValueRef::Bool(b) => b,
        ValueRef::Int32(i) => i != 0,
        ValueRef::Int64(i) => i != 0,
        ValueRef::Double(x) => x != 0.0,
        ValueRef::Decimal(_) => espalier_value::number::Number::of(value).is_some_and(|n| !n.is_zero()),
        _ => true,
    }
}

/// BSON order with a place for missing: beside undefined, below null.
pub fn compare_values(a: &Value<'_>, b: &Value<'_>, collator: Collator<'_>) -> std::cmp::Ordering {
    let known = |v: Option<_>| v.unwrap_or(ValueRef::Undefined);
    collator.compare(known(a.as_ref()), known(b.as_ref()))
}

/// The families in the order of their names; each is sorted by operator name.
static FAMILIES: &[&[&Operator]] = &[
    arithmetic::ALL,
    array::ALL,
    boolean::ALL,
    comparison::ALL,
    conditional::ALL,
    data_size::ALL,
    date::ALL,
    literal::ALL,
    misc::ALL,
    object::ALL,
    set::ALL,
    string::ALL,
    trigonometry::ALL,
    types::ALL,
    variable::ALL,
    crate::accumulator::EXPRESSIONS,
];

fn find_operator(name: &str) -> Option<&'static Operator> {
    FAMILIES.iter().find_map(|family| family.binary_search_by(|op| op.name.cmp(name)).ok().map(|at| family[at]))
}

/// Every expression operator of MongoDB 6.0, by family.
pub fn registry() -> impl Iterator<Item = crate::registry::Entry> {
    FAMILIES.iter().flat_map(|family| family.iter()).map(|op| op.entry())
}
