//! What a projection is parsed into: a node for each level of names, an action for each name.

use espalier_value::path::Part;
use espalier_value::{Code, Error, Path, Result};

use super::slice::Slice;
use crate::expression::{Deps, Expression};
use crate::filter::Filter;

/// The names of one level.
#[derive(Debug)]
pub(super) struct Node {
    /// In the order of the specification: that in which computed fields are appended.
    pub fields: Vec<Field>,
    /// What happens to fields that have no name here: kept in an exclusion and `$addFields`, else dropped.
    pub keeps_rest: bool,
    /// Something at or below this level is computed, so that it exists even where the document has nothing.
    pub computes: bool,
    /// Indexes into `fields`, sorted by name; empty for a short list, which is searched from the front.
    sorted: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub name: Box<str>,
    pub action: Action,
    /// The positional `$` is this field's or lies below it.
    pub positional: bool,
}

#[derive(Debug)]
pub(super) enum Action {
    Include,
    Exclude,
    Child(Node),
    Compute(Expression),
    Slice(Slice),
    /// `{field: {$elemMatch: …}}` as a filter, whose position is that of the element. Top level only.
    ElemMatch(Box<Filter>),
}

/// Up to this many names, comparing with each beats a binary search.
const LINEAR_MAX: usize = 8;

impl Node {
    pub fn new() -> Node {
        Node { fields: Vec::new(), keeps_rest: false, computes: false, sorted: Vec::new() }
    }

    /// The field's place in `fields`.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        if self.sorted.is_empty() {
            return self.fields.iter().position(|field| field.name.as_bytes() == name);
        }
        let by_name = |&at: &u32| self.fields[at as usize].name.as_bytes().cmp(name);
        self.sorted.binary_search_by(by_name).ok().map(|at| self.sorted[at] as usize)
    }

    /// Puts an action at a path; a path that is there already, above or below is a collision.
    pub fn add(&mut self, path: &Path, action: Action, positional: bool) -> Result<()> {
        self.add_at(path, path.parts(), action, positional)
    }

    /// Refuses a path that collides with one that is there.
    pub fn check(&self, path: &Path) -> Result<()> {
        let mut node = self;
        let mut parts = path.parts();
        while let Some((part, rest)) = parts.split_first() {
            match node.fields.iter().find(|field| *field.name == *part.name()).map(|field| &field.action) {
                None => return Ok(()),
                Some(_) if rest.is_empty() => return Err(collision(path, &[])),
                Some(Action::Child(child)) => (node, parts) = (child, rest),
                Some(_) => return Err(collision(path, rest)),
            }
        }
        Ok(())
    }

    fn add_at(&mut self, path: &Path, parts: &[Part], action: Action, positional: bool) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        let at = self.fields.iter().position(|field| *field.name == *part.name());
        if rest.is_empty() {
            if at.is_some() {
                return Err(collision(path, &[]));
            }
            self.fields.push(Field { name: part.name().into(), action, positional });
            return Ok(());
        }
        let at = at.unwrap_or_else(|| {
            let action = Action::Child(Node::new());
            self.fields.push(Field { name: part.name().into(), action, positional: false });
            self.fields.len() - 1
        });
        let field = &mut self.fields[at];
        field.positional |= positional;
        match &mut field.action {
            Action::Child(child) => child.add_at(path, rest, action, positional),
            _ => Err(collision(path, rest)),
        }
    }

    /// Settles what depends on the whole specification.
    pub fn finish(&mut self, keeps_rest: bool) {
        self.keeps_rest = keeps_rest;
        self.computes = false;
        for field in &mut self.fields {
            self.computes |= match &mut field.action {
                Action::Child(child) => {
                    child.finish(keeps_rest);
                    child.computes
                }
                Action::Compute(_) => true,
                Action::Include | Action::Exclude | Action::Slice(_) | Action::ElemMatch(_) => false,
            };
        }
        if self.fields.len() > LINEAR_MAX {
            self.sorted = (0..self.fields.len() as u32).collect();
            let fields = &self.fields;
            self.sorted.sort_by(|a, b| fields[*a as usize].name.cmp(&fields[*b as usize].name));
        }
    }

    /// The actions at the ends of all paths.
    pub fn leaves(&self) -> Box<dyn Iterator<Item = &Action> + '_> {
        Box::new(self.fields.iter().flat_map(|field| match &field.action {
            Action::Child(child) => child.leaves(),
            leaf => Box::new(std::iter::once(leaf)),
        }))
    }

    /// Adds the paths that are read.
    pub fn collect(&self, above: &str, deps: &mut Deps) {
        if self.keeps_rest {
            deps.add_whole();
        }
        for field in &self.fields {
            let path = if above.is_empty() { field.name.to_string() } else { format!("{above}.{}", field.name) };
            match &field.action {
                Action::Child(child) => {
                    // Where the document holds an array or a scalar decides what is computed below it.
                    if child.computes {
                        deps.add(&path);
                    }
                    child.collect(&path, deps);
                }
                Action::Compute(expression) => deps.merge(&expression.dependencies()),
                Action::Include | Action::Exclude | Action::Slice(_) | Action::ElemMatch(_) => deps.add(&path),
            }
        }
    }

    /// Adds what the computed fields read.
    pub fn collect_computed(&self, deps: &mut Deps) {
        for field in &self.fields {
            match &field.action {
                Action::Child(child) => child.collect_computed(deps),
                Action::Compute(expression) => deps.merge(&expression.dependencies()),
                _ => {}
            }
        }
    }
}

/// Two paths of which one leads to or through the other; `rest` is what lies behind the place where they meet.
fn collision(path: &Path, rest: &[Part]) -> Error {
    if rest.is_empty() {
        return Error::new(Code(31250), format!("Path collision at {path}"));
    }
    let rest: Vec<&str> = rest.iter().map(Part::name).collect();
    Error::new(Code(31249), format!("Path collision at {path} remaining portion {}", rest.join(".")))
}
