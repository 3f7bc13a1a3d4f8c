//! The tree of paths an update is parsed into, so that all its operators are applied in one pass over a document.
//! Two operators on one path, or on a path and one below it, conflict and are refused while the tree is built.

use std::collections::HashMap;

use espalier_value::{Code, Error, Result};

use super::names::{self, Places, array_index};
use super::operator::Operator;

#[derive(Debug)]
pub(super) enum Node {
    Leaf(Leaf),
    /// Named fields of a document, or elements of an array by number.
    Fields(Fields),
    /// `$[]` and `$[id]`: elements of an array by condition.
    Elements(Elements),
}

#[derive(Debug)]
pub(super) struct Leaf {
    pub operator: Box<dyn Operator>,
    /// Levels of nesting a document has at least after this operator was applied.
    pub depth: usize,
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Once the tree is finished, in the order in which missing ones are created.
    pub children: Vec<Child>,
    /// The child under `$`.
    pub positional: Option<Box<Node>>,
    /// While the tree is built: every child by its name, if there are many.
    building: HashMap<Box<str>, usize>,
    places: Places<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Child {
    pub name: Box<str>,
    /// The name as an element's number.
    pub index: Option<usize>,
    pub node: Node,
}

#[derive(Debug, Default)]
pub(super) struct Elements {
    pub children: Vec<Chosen>,
}

/// What is done to the elements that a condition chooses.
#[derive(Debug)]
pub(super) struct Chosen {
    /// Empty for `$[]`.
    pub identifier: Box<str>,
    /// Which array filter; `None` for `$[]`.
    pub filter: Option<usize>,
    pub node: Node,
}

/// One part of an update path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Name(Box<str>),
    /// `$`
    Positional,
    /// `$[]`, or `$[id]` with the number of its filter.
    Elements {
        identifier: Box<str>,
        filter: Option<usize>,
    },
}

impl Node {
    /// Puts the children in order, once all are there.
    pub fn finish(&mut self) {
        match self {
            Node::Leaf(_) => {}
            Node::Fields(fields) => fields.finish(),
            Node::Elements(elements) => elements.children.iter_mut().for_each(|c| c.node.finish()),
        }
    }
}

impl Fields {
    /// Adds an operator at a path below this node. `at` is how far `path` has been followed.
    pub fn insert(&mut self, path: &[Part], text: &str, at: usize, leaf: Leaf) -> Result<()> {
        let place = match &path[at] {
            Part::Name(name) => match self.position(name) {
                Some(i) => Place::Taken(&mut self.children[i].node),
                None => Place::Free(Vacancy::Field(self, name.clone())),
            },
            _ => match &mut self.positional {
                Some(node) => Place::Taken(node),
                empty => Place::Free(Vacancy::Positional(empty)),
            },
        };
        insert(place, path, text, at, leaf)
    }

    /// While the tree is built.
    fn position(&self, name: &str) -> Option<usize> {
        match self.building.is_empty() {
            true => self.children.iter().position(|child| &*child.name == name),
            false => self.building.get(name).copied(),
        }
    }

    fn add(&mut self, name: Box<str>, node: Node) {
        self.children.push(Child { index: array_index(&name), name, node });
        let from = match self.children.len() {
            few if few <= names::SCAN_MAX => return,
            _ => self.building.len(),
        };
        let later = self.children.iter().map(|child| child.name.clone()).zip(0..).skip(from);
        self.building.extend(later);
    }

    fn finish(&mut self) {
        self.building = HashMap::new();
        names::sort(&mut self.children, |c| &c.name);
        self.places = Places::new(self.children.iter().map(|c| c.name.as_bytes().into()));
        self.children.iter_mut().for_each(|c| c.node.finish());
        if let Some(node) = &mut self.positional {
            node.finish();
        }
    }

    /// The child of that name.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.places.find(self.children.iter().map(|c| c.name.as_bytes()), name)
    }
}

/// Where a path's next node is or would be.
enum Place<'t> {
    Taken(&'t mut Node),
    Free(Vacancy<'t>),
    /// A part of a kind that the node above cannot have: a conflict.
    Nowhere,
}

enum Vacancy<'t> {
    Field(&'t mut Fields, Box<str>),
    Positional(&'t mut Option<Box<Node>>),
    Elements(&'t mut Elements, Box<str>, Option<usize>),
}

impl Vacancy<'_> {
    fn fill(self, node: Node) {
        match self {
            Vacancy::Field(fields, name) => fields.add(name, node),
            Vacancy::Positional(place) => *place = Some(Box::new(node)),
            Vacancy::Elements(elements, identifier, filter) => {
                elements.children.push(Chosen { identifier, filter, node });
            }
        }
    }
}

fn insert(place: Place<'_>, path: &[Part], text: &str, at: usize, leaf: Leaf) -> Result<()> {
    let next = at + 1;
    match place {
        Place::Free(vacancy) => {
            let node = if next == path.len() {
                Node::Leaf(leaf)
            } else if matches!(path[next], Part::Elements { .. }) {
                let mut elements = Elements::default();
                insert(elements_child(&mut elements, &path[next]), path, text, next, leaf)?;
                Node::Elements(elements)
            } else {
                let mut fields = Fields::default();
                fields.insert(path, text, next, leaf)?;
                Node::Fields(fields)
            };
            vacancy.fill(node);
            Ok(())
        }
        Place::Taken(_) if next == path.len() => Err(conflict(text, text)),
        Place::Taken(Node::Fields(fields)) if !matches!(path[next], Part::Elements { .. }) => {
            fields.insert(path, text, next, leaf)
        }
        Place::Taken(Node::Elements(elements)) if matches!(path[next], Part::Elements { .. }) => {
            insert(elements_child(elements, &path[next]), path, text, next, leaf)
        }
        Place::Taken(_) | Place::Nowhere => {
            let prefix: Vec<&str> = text.split('.').take(next).collect();
            Err(conflict(text, &prefix.join(".")))
        }
    }
}

fn elements_child<'t>(elements: &'t mut Elements, part: &Part) -> Place<'t> {
    let Part::Elements { identifier, filter } = part else { return Place::Nowhere };
    match elements.children.iter().position(|c| c.identifier == *identifier) {
        Some(i) => Place::Taken(&mut elements.children[i].node),
        None => Place::Free(Vacancy::Elements(elements, identifier.clone(), *filter)),
    }
}

fn conflict(path: &str, at: &str) -> Error {
    let message = format!("Updating the path '{path}' would create a conflict at '{at}'");
    Error::new(Code::ConflictingUpdateOperators, message)
}
