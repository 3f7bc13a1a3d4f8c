//! The tree that an expression is parsed into, and its evaluation.

use std::sync::Arc;

use espalier_value::{ArrayBuf, Code, Collation, Collator, DocBuf, Error, Path, Result, Value, ValueRef};
use smallvec::SmallVec;

use super::deps::Deps;
use super::early;
use super::env::Env;
use super::field_path;
use super::given::Given;
use super::operator::{Eval, Operator};
use super::scope::{Place, Scope};
use super::steps::Dated;

#[derive(Debug)]
pub(crate) enum Node {
    Literal(Value<'static>),
    /// `"$a.b"`: a path of the root document.
    Field(Path),
    /// `"$$ROOT"`.
    Root,
    /// `"$$name"` or `"$$name.a.b"`.
    Variable(Place, Option<Path>),
    Now,
    ClusterTime,
    Object(Box<[(Box<str>, Node)]>),
    Array(Box<[Node]>),
    /// A strict operator and its arguments.
    Call(Call),
    Custom(Box<dyn Custom>),
}

/// A strict or lazy operator applied to arguments.
pub(crate) struct Call {
    pub operator: &'static Operator,
    pub args: Box<[Node]>,
    /// How it compares strings.
    pub collation: Option<Arc<Collation>>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple(self.operator.name).field(&self.args).finish()
    }
}

/// An operator that decides itself which of its arguments to evaluate, how often and with which variables.
pub(crate) trait Custom: std::fmt::Debug + Send + Sync {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>>;

    /// Its sub-expressions.
    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node));

    /// The path, if it is a plain `"$a.b"` with null in its place where it is missing.
    fn field_or_null(&self) -> Option<&Path> {
        None
    }

    /// What it reads of the root document beside what its sub-expressions read.
    fn dependencies(&self, _deps: &mut Deps) {}

    /// True if it may be evaluated at parse time where all its children are literals. MongoDB does not do so for
    /// operators that bind variables, and never for one whose results differ from call to call.
    fn is_foldable(&self) -> bool {
        false
    }

    /// How it depends on a date, if it is a function of one that changes in steps.
    fn dated(&self) -> Option<Dated<'_>> {
        None
    }
}

impl Node {
    pub(crate) const NULL: Node = Node::Literal(Value::NULL);

    /// Evaluates what depends on no document right now, as MongoDB does: an error in it shows even where no
    /// document would ever reach it, once the command is parsed.
    pub(super) fn fold(self, scope: &Scope) -> Node {
        if !scope.evaluates_early() || !self.is_foldable() {
            return self;
        }
        match self.eval_early(scope) {
            Ok(value) => Node::Literal(value),
            Err(error) => {
                scope.defer(error);
                self
            }
        }
    }

    fn eval_early(&self, scope: &Scope) -> Result<Value<'static>> {
        let context = crate::context::Context::default().with_collation(scope.collation().clone());
        let env = Env::new(espalier_value::RawDoc::EMPTY, &context);
        self.eval(&env).map(Value::into_owned)
    }

    /// True if all its children are literals; nodes are folded bottom-up, so that is enough to look at.
    fn is_foldable(&self) -> bool {
        match self {
            Node::Object(fields) => fields.iter().all(|(_, node)| node.is_literal()),
            Node::Array(nodes) => nodes.iter().all(Node::is_literal),
            Node::Call(call) => early::is_folded(call.operator.name) && call.args.iter().all(Node::is_literal),
            Node::Custom(custom) => {
                let mut all = custom.is_foldable();
                custom.children(&mut |node| all &= node.is_literal());
                all
            }
            _ => false,
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        matches!(self, Node::Literal(_))
    }

    pub(super) fn collect(&self, deps: &mut Deps) {
        match self {
            Node::Field(path) => deps.add(path.as_str()),
            Node::Root => deps.add_whole(),
            Node::Object(fields) => fields.iter().for_each(|(_, node)| node.collect(deps)),
            Node::Array(nodes) => nodes.iter().for_each(|node| node.collect(deps)),
            Node::Call(call) => call.args.iter().for_each(|node| node.collect(deps)),
            Node::Custom(custom) => {
                custom.dependencies(deps);
                custom.children(&mut |node| node.collect(deps));
            }
            Node::Literal(_) | Node::Variable(..) | Node::Now | Node::ClusterTime => {}
        }
    }

    #[inline]
    pub(crate) fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        match self {
            Node::Literal(value) => Ok(value.as_ref().into()),
            Node::Field(path) => Ok(env.field(path)),
            _ => self.eval_rest(env),
        }
    }

    fn eval_rest<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        match self {
            Node::Literal(value) => Ok(value.as_ref().into()),
            Node::Field(path) => Ok(env.field(path)),
            Node::Root => Ok(Value::Ref(ValueRef::Document(env.root()))),
            Node::Variable(place, path) => {
                let value = match place {
                    Place::Slot(slot) => env.slot(*slot),
                    Place::Let(at) => env.context.lets.get(*at).and_then(|(_, value)| value.as_ref()),
                };
                Ok(match (value, path) {
                    (Some(value), Some(path)) => field_path::walk_value(value, path),
                    (value, _) => value.into(),
                })
            }
            Node::Now => Ok(Value::Ref(ValueRef::DateTime(env.context.now_ms))),
            Node::ClusterTime => match env.context.cluster_time {
                0 => Err(Error::new(Code(51144), "Builtin variable '$$CLUSTER_TIME' is not available")),
                time => Ok(Value::Ref(ValueRef::Timestamp(time))),
            },
            Node::Object(fields) => {
                let mut doc = DocBuf::new();
                for (name, node) in fields {
                    doc.append_value(name, &node.eval(env)?);
                }
                Ok(Value::document(doc))
            }
            Node::Array(nodes) => {
                let mut array = ArrayBuf::new();
                for node in nodes {
                    array.push_value(&node.eval(env)?);
                }
                Ok(Value::array(array))
            }
            Node::Call(Call { operator, args, collation }) => match (&operator.eval, &**args) {
                (Eval::Strict(function), [a]) => function(&[a.eval(env)?]),
                (Eval::Strict(function), [a, b]) => function(&[a.eval(env)?, b.eval(env)?]),
                (Eval::Collated(function), [a, b]) => function(&[a.eval(env)?, b.eval(env)?], Collator::of(collation)),
                (Eval::Strict(function), args) => {
                    let values: SmallVec<[Value<'a>; 4]> =
                        args.iter().map(|arg| arg.eval(env)).collect::<Result<_>>()?;
                    function(&values)
                }
                (Eval::Collated(function), args) => {
                    let values: SmallVec<[Value<'a>; 4]> =
                        args.iter().map(|arg| arg.eval(env)).collect::<Result<_>>()?;
                    function(&values, Collator::of(collation))
                }
                (Eval::Lazy(function), args) => function(&Given::new(args, env, collation)),
                (Eval::Special(_) | Eval::Unsupported, _) => Err(Error::internal("a call of what is no function")),
            },
            Node::Custom(custom) => custom.eval(env),
        }
    }
}
