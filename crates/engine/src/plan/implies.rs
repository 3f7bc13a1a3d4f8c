//! Whether a query's conditions imply a partial index's filter, so that the index holds every match.

use espalier_query::filter::{Bounds, Node};
use espalier_value::ValueRef;

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
                        c.bounds.intersect(&wanted.complement()).is_empty()
                    }
            })
        }
        _ => false,
    }
}

/// True if no missing field satisfies the bounds: a missing field is null in an index.
pub fn excludes_null(bounds: &Bounds) -> bool {
    !bounds.contains(ValueRef::Null) && !bounds.contains(ValueRef::Undefined)
}
