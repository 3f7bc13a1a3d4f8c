//! What an upsert reads out of a filter: the equalities that hold for every document it matches.

use espalier_value::{Code, Error, Path, Result, ValueRef};

use super::Node;

pub(super) fn collect(root: &Node) -> Result<Vec<(&Path, ValueRef<'_>)>> {
    let mut found = Vec::new();
    gather(root, &mut found)?;
    Ok(found)
}

fn gather<'f>(node: &'f Node, found: &mut Vec<(&'f Path, ValueRef<'f>)>) -> Result<()> {
    match node {
        Node::And(nodes) => nodes.iter().try_for_each(|node| gather(node, found)),
        Node::Leaf(leaf) => match leaf.predicate.equality() {
            Some(value) => {
                check(&leaf.path, found)?;
                found.push((&leaf.path, value));
                Ok(())
            }
            None => Ok(()),
        },
        Node::Expr(_) => {
            Err(Error::new(Code::QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert"))
        }
        Node::Or(_) | Node::Nor(_) | Node::Not(_) | Node::Whole(_) => Ok(()),
    }
}

fn check(path: &Path, found: &[(&Path, ValueRef<'_>)]) -> Result<()> {
    for (other, _) in found {
        let message = if path == *other {
            format!("cannot infer query fields to set, path '{path}' is matched twice")
        } else if other.is_prefix_of(path) || path.is_prefix_of(other) {
            format!("cannot infer query fields to set, both paths '{path}' and '{other}' are matched")
        } else {
            continue;
        };
        return Err(Error::new(Code::NotSingleValueField, message));
    }
    Ok(())
}
