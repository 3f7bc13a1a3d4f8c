//! Whether a query's conditions imply a partial index's filter, so that the index holds every match.

use espalier_query::filter::{Bounds, Leaf, Node};
use espalier_value::{DocBuf, ValueRef};

use super::conditions::Conditions;

pub fn implies(query: &Conditions<'_>, partial: &Node) -> bool {
    match partial {
        Node::And(nodes) => nodes.iter().all(|n| implies(query, n)),
        Node::Or(nodes) => {
            nodes.iter().any(|n| implies(query, n))
                // Each branch of one of the query's own disjunctions may imply a different branch.
                || query.ors.iter().any(|branches| {
                    branches.iter().all(|branch| implies(&query.branch(branch), partial))
                })
        }
        Node::Leaf(leaf) => {
            let Some(wanted) = leaf.predicate.bounds(query.index) else { return false };
            let exists = leaf.predicate.name() == "$exists";
            query.all.iter().any(|c| {
                c.group.is_none()
                    && c.path == leaf.path.as_str()
                    && if exists {
                        excludes_null(&c.bounds) || c.operator == "$exists"
                    } else {
                        // Bounds that hold more than the matches prove nothing, unless the same is asked.
                        wanted.exact && c.bounds.intersect(&wanted.complement()).is_empty()
                            || c.leaf.is_some_and(|own| is_same(own, leaf))
                    }
            })
        }
        _ => false,
    }
}

fn is_same(one: &Leaf, other: &Leaf) -> bool {
    let described = |leaf: &Leaf| {
        let mut out = DocBuf::new();
        leaf.predicate.describe(&mut out);
        out
    };
    one.predicate.name() == other.predicate.name() && described(one).as_bytes() == described(other).as_bytes()
}

/// True if no missing field satisfies the bounds: a missing field is null in an index.
pub fn excludes_null(bounds: &Bounds) -> bool {
    !bounds.contains(ValueRef::Null) && !bounds.contains(ValueRef::Undefined)
}
