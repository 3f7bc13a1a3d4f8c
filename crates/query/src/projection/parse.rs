//! From a specification to a tree, in the dialects of `find` and of `$project`.
//!
//! Fields that are included and fields that are excluded do not mix, but for `_id`. What a specification is follows
//! from the first field that says so; where none does, `_id` or the operators decide.

use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use super::Kind;
use super::slice::Slice;
use super::tree::{Action, Field, Node};
use crate::expression::{self, Expression, Scope, field_path, truthy_ref};
use crate::filter::Filter;

pub(super) struct Parsed {
    pub root: Node,
    pub positional: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Inclusion,
    Exclusion,
}

struct Parser<'s> {
    scope: &'s Scope,
    kind: Kind,
    root: Node,
    mode: Option<Mode>,
    /// `_id: 1` and `_id: 0`, which go with either mode.
    id: Option<bool>,
    has_positional: bool,
    has_elem_match: bool,
    has_slice: bool,
}

pub(super) fn parse(spec: RawDoc<'_>, scope: &Scope, kind: Kind) -> Result<Parsed> {
    if spec.is_empty() && kind == Kind::Aggregate {
        return Err(Error::new(Code(51272), "projection specification must have at least one field"));
    }
    let mut parser = Parser {
        scope,
        kind,
        root: Node::new(),
        mode: None,
        id: None,
        has_positional: false,
        has_elem_match: false,
        has_slice: false,
    };
    for elem in spec {
        parser.element(None, elem.name(), elem.value())?;
    }
    let mode = parser.settle();
    let mut root = parser.root;
    let id_leaf = root.find(b"_id");
    match (mode, id_leaf) {
        (Mode::Inclusion, None) => {
            root.fields.insert(0, Field { name: "_id".into(), action: Action::Include, positional: false });
        }
        // What an inclusion does not name is left out, and what an exclusion does not name is kept.
        (Mode::Inclusion, Some(at)) if matches!(root.fields[at].action, Action::Exclude) => {
            root.fields.remove(at);
        }
        (Mode::Exclusion, Some(at)) if matches!(root.fields[at].action, Action::Include) => {
            root.fields.remove(at);
        }
        _ => {}
    }
    root.finish(mode == Mode::Exclusion);
    Ok(Parsed { root, positional: parser.has_positional })
}

