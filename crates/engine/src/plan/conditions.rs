//! What a filter demands of single paths: the conjunction taken apart for the planner.

use espalier_query::filter::{Bounds, ElemMatch, Leaf, Node, bounds};
use espalier_value::Collator;

/// One demand on one path.
pub struct Condition<'f> {
    pub path: String,
    pub bounds: Bounds,
    /// What an index without array elements at the path says exactly.
    pub single: Option<Bounds>,
    /// Demands of one `$elemMatch` hold for the same array element, so they may share an index key.
    pub group: Option<usize>,
    /// Inside `$elemMatch: {b: …}`: the bounds of two such demands on one path may not be intersected.
    pub within_object: bool,
    /// `$exists: true` and the like: the path is there, whatever its value.
    pub operator: &'static str,
    /// What demands it, unless it is a negation.
    pub leaf: Option<&'f Leaf>,
}

/// A conjunction: all conditions, all disjunctions, and whether anything else is asked.
#[derive(Default)]
pub struct Conditions<'f> {
    pub all: Vec<Condition<'f>>,
    pub ors: Vec<&'f [Node]>,
    /// Something no bounds can express.
    pub others: bool,
    groups: usize,
    /// How the query and the index compare strings.
    query: Collator<'f>,
    pub index: Collator<'f>,
}

impl<'f> Conditions<'f> {
    /// For indexes of one collation: bounds hold strings as those do.
    pub fn of(node: &'f Node, query: Collator<'f>, index: Collator<'f>) -> Conditions<'f> {
        let mut out = Conditions { query, index, ..Conditions::default() };
        out.add(node, "", None, false);
        out
    }

    /// The demands of a branch, for the same indexes.
    pub fn branch(&self, node: &'f Node) -> Conditions<'f> {
        Conditions::of(node, self.query, self.index)
    }

    /// An index that orders strings otherwise cannot say which of them a comparison means.
    fn says_nothing_about(&self, node: &Node) -> bool {
        self.query != self.index && bounds::is_collated(node)
    }

    fn add(&mut self, node: &'f Node, prefix: &str, group: Option<usize>, within_object: bool) {
        match node {
            Node::And(nodes) => nodes.iter().for_each(|n| self.add(n, prefix, group, within_object)),
            Node::Or(nodes) if prefix.is_empty() => self.ors.push(nodes),
            Node::Leaf(leaf) => {
                let path = join(prefix, leaf.path.as_str());
                if let Some(inner) = leaf.predicate.elem_match() {
                    // The array position is known to nobody but the predicate, so the filter is always run.
                    self.others = true;
                    self.groups += 1;
                    let group = Some(group.unwrap_or(self.groups));
                    match inner {
                        ElemMatch::Object(node) => self.add(node, &path, group, true),
                        ElemMatch::Value(node) => self.add(node, &path, group, within_object),
                    }
                    return;
                }
                match leaf.predicate.bounds(self.index) {
                    Some(bounds) if !self.says_nothing_about(node) => {
                        let (operator, leaf) = (leaf.predicate.name(), Some(leaf));
                        let single = bounds::exactly(node, self.index).filter(|_| group.is_none());
                        self.all.push(Condition { path, bounds, single, group, within_object, operator, leaf });
                    }
                    _ => self.others = true,
                }
            }
            node => {
                let found = if prefix.is_empty() && !self.says_nothing_about(node) {
                    bounds::of(node, true, self.index)
                } else {
                    None
                };
                let Some((path, bounds)) = found else {
                    self.others = true;
                    return;
                };
                // Of array elements a negation's bounds hold all matches, not only matches.
                let (path, bounds) = (path.as_str().to_string(), Bounds { exact: false, ..bounds });
                let single = bounds::exactly(node, self.index);
                let (group, within_object, operator) = (None, false, "$not");
                self.all.push(Condition { path, bounds, single, group, within_object, operator, leaf: None });
            }
        }
    }
}

fn join(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_string(),
        (prefix, "") => prefix.to_string(),
        (prefix, path) => format!("{prefix}.{path}"),
    }
}
