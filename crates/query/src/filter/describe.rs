//! The filter as it was understood: what `explain` shows as `parsedQuery` and as the filter of a plan's stage.

use espalier_value::{ArrayBuf, DocBuf};

use super::Node;

/// The conditions, each with its operator, in the order in which they are tried. `None` if one of them is an expression,
/// which does not remember how it was written.
pub fn describe(node: &Node) -> Option<DocBuf> {
    let mut out = DocBuf::new();
    match node {
        Node::And(nodes) if nodes.is_empty() => {}
        Node::And(nodes) if nodes.len() == 1 => return nodes.first().and_then(describe),
        Node::And(nodes) => out = list("$and", nodes)?,
        Node::Or(nodes) => out = list("$or", nodes)?,
        Node::Nor(nodes) => out = list("$nor", nodes)?,
        Node::Leaf(leaf) => {
            let mut condition = DocBuf::new();
            leaf.predicate.describe(&mut condition);
            out.append(leaf.path.as_str(), &condition);
        }
        Node::Not(inner) => match &**inner {
            Node::Leaf(leaf) => {
                let (mut condition, mut not) = (DocBuf::new(), DocBuf::new());
                leaf.predicate.describe(&mut condition);
                not.append("$not", &condition);
                out.append(leaf.path.as_str(), &not);
            }
            other => out = list("$nor", std::slice::from_ref(other))?,
        },
        Node::Expr(_) => return None,
        Node::Whole(predicate) => predicate.describe(&mut out),
    }
    Some(out)
}

fn list(operator: &str, nodes: &[Node]) -> Option<DocBuf> {
    let mut all = ArrayBuf::new();
    for node in nodes {
        all.push(&describe(node)?);
    }
    let mut out = DocBuf::new();
    out.append(operator, &all);
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use espalier_value::{DocBuf, ValueRef, doc};

    use crate::expression::Scope;
    use crate::filter::Filter;

    #[test]
    fn every_condition_is_written_with_its_operator() {
        let described = |filter: &DocBuf| {
            let filter = Filter::parse(filter.as_raw(), &Scope::default()).unwrap();
            filter.describe().as_raw().to_string()
        };
        assert_eq!(described(&doc! {}), "{}");
        assert_eq!(described(&doc! { "a": 1 }), "{ a: { $eq: 1 } }");
        assert_eq!(
            described(&doc! { "b": &doc! { "$gt": 1, "$lt": 5 } }),
            "{ $and: [ { b: { $lt: 5 } }, { b: { $gt: 1 } } ] }"
        );
        assert_eq!(described(&doc! { "a": &doc! { "$not": &doc! { "$gt": 1 } } }), "{ a: { $not: { $gt: 1 } } }");
        let expression = doc! { "$expr": "$a", "b": ValueRef::Null };
        assert_eq!(described(&expression), expression.as_raw().to_string(), "an expression stays as it was written");
    }
}
