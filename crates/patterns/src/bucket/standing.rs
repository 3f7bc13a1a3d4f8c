//! How a bucket stands to a filter: all of its readings match, none does, or each has to be asked. Told from what they
//! share: their `by` values, and a time between the bounds of the window.

use espalier_query::Context;
use espalier_query::filter::Node;
use espalier_value::{Path, RawDoc};

use super::Bucket;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    All,
    Nothing,
    Some,
}

/// Two readings that there could be: what all readings of a bucket share, with the first instant of its window and the
/// last.
#[derive(Clone, Copy)]
pub struct Ends<'a> {
    pub first: RawDoc<'a>,
    pub last: RawDoc<'a>,
}

impl Bucket {
    /// Whether all readings of a bucket that has none stored whole have the same at this path.
    pub(super) fn is_shared(&self, path: &Path) -> bool {
        self.by.iter().any(|by| by.is_single() && by.is_prefix_of(path))
    }

    pub(super) fn standing(&self, node: &Node, ends: Ends<'_>, context: &Context) -> Standing {
        let each =
            |nodes: &[Node]| -> Vec<Standing> { nodes.iter().map(|node| self.standing(node, ends, context)).collect() };
        match node {
            Node::And(nodes) => joined(&each(nodes), Standing::Nothing, Standing::All),
            Node::Or(nodes) => joined(&each(nodes), Standing::All, Standing::Nothing),
            Node::Nor(nodes) => joined(&each(nodes), Standing::All, Standing::Nothing).negated(),
            Node::Not(node) => self.standing(node, ends, context).negated(),
            Node::Leaf(leaf) if self.is_shared(&leaf.path) => known(node.matches(ends.first, context).ok()),
            Node::Leaf(leaf) => {
                // What one instant meets, all after it or all before it do.
                let one_sided = ["$gt", "$gte", "$lt", "$lte"].contains(&leaf.predicate.name());
                let on_time = self.time.as_ref().is_some_and(|time| time.path == leaf.path);
                if !one_sided || !on_time {
                    return Standing::Some;
                }
                match (node.matches(ends.first, context), node.matches(ends.last, context)) {
                    (Ok(first), Ok(last)) if first == last => known(Some(first)),
                    _ => Standing::Some,
                }
            }
            Node::Expr(_) | Node::Whole(_) => Standing::Some,
        }
    }
}

impl Standing {
    fn negated(self) -> Standing {
        match self {
            Standing::All => Standing::Nothing,
            Standing::Nothing => Standing::All,
            Standing::Some => Standing::Some,
        }
    }
}

fn known(matches: Option<bool>) -> Standing {
    match matches {
        Some(true) => Standing::All,
        Some(false) => Standing::Nothing,
        None => Standing::Some,
    }
}

/// `decisive` if one of them is that, `otherwise` if all of them are that.
fn joined(all: &[Standing], decisive: Standing, otherwise: Standing) -> Standing {
    if all.contains(&decisive) {
        decisive
    } else if all.iter().all(|one| *one == otherwise) {
        otherwise
    } else {
        Standing::Some
    }
}
