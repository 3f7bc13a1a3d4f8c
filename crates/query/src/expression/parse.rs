//! From BSON to a tree of nodes.

use espalier_value::{Code, Error, RawDoc, Result, Value, ValueRef};

use super::field_path;
use super::find_operator;
use super::node::Node;
use super::scope::{Scope, validate_name_to_read};

/// Any operand: a field path, a variable, an operator, an object, an array or a constant.
pub(super) fn operand(value: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    match value {
        ValueRef::String(text) if text.starts_with('$') => reference(text, scope),
        ValueRef::Document(doc) => document(doc, scope),
        ValueRef::Array(array) => {
            let nodes: Vec<Node> = array.iter().map(|v| operand(v, scope)).collect::<Result<_>>()?;
            Ok(Node::Array(nodes.into()).fold(scope))
        }
        _ => Ok(Node::Literal(Value::own(value))),
    }
}

/// The arguments of an operator: the elements of an array, or one argument without brackets.
pub(super) fn list(value: ValueRef<'_>, scope: &Scope) -> Result<Vec<Node>> {
    match value {
        ValueRef::Array(array) => array.iter().map(|v| operand(v, scope)).collect(),
        _ => Ok(vec![operand(value, scope)?]),
    }
}

fn document(doc: RawDoc<'_>, scope: &Scope) -> Result<Node> {
    if let Some(first) = doc.first()
        && first.name_bytes().starts_with(b"$")
    {
        if doc.count() > 1 {
            let message = format!("An object representing an expression must have exactly one field: {doc:?}");
            return Err(Error::new(Code(15983), message));
        }
        return operator(first.name(), first.value(), scope);
    }
    let mut fields = Vec::with_capacity(doc.count());
    for elem in doc {
        field_path::validate_name(elem.name())?;
        if fields.iter().any(|(name, _): &(Box<str>, Node)| **name == *elem.name()) {
            let message = format!("duplicate field name specified in object literal: {doc:?}");
            return Err(Error::new(Code(16406), message));
        }
        fields.push((elem.name().into(), operand(elem.value(), scope)?));
    }
    Ok(Node::Object(fields.into()).fold(scope))
}

fn operator(name: &str, argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    match find_operator(name) {
        Some(operator) => operator.parse(argument, scope),
        None => Err(Error::new(Code::InvalidPipelineOperator, format!("Unrecognized expression '{name}'"))),
    }
}

/// `$a.b`, `$$name` or `$$name.a.b`.
fn reference(text: &str, scope: &Scope) -> Result<Node> {
    let Some(variable) = text.strip_prefix("$$") else {
        let path = &text[1..];
        if path.is_empty() {
            return Err(Error::new(Code(16872), "'$' by itself is not a valid FieldPath"));
        }
        let path = field_path::parse(path)?;
        return Ok(match scope.find("CURRENT") {
            Some(place) => Node::Variable(place, Some(path)),
            None => Node::Field(path),
        });
    };
    let (name, path) = variable.split_once('.').map_or((variable, None), |(name, path)| (name, Some(path)));
    validate_name_to_read(name)?;
    let path = path.map(field_path::parse).transpose()?;
    if let Some(place) = scope.find(name) {
        return Ok(Node::Variable(place, path));
    }
    match (name, path) {
        ("ROOT" | "CURRENT", Some(path)) => Ok(Node::Field(path)),
        ("ROOT" | "CURRENT", None) => Ok(Node::Root),
        ("REMOVE", _) => Ok(Node::Literal(Value::Missing)),
        ("NOW", None) => Ok(Node::Now),
        ("CLUSTER_TIME", None) => Ok(Node::ClusterTime),
        // A date and a timestamp have no fields.
        ("NOW" | "CLUSTER_TIME", Some(_)) => Ok(Node::Literal(Value::Missing)),
        _ => Err(Error::new(Code(17276), format!("Use of undefined variable: {name}"))),
    }
}
