//! Aggregation expressions: `{$add: ["$price", 1]}`. Parsed once; constant parts are folded; evaluation lends values
//! from the document where it can.

use std::cell::RefCell;

use espalier_value::{RawDoc, Result, Value, ValueRef};

use crate::context::Context;

/// A parsed expression.
#[derive(Debug)]
pub struct Expression {
    root: Node,
}

#[derive(Debug)]
enum Node {
    Literal(Value<'static>),
}

/// Names that are in scope while parsing: the command's `let`, then those of enclosing `$let`, `$map`, ….
/// A name is resolved to a slot once, so that evaluation looks nothing up.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    names: Vec<Box<str>>,
}

impl Scope {
    /// The scope of a command whose context carries these `let` variables.
    pub fn of(context: &Context) -> Scope {
        Scope { names: context.lets.iter().map(|(name, _)| name.clone()).collect() }
    }
}

/// What an evaluation can see: the document, and the slots of the variables in scope.
pub struct Env<'a> {
    pub root: RawDoc<'a>,
    pub context: &'a Context,
    slots: RefCell<Vec<Value<'a>>>,
}

impl<'a> Env<'a> {
    pub fn new(root: RawDoc<'a>, context: &'a Context) -> Env<'a> {
        let slots = context.lets.iter().map(|(_, value)| value.clone()).collect();
        Env { root, context, slots: RefCell::new(slots) }
    }
}

impl Expression {
    pub fn parse(value: ValueRef<'_>, _scope: &Scope) -> Result<Expression> {
        Ok(Expression { root: Node::Literal(Value::own(value)) })
    }

    pub fn eval<'a>(&'a self, _env: &Env<'a>) -> Result<Value<'a>> {
        match &self.root {
            Node::Literal(value) => Ok(value.as_ref().into()),
        }
    }
}
