//! One of the conditions that a `$match` is made of, which may go ahead of the stages before it by itself.

use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

use super::origin::{Ahead, Origin};
use super::{Parser, Stage};
use crate::expression::Deps;
use crate::filter::{Filter, Node};

#[derive(Clone, Debug)]
pub(super) struct Condition {
    source: DocBuf,
    /// The paths it asks for, each once.
    paths: Vec<String>,
    /// What its expressions read.
    expressions: Option<Deps>,
    /// It looks at documents as a whole.
    whole: bool,
    /// It does nothing but compare values by the order of all values.
    compares: bool,
}

impl Condition {
    /// The conditions of a filter, all of which must hold.
    pub fn split(filter: RawDoc<'_>, parser: &Parser<'_>) -> Result<Vec<Condition>> {
        let mut all = Vec::new();
        split(filter, parser, &mut all)?;
        Ok(all)
    }

    fn new(source: DocBuf, parser: &Parser<'_>) -> Result<Condition> {
        let filter = Filter::parse_deferring(source.as_raw(), parser.scope)?;
        let mut condition = Condition { source, paths: Vec::new(), expressions: None, whole: false, compares: true };
        condition.read(filter.root());
        Ok(condition)
    }

    /// All of a filter that will not be moved.
    pub fn unread(filter: RawDoc<'_>) -> Condition {
        Condition {
            source: DocBuf::from_raw(filter),
            paths: Vec::new(),
            expressions: None,
            whole: true,
            compares: false,
        }
    }

    pub fn source(&self) -> RawDoc<'_> {
        self.source.as_raw()
    }

    fn read(&mut self, node: &Node) {
        match node {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().for_each(|node| self.read(node)),
            Node::Not(node) => self.read(node),
            Node::Leaf(leaf) => {
                let path = leaf.path.as_str();
                if !self.paths.iter().any(|known| known == path) {
                    self.paths.push(path.into());
                }
                self.compares &= matches!(leaf.predicate.name(), "$eq" | "$gt" | "$gte" | "$lt" | "$lte" | "$in");
            }
            Node::Expr(expression) => {
                self.expressions.get_or_insert_default().merge(&expression.dependencies());
            }
            Node::Whole(_) => self.whole = true,
        }
    }

    /// The same condition on the input of a stage; `None` if there is none that means the same.
    pub fn ahead_of(&self, stage: &dyn Stage, parser: &Parser<'_>) -> Result<Option<Condition>> {
        let ahead = stage.ahead();
        match ahead {
            Ahead::Never => return Ok(None),
            Ahead::Any => return Ok(Some(self.clone())),
            Ahead::Paths | Ahead::Each => {}
        }
        if self.whole {
            return Ok(None);
        }
        if let Some(deps) = &self.expressions {
            let unchanged = deps.paths().is_some_and(|mut paths| paths.all(|path| stage.origin(path) == Origin::Same));
            if ahead != Ahead::Each || !unchanged {
                return Ok(None);
            }
        }
        let mut renames: Vec<(&str, String)> = Vec::new();
        for path in &self.paths {
            match stage.origin(path) {
                Origin::Made => return Ok(None),
                Origin::Same => {}
                Origin::Path(from) => renames.push((path, from)),
                Origin::Key(from) if self.holds_of_keys(parser)? => renames.push((path, from)),
                Origin::Key(_) => return Ok(None),
            }
        }
        if renames.is_empty() {
            return Ok(Some(self.clone()));
        }
        let rename = |path: &str| match renames.iter().find(|(to, _)| *to == path) {
            Some((_, from)) => from.clone(),
            None => path.to_string(),
        };
        let mut paths: Vec<String> = self.paths.iter().map(|path| rename(path)).collect();
        paths.sort();
        paths.dedup();
        let source = renamed(self.source(), &rename);
        Ok(Some(Condition { source, paths, ..self.clone() }))
    }

    /// True if it is the same to it whether it sees the key of a group or the value of any document in the group.
    fn holds_of_keys(&self, parser: &Parser<'_>) -> Result<bool> {
        // Values that are equal differ in their type, and with a collation in what a regular expression finds in them.
        let [path] = &self.paths[..] else { return Ok(false) };
        if !self.compares || self.expressions.is_some() || parser.scope.collation().is_some() {
            return Ok(false);
        }
        let alone = renamed(self.source(), &|other| if other == path { "k".into() } else { other.into() });
        let filter = Filter::parse_deferring(alone.as_raw(), parser.scope)?;
        let mut null = DocBuf::new();
        null.append("k", ValueRef::Null);
        Ok(filter.matches(RawDoc::EMPTY, parser.context)? == filter.matches(null.as_raw(), parser.context)?)
    }
}

fn split(filter: RawDoc<'_>, parser: &Parser<'_>, all: &mut Vec<Condition>) -> Result<()> {
    for elem in filter {
        match (elem.name(), elem.value()) {
            ("$and", ValueRef::Array(parts)) => {
                parts.iter().filter_map(ValueRef::as_doc).try_for_each(|part| split(part, parser, all))?;
            }
            _ => {
                let mut alone = DocBuf::new();
                alone.append_elem(elem);
                all.push(Condition::new(alone, parser)?);
            }
        }
    }
    Ok(())
}

/// The filter with other paths in the place of its own.
fn renamed(filter: RawDoc<'_>, rename: &dyn Fn(&str) -> String) -> DocBuf {
    let mut out = DocBuf::new();
    for elem in filter {
        match (elem.name(), elem.value()) {
            (name @ ("$and" | "$or" | "$nor"), ValueRef::Array(parts)) => {
                out.append_array(name, |array| {
                    for part in parts.iter().filter_map(ValueRef::as_doc) {
                        array.push(&renamed(part, rename));
                    }
                });
            }
            (name, _) if name.starts_with('$') => {
                out.append_elem(elem);
            }
            (path, _) => {
                out.append_renamed(&rename(path), elem);
            }
        }
    }
    out
}
