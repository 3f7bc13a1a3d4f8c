//! What an operator is: a name, the arguments it takes, and how it is evaluated.

use espalier_value::{Code, Collator, Error, RawDoc, Result, Value, ValueRef};

use super::early;
use super::given::Given;
use super::node::{Call, Custom, Node};
use super::parse;
use super::scope::Scope;
use crate::registry::{Entry, State};

/// The definition that an operator's file exports.
pub(crate) struct Operator {
    /// With its `$`.
    pub name: &'static str,
    pub args: Args,
    pub eval: Eval,
    /// One sentence for the compatibility table.
    pub doc: &'static str,
}

/// A function of the evaluated arguments.
pub(crate) type Strict = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>>;

/// As [`Strict`], for an operator that compares values.
pub(crate) type Collated = for<'a> fn(&[Value<'a>], Collator<'_>) -> Result<Value<'a>>;

/// A function that asks for its arguments one by one.
pub(crate) type Lazy = for<'a> fn(&Given<'_, 'a>) -> Result<Value<'a>>;

pub(crate) enum Eval {
    Strict(Strict),
    Collated(Collated),
    /// Evaluates its arguments as it needs them: one that is null can spare the later ones, and of two that fail the
    /// first one asked for is complained about.
    Lazy(Lazy),
    /// Parses its argument itself; [`Operator::args`] is not looked at.
    Special(fn(ValueRef<'_>, &Scope) -> Result<Node>),
    /// MongoDB has it, Espalier does not.
    Unsupported,
}

/// How the argument is read: as a list of expressions (a single one may stand without brackets) or by name.
pub(crate) enum Args {
    Any,
    /// Any number, in any order and grouping.
    Commutative,
    /// Any number, in any grouping.
    Associative,
    Exactly(usize),
    Between(usize, usize),
    Named(&'static Named),
}

/// An argument object whose fields become positional arguments, in the order of `fields`.
pub(crate) struct Named {
    pub fields: &'static [Field],
    /// The code if the argument is no object.
    pub not_object: i32,
    /// The code for a field of another name.
    pub unknown: i32,
}

pub(crate) struct Field {
    pub name: &'static str,
    pub need: Need,
}

#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// The code if it is not given.
    Required(i32),
    /// Null if it is not given.
    Optional,
}

impl Field {
    pub const fn required(name: &'static str, code: i32) -> Field {
        Field { name, need: Need::Required(code) }
    }

    pub const fn optional(name: &'static str) -> Field {
        Field { name, need: Need::Optional }
    }
}

impl Operator {
    pub const fn known_unsupported(name: &'static str, doc: &'static str) -> Operator {
        Operator { name, args: Args::Any, eval: Eval::Unsupported, doc }
    }

    pub fn entry(&self) -> Entry {
        let state = if matches!(self.eval, Eval::Unsupported) { State::KnownUnsupported } else { State::Supported };
        Entry { name: self.name, state, doc: self.doc }
    }

    pub fn parse(&'static self, argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
        let without_early;
        let mut scope = scope;
        if !early::are_operands_folded(self.name) {
            without_early = scope.without_early();
            scope = &without_early;
        }
        match self.eval {
            Eval::Strict(_) | Eval::Collated(_) | Eval::Lazy(_) => {
                Ok(self.call(self.arguments(argument, scope)?, scope))
            }
            Eval::Special(parse) => Ok(parse(argument, scope)?.fold(scope)),
            Eval::Unsupported => Err(Error::new(
                Code::CommandNotSupported,
                format!("The expression {} is known but not supported by Espalier yet", self.name),
            )),
        }
    }

    fn arguments(&'static self, argument: ValueRef<'_>, scope: &Scope) -> Result<Box<[Node]>> {
        let (least, most) = match self.args {
            Args::Any => (0, usize::MAX),
            Args::Commutative | Args::Associative if !scope.evaluates_early() => (0, usize::MAX),
            Args::Commutative => return Ok(self.gather(parse::list(argument, scope)?, scope)),
            Args::Associative => return Ok(self.join(parse::list(argument, scope)?, scope)),
            Args::Exactly(n) => (n, n),
            Args::Between(least, most) => (least, most),
            Args::Named(named) => {
                let given = named.parse(self.name, argument, scope)?;
                return Ok(given.into_iter().map(|node| node.unwrap_or(Node::NULL)).collect());
            }
        };
        let nodes = parse::list(argument, scope)?;
        check_count(self.name, nodes.len(), least, most)?;
        Ok(nodes.into())
    }
}

impl Operator {
    fn call(&'static self, args: Box<[Node]>, scope: &Scope) -> Node {
        let constant = args.iter().all(Node::is_literal);
        if !constant && let Err(error) = early::check(self.name, &args) {
            scope.defer(error);
        }
        Node::Call(Call { operator: self, args, collation: scope.collation().clone() }).fold(scope)
    }

    /// Gathers the constants of an operator that is commutative and associative into one at the end, those of calls
    /// of the same operator among its arguments too. MongoDB does so, and the order shows: in the last digit of a sum, and
    /// in which of two wrong arguments is complained about.
    fn gather(&'static self, nodes: Vec<Node>, scope: &Scope) -> Box<[Node]> {
        let mut rest = Vec::with_capacity(nodes.len());
        let mut constants = Vec::new();
        for node in nodes {
            match node {
                // `$sum` of one argument sums what an array holds, and must stay by itself.
                Node::Call(call) if std::ptr::eq(call.operator, self) && call.args.len() != 1 => {
                    for inner in call.args {
                        if inner.is_literal() { constants.push(inner) } else { rest.push(inner) }
                    }
                }
                node if node.is_literal() => constants.push(node),
                node => rest.push(node),
            }
        }
        if constants.len() > 1 && !rest.is_empty() {
            constants = vec![self.call(constants.into(), scope)];
        }
        rest.extend(constants);
        rest.into()
    }

    /// As [`Operator::gather`] for one whose arguments have an order: constants side by side become one.
    fn join(&'static self, nodes: Vec<Node>, scope: &Scope) -> Box<[Node]> {
        let mut flat = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Call(call) if std::ptr::eq(call.operator, self) => flat.extend(call.args),
                node => flat.push(node),
            }
        }
        if flat.iter().all(Node::is_literal) {
            return flat.into();
        }
        let mut joined = Vec::with_capacity(flat.len());
        let mut constants: Vec<Node> = Vec::new();
        let end = |constants: &mut Vec<Node>, joined: &mut Vec<Node>| match constants.len() {
            0 | 1 => joined.append(constants),
            _ => joined.push(self.call(std::mem::take(constants).into(), scope)),
        };
        for node in flat {
            if node.is_literal() {
                constants.push(node);
            } else {
                end(&mut constants, &mut joined);
                joined.push(node);
            }
        }
        end(&mut constants, &mut joined);
        joined.into()
    }
}

