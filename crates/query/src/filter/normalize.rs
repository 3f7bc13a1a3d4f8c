//! Brings a filter tree into the shape MongoDB gives it before it runs: nested `$and`s and `$or`s flattened,
//! alternatives on one path gathered into an `$in`, siblings sorted. Cheaper to run and to plan; and since the last
//! array condition to match decides what an update's `$` means, the order is part of the behaviour.

use espalier_value::{Path, Value};

use super::operator::in_::In;
use super::{ElemMatch, Leaf, Node};
use crate::expression::Scope;

pub(crate) fn normalize(node: Node, scope: &Scope) -> Node {
    match node {
        Node::And(nodes) => {
            let mut flat = Vec::with_capacity(nodes.len());
            for node in nodes {
                match normalize(node, scope) {
                    Node::And(inner) => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            sort(&mut flat);
            single(flat, Node::And)
        }
        Node::Or(nodes) => {
            let mut flat = Vec::with_capacity(nodes.len());
            for node in nodes {
                match normalize(node, scope) {
                    Node::Or(inner) => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            let mut flat = gather_equalities(flat, scope);
            sort(&mut flat);
            single(flat, Node::Or)
        }
        Node::Nor(nodes) => {
            let mut nodes: Vec<Node> = nodes.into_iter().map(|node| normalize(node, scope)).collect();
            sort(&mut nodes);
            Node::Nor(nodes)
        }
        Node::Not(inner) => match normalize(*inner, scope) {
            Node::Not(twice) => Node::Not(Box::new(Node::Not(twice))),
            other => Node::Not(Box::new(other)),
        },
        Node::Leaf(_) | Node::Expr(_) | Node::Whole(_) => node,
    }
}

/// A group of one is its only member.
fn single(mut nodes: Vec<Node>, group: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        Some(last) => {
            nodes.push(last);
            group(nodes)
        }
        None => group(nodes),
    }
}

/// `{$or: [{a: 1}, {a: 2}, x]}` becomes `{$or: [{a: {$in: [1, 2]}}, x]}`.
fn gather_equalities(nodes: Vec<Node>, scope: &Scope) -> Vec<Node> {
    let mut groups: Vec<(Path, Vec<Value<'static>>)> = Vec::new();
    let mut rest = Vec::with_capacity(nodes.len());
    for node in nodes {
        match &node {
            Node::Leaf(Leaf { path, predicate }) => match predicate.equality() {
                Some(value) => match groups.iter_mut().find(|(p, _)| p == path) {
                    Some((_, values)) => values.push(Value::own(value)),
                    None => groups.push((path.clone(), vec![Value::own(value)])),
                },
                None => rest.push(node),
            },
            _ => rest.push(node),
        }
    }
    for (path, mut values) in groups {
        let predicate: Box<dyn super::Predicate> = match values.pop() {
            Some(only) if values.is_empty() => Box::new(super::operator::eq::Eq::of(only, scope)),
            Some(last) => {
                values.push(last);
                Box::new(In::of_values(values, scope))
            }
            None => continue,
        };
        rest.push(Node::Leaf(Leaf { path, predicate }));
    }
    rest
}

fn sort(nodes: &mut [Node]) {
    nodes.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| path(a).cmp(path(b))));
}

fn path(node: &Node) -> &str {
    match node {
        Node::Leaf(leaf) => leaf.path.as_str(),
        _ => "",
    }
}

/// MongoDB's order of node kinds.
fn rank(node: &Node) -> usize {
    const LEAVES: &[&str] = &[
        "$size",
        "$eq",
        "$lte",
        "$lt",
        "$gt",
        "$gte",
        "$regex",
        "$mod",
        "$exists",
        "$in",
        "$bitsAllSet",
        "$bitsAllClear",
        "$bitsAnySet",
        "$bitsAnyClear",
    ];
    match node {
        Node::And(_) => 0,
        Node::Or(_) => 1,
        Node::Leaf(leaf) => match leaf.predicate.elem_match() {
            Some(ElemMatch::Object(_)) => 2,
            Some(ElemMatch::Value(_)) => 3,
            None => {
                let name = leaf.predicate.name();
                LEAVES.iter().position(|n| *n == name).map_or(42, |at| 4 + at)
            }
        },
        Node::Not(_) => 40,
        Node::Nor(_) => 41,
        Node::Expr(_) => 50,
        Node::Whole(_) => 60,
    }
}
