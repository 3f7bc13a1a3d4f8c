//! From a filter document to nodes. Finds every error a filter can have, with MongoDB's codes and, where sensible,
//! its words.

use espalier_value::{Code, Elem, Error, Path, RawDoc, Result, ValueRef};

use super::operator::{self, Place};
use super::{Leaf, Node, Predicate};
use crate::expression::Scope;

/// What parsing knows of its surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Parser<'s> {
    pub scope: &'s Scope,
    /// True outside `$elemMatch`, where the whole document can be seen (`$expr`, `$where`, `$text`).
    pub whole_document: bool,
    /// True in `$pull` and `arrayFilters`, where `$expr` and `$jsonSchema` have no place.
    pub restricted: bool,
}

impl<'s> Parser<'s> {
    pub fn top(scope: &'s Scope) -> Parser<'s> {
        Parser { scope, whole_document: true, restricted: false }
    }

    /// For a condition on single values.
    pub fn restricted(scope: &'s Scope) -> Parser<'s> {
        Parser { scope, whole_document: true, restricted: true }
    }

    /// Refuses an operator that needs the command's whole document or may not stand here.
    pub fn refuse_restricted(&self, name: &str) -> Result<()> {
        if self.restricted {
            let message = format!("{name} is not allowed in this context");
            return Err(Error::new(Code::QueryFeatureNotAllowed, message));
        }
        Ok(())
    }

    /// Inside `$elemMatch`.
    pub fn nested(self) -> Parser<'s> {
        Parser { whole_document: false, ..self }
    }
}

/// One operator of a field with all that its parser may look at: `{a: {$regex: "x", $options: "i"}}`.
pub(crate) struct Field<'a> {
    pub path: &'a str,
    pub argument: ValueRef<'a>,
    /// The whole `{$regex: …, $options: …}`.
    pub siblings: RawDoc<'a>,
    pub parser: Parser<'a>,
}

impl Field<'_> {
    pub fn leaf(&self, predicate: impl Predicate + 'static) -> Node {
        leaf(self.path, predicate)
    }
}

pub(crate) fn leaf(path: &str, predicate: impl Predicate + 'static) -> Node {
    Node::Leaf(Leaf { path: Path::new(path), predicate: Box::new(predicate) })
}

/// A filter document: field conditions and top-level operators, all of which must hold.
pub(crate) fn document(doc: RawDoc<'_>, parser: &Parser<'_>) -> Result<Node> {
    let mut nodes = Vec::new();
    for elem in doc {
        let name = elem.name();
        if is_top_operator(name) {
            nodes.extend(top(name, elem.value(), parser)?);
        } else {
            field(name, elem.value(), parser, &mut nodes)?;
        }
    }
    Ok(Node::And(nodes))
}

/// `$and`, `$expr`, …; `None` for one that says nothing, as `$comment`.
fn top(name: &str, argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Option<Node>> {
    match operator::find(name).map(|op| (op, op.place)) {
        Some((_, Place::Top(parse))) => parse(argument, parser),
        Some((op, Place::TopUnsupported)) if !parser.whole_document => {
            Err(Error::bad_value(format!("{} can only be applied to the top-level document", op.name)))
        }
        Some((op, Place::TopUnsupported)) if parser.restricted => {
            Err(Error::bad_value(format!("{} is not allowed in this context", op.name)))
        }
        Some((op, Place::TopUnsupported)) => Err(op.unsupported()),
        _ if name == "$not" => Err(Error::bad_value(
            "unknown top level operator: $not. If you are trying to negate an entire expression, use $nor.",
        )),
        _ => Err(Error::bad_value(format!(
            "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, consider \
             using $getField or $setField."
        ))),
    }
}

/// `{path: condition}`.
fn field(path: &str, condition: ValueRef<'_>, parser: &Parser<'_>, nodes: &mut Vec<Node>) -> Result<()> {
    match condition {
        ValueRef::Document(doc) if is_operators(doc, false) => operators(path, doc, parser, nodes),
        ValueRef::Regex(pattern, options) => {
            nodes.push(leaf(path, operator::regex::Regex::new(pattern, options)?));
            Ok(())
        }
        _ => {
            nodes.push(leaf(path, operator::eq::Eq::new(condition, parser.scope)?));
            Ok(())
        }
    }
}

/// `{path: {$gt: 1, $lt: 5}}`: one node for each operator.
pub(crate) fn operators(path: &str, doc: RawDoc<'_>, parser: &Parser<'_>, nodes: &mut Vec<Node>) -> Result<()> {
    for elem in doc {
        let name = elem.name();
        let field = Field { path, argument: elem.value(), siblings: doc, parser: *parser };
        match operator::find(name).map(|op| (op, op.place)) {
            Some((_, Place::Field(parse))) => nodes.push(parse(&field)?),
            Some((_, Place::Modifier(check))) => check(&field)?,
            Some((op, Place::FieldUnsupported)) => return Err(op.unsupported()),
            _ if name == "$where" => return Err(Error::bad_value("$where cannot be applied to a field")),
            _ => return Err(Error::bad_value(format!("unknown operator: {name}"))),
        }
    }
    Ok(())
}

/// Whether a document is a set of operators and not a value to compare with: its first name starts with `$` and it
/// is no DBRef. `partial` lets `$ref`, `$id` or `$db` alone make a DBRef, as `$elemMatch` does.
pub(crate) fn is_operators(doc: RawDoc<'_>, partial: bool) -> bool {
    match doc.first().map(Elem::name) {
        Some(name) if name.starts_with('$') => !is_dbref(doc, partial),
        _ => false,
    }
}

fn is_dbref(doc: RawDoc<'_>, partial: bool) -> bool {
    let has = |name| doc.elem(name).is_some();
    if partial { has("$ref") || has("$id") || has("$db") } else { has("$ref") && has("$id") }
}

/// Whether a name at the top of a filter is an operator's and not a field's.
pub(crate) fn is_top_operator(name: &str) -> bool {
    name.starts_with('$') && !is_dbref_name(name)
}

fn is_dbref_name(name: &str) -> bool {
    matches!(name, "$ref" | "$id" | "$db")
}