impl Parser<'_> {
    fn element(&mut self, parent: Option<&Path>, name: &str, value: ValueRef<'_>) -> Result<()> {
        if name.contains(".$.") {
            let message = "As of 4.4, it's illegal to specify positional operator in the middle of a path. Positional \
                           projection may only be used at the end, for example: a.b.$. If the query previously used a \
                           form like a.b.$.d, remove the parts following the '$' and the results will be equivalent.";
            return Err(Error::new(Code(31394), message));
        }
        if let Some(array) = name.strip_suffix(".$") {
            return self.positional(&join(parent, array)?, value);
        }
        let path = join(parent, name)?;
        match value {
            ValueRef::Document(doc) => self.document(&path, doc),
            ValueRef::Bool(_)
            | ValueRef::Int32(_)
            | ValueRef::Int64(_)
            | ValueRef::Double(_)
            | ValueRef::Decimal(_) => self.flag(&path, truthy_ref(value)),
            _ => {
                if self.mode == Some(Mode::Exclusion) {
                    // A collision is noticed first.
                    self.root.check(&path)?;
                    let message = format!("Cannot use an expression {path} in an exclusion projection");
                    return Err(Error::new(Code(31310), message));
                }
                self.compute(&path, value)
            }
        }
    }

    /// `a: 1` or `a: 0`.
    fn flag(&mut self, path: &Path, include: bool) -> Result<()> {
        let action = if include { Action::Include } else { Action::Exclude };
        self.root.add(path, action, false)?;
        if path.as_str() == "_id" {
            self.id = Some(include);
            return Ok(());
        }
        match (self.mode, include) {
            (Some(Mode::Exclusion), true) => {
                Err(Error::new(Code(31253), format!("Cannot do inclusion on field {path} in exclusion projection")))
            }
            (Some(Mode::Inclusion), false) => {
                Err(Error::new(Code(31254), format!("Cannot do exclusion on field {path} in inclusion projection")))
            }
            _ => {
                self.mode = Some(if include { Mode::Inclusion } else { Mode::Exclusion });
                Ok(())
            }
        }
    }

    /// `a: {…}`: an operator, or the fields below `a`.
    fn document(&mut self, path: &Path, doc: RawDoc<'_>) -> Result<()> {
        let Some(first) = doc.first() else {
            let message = "An empty sub-projection is not a valid value. Found empty object at path";
            return Err(Error::new(Code(51270), format!("{message} {path}")));
        };
        let name = first.name();
        if name.starts_with('$') && doc.count() == 1 && !matches!(name, "$id" | "$ref" | "$db") {
            return self.operator(path, name, first.value(), doc);
        }
        for elem in doc {
            self.element(Some(path), elem.name(), elem.value())?;
        }
        Ok(())
    }

    fn operator(&mut self, path: &Path, name: &str, argument: ValueRef<'_>, doc: RawDoc<'_>) -> Result<()> {
        match (name, self.kind) {
            ("$elemMatch", Kind::Find) => return self.elem_match(path, argument),
            ("$elemMatch", Kind::Aggregate) => {
                return Err(Error::new(Code::InvalidPipelineOperator, "Cannot use $elemMatch in this context"));
            }
            ("$slice", Kind::Find) => {
                if let Some(slice) = Slice::parse(argument) {
                    match self.root.add(path, Action::Slice(slice), false) {
                        Ok(()) => {
                            self.has_slice = true;
                            return Ok(());
                        }
                        // With as many arguments as the expression takes, the collision is all that is wrong.
                        Err(collision)
                            if matches!(argument, ValueRef::Array(_)) && self.mode != Some(Mode::Exclusion) =>
                        {
                            return Err(collision);
                        }
                        // A path that is taken is no slice either: the expression then says what is wrong.
                        Err(_) => {}
                    }
                }
            }
            _ => {}
        }
        if !expression::registry().any(|entry| entry.name == name) {
            return Err(Error::new(Code(31325), format!("Unknown expression {name}")));
        }
        if self.mode == Some(Mode::Exclusion) && name != "$meta" {
            return Err(Error::new(Code(31252), "Cannot use expression other than $meta in exclusion projection"));
        }
        self.compute(path, ValueRef::Document(doc))
    }

    fn compute(&mut self, path: &Path, value: ValueRef<'_>) -> Result<()> {
        let expression = Expression::parse(value, self.scope)?;
        self.root.add(path, Action::Compute(expression), false)?;
        self.mode = Some(Mode::Inclusion);
        Ok(())
    }

    fn elem_match(&mut self, path: &Path, argument: ValueRef<'_>) -> Result<()> {
        let ValueRef::Document(condition) = argument else {
            let found = argument.ty().name();
            let message = format!("elemMatch: Invalid argument, object required, but got {found}");
            return Err(Error::new(Code(31274), message));
        };
        if self.has_positional {
            return Err(Error::new(Code(31255), "Cannot specify positional operator and $elemMatch."));
        }
        if !path.is_single() {
            return Err(Error::new(Code(31275), "Cannot use $elemMatch projection on a nested field."));
        }
        let mut filter = DocBuf::new();
        filter.append_doc(path.as_str(), |operators| {
            operators.append("$elemMatch", condition);
        });
        let filter = Filter::parse(filter.as_raw(), self.scope)?;
        self.has_elem_match = true;
        self.root.add(path, Action::ElemMatch(Box::new(filter)), false)
    }

    /// `path.$: 1`.
    fn positional(&mut self, path: &Path, value: ValueRef<'_>) -> Result<()> {
        let refuse = |code, message: &str| Err(Error::new(Code(code), message));
        if self.kind == Kind::Aggregate {
            return refuse(31324, "Cannot use positional projection in aggregation projection");
        }
        match value {
            ValueRef::Document(_) => {
                return refuse(31271, "positional projection cannot be used with an expression or sub object");
            }
            ValueRef::Bool(_)
            | ValueRef::Int32(_)
            | ValueRef::Int64(_)
            | ValueRef::Double(_)
            | ValueRef::Decimal(_) => {
                if !truthy_ref(value) {
                    return refuse(31395, "positional projection cannot be used with exclusion");
                }
            }
            _ => return refuse(31308, "positional projection cannot be used with a literal"),
        }
        if self.has_positional {
            return refuse(31276, "Cannot specify more than one positional projection per query.");
        }
        if self.has_elem_match {
            return refuse(31256, "Cannot specify positional operator and $elemMatch.");
        }
        if self.mode == Some(Mode::Exclusion) {
            let message = format!("Cannot do inclusion on field {path} in exclusion projection");
            return Err(Error::new(Code(31253), message));
        }
        self.has_positional = true;
        self.mode = Some(Mode::Inclusion);
        self.root.add(path, Action::Include, true)
    }

    /// What the specification is where no field said so.
    fn settle(&self) -> Mode {
        match (self.mode, self.id) {
            (Some(mode), _) => mode,
            (None, Some(true)) => Mode::Inclusion,
            (None, _) if self.has_slice => Mode::Exclusion,
            (None, _) if self.has_elem_match => Mode::Inclusion,
            (None, _) => Mode::Exclusion,
        }
    }
}

/// A name below a parent, each with MongoDB's rules for names.
fn join(parent: Option<&Path>, name: &str) -> Result<Path> {
    let path = field_path::parse(name)?;
    match parent {
        Some(parent) => field_path::parse(&format!("{parent}.{name}")),
        None => Ok(path),
    }
}