impl Named {
    /// One node for each field, in their order; `None` where an optional one is not given.
    pub fn parse(&self, operator: &str, argument: ValueRef<'_>, scope: &Scope) -> Result<Vec<Option<Node>>> {
        let mut nodes: Vec<Option<Node>> = self.fields.iter().map(|_| None).collect();
        for (at, value) in self.split(operator, argument)?.into_iter().enumerate() {
            if let Some(value) = value {
                nodes[at] = Some(parse::operand(value, scope)?);
            }
        }
        Ok(nodes)
    }

    /// As [`Named::parse`], but leaves the values unparsed.
    pub fn split<'v>(&self, operator: &str, argument: ValueRef<'v>) -> Result<Vec<Option<ValueRef<'v>>>> {
        let doc = object_argument(operator, argument, self.not_object)?;
        let mut values = vec![None; self.fields.len()];
        for elem in doc {
            let Some(at) = self.fields.iter().position(|f| f.name == elem.name()) else {
                let message = format!("{operator} found an unknown argument: {}", elem.name());
                return Err(Error::new(Code(self.unknown), message));
            };
            values[at] = Some(elem.value());
        }
        for (field, value) in self.fields.iter().zip(&values) {
            if let (Need::Required(code), None) = (field.need, value) {
                let message = format!("Missing '{}' parameter to {operator}", field.name);
                return Err(Error::new(Code(code), message));
            }
        }
        Ok(values)
    }
}

/// The argument as an object, or an error with this code.
pub(crate) fn object_argument<'v>(operator: &str, argument: ValueRef<'v>, code: i32) -> Result<RawDoc<'v>> {
    argument.as_doc().ok_or_else(|| {
        let message = format!("{operator} only supports an object as an argument, found {}", argument.ty().name());
        Error::new(Code(code), message)
    })
}

pub(crate) fn check_count(operator: &str, count: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&count) {
        return Ok(());
    }
    Err(if least == most {
        let message = format!("Expression {operator} takes exactly {least} arguments. {count} were passed in.");
        Error::new(Code(16020), message)
    } else {
        let message = format!(
            "Expression {operator} takes at least {least} arguments, and at most {most}, but {count} were passed in."
        );
        Error::new(Code(28667), message)
    })
}

impl Node {
    pub(crate) fn custom(custom: impl Custom + 'static) -> Node {
        Node::Custom(Box::new(custom))
    }
}

/// The type as error messages name it.
pub(crate) fn type_name(value: &Value<'_>) -> &'static str {
    value.as_ref().map_or("missing", |v| v.ty().name())
}

/// A part of a value: lent if the whole is lent, else copied.
pub(crate) fn part<'a>(
    whole: &Value<'a>,
    pick: impl for<'b> FnOnce(ValueRef<'b>) -> Option<ValueRef<'b>>,
) -> Value<'a> {
    match whole {
        Value::Missing => Value::Missing,
        Value::Ref(value) => pick(*value).into(),
        Value::Owned(value) => pick(value.as_ref()).map_or(Value::Missing, Value::own),
    }
}
