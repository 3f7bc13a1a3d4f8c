//! What a walk does at one place. Usually one node of the tree; several where `$`, `$[]` and `$[id]` happen to lead to
//! the same element, and then they are merged on the spot, or found to conflict.

use std::collections::HashMap;

use espalier_value::{Code, Error, Result};
use smallvec::SmallVec;

use super::names::{self, Places, array_index};
use super::trail::Trail;
use super::tree::{Chosen, Fields, Leaf, Node};

/// The nodes that apply to one place.
#[derive(Clone, Copy)]
pub(super) enum Nodes<'b, 'n> {
    One(&'n Node),
    Many(&'b [&'n Node]),
}

/// The same, sorted out.
pub(super) enum View<'n> {
    Leaf(&'n Leaf),
    Fields(Branches<'n>),
    Elements(Choices<'n>),
}

impl<'n> Nodes<'_, 'n> {
    pub fn view(self, position: Option<&'n str>, trail: &Trail<'_>) -> Result<View<'n>> {
        match self {
            Nodes::One(Node::Leaf(leaf)) => Ok(View::Leaf(leaf)),
            Nodes::One(Node::Fields(fields)) => Ok(View::Fields(match fields.positional {
                None => Branches::Plain(fields),
                Some(_) => Branches::merge(&[fields], position)?,
            })),
            Nodes::One(Node::Elements(elements)) => Ok(View::Elements(Choices { lists: vec![&elements.children] })),
            Nodes::Many(nodes) => merge(nodes, position, trail),
        }
    }
}

fn merge<'n>(nodes: &[&'n Node], position: Option<&'n str>, trail: &Trail<'_>) -> Result<View<'n>> {
    let (mut fields, mut lists) = (Vec::new(), Vec::new());
    for node in nodes {
        match node {
            Node::Leaf(_) => {}
            Node::Fields(f) => fields.push(f),
            Node::Elements(e) => lists.push(e.children.as_slice()),
        }
    }
    if fields.len() == nodes.len() {
        Ok(View::Fields(Branches::merge(&fields, position)?))
    } else if lists.len() == nodes.len() {
        Ok(View::Elements(Choices { lists }))
    } else {
        Err(conflict(trail))
    }
}

pub(super) fn conflict(trail: &Trail<'_>) -> Error {
    Error::new(Code::ConflictingUpdateOperators, format!("Update created a conflict at '{}'", trail.dotted()))
}

/// What is done to the elements of an array, by condition.
pub(super) struct Choices<'n> {
    lists: Vec<&'n [Chosen]>,
}

impl<'n> Choices<'n> {
    pub fn iter(&self) -> impl Iterator<Item = &'n Chosen> + '_ {
        self.lists.iter().flat_map(|list| list.iter())
    }
}

/// What is done to named fields or numbered elements, in the order in which missing ones are created.
pub(super) enum Branches<'n> {
    Plain(&'n Fields),
    Merged(Vec<Merged<'n>>, Places<&'n [u8]>),
}

pub(super) struct Merged<'n> {
    name: &'n str,
    nodes: Vec<&'n Node>,
}

impl<'n> Branches<'n> {
    /// A `$` without a position is refused where the walk comes to it: what is wrong before it is told first.
    fn merge(parts: &[&'n Fields], position: Option<&'n str>) -> Result<Branches<'n>> {
        let mut merged: Vec<Merged<'n>> = Vec::new();
        let mut places: HashMap<&'n str, usize> = HashMap::new();
        let mut add = |name: &'n str, node: &'n Node| {
            let at = *places.entry(name).or_insert(merged.len());
            match merged.get_mut(at) {
                Some(present) => present.nodes.push(node),
                None => merged.push(Merged { name, nodes: vec![node] }),
            }
        };
        for fields in parts {
            fields.children.iter().for_each(|c| add(&c.name, &c.node));
            if let Some(node) = &fields.positional {
                let Some(name) = position else {
                    let message = "The positional operator did not find the match needed from the query.";
                    return Err(Error::bad_value(message));
                };
                add(name, node);
            }
        }
        names::sort(&mut merged, |m| m.name);
        let places = Places::new(merged.iter().map(|m| m.name.as_bytes()));
        Ok(Branches::Merged(merged, places))
    }

    pub fn len(&self) -> usize {
        match self {
            Branches::Plain(fields) => fields.children.len(),
            Branches::Merged(list, _) => list.len(),
        }
    }

    pub fn find(&self, name: &[u8]) -> Option<usize> {
        match self {
            Branches::Plain(fields) => fields.find(name),
            Branches::Merged(list, places) => places.find(list.iter().map(|m| m.name.as_bytes()), name),
        }
    }

    pub fn name(&self, at: usize) -> &'n str {
        match self {
            Branches::Plain(fields) => &fields.children[at].name,
            Branches::Merged(list, _) => list[at].name,
        }
    }

    /// The name as the number of an element.
    pub fn index(&self, at: usize) -> Option<usize> {
        match self {
            Branches::Plain(fields) => fields.children[at].index,
            Branches::Merged(list, _) => array_index(list[at].name),
        }
    }

    /// Those that name an element, by its number.
    pub fn by_index(&self) -> SmallVec<[(usize, usize); 4]> {
        let mut list: SmallVec<_> = (0..self.len()).filter_map(|at| Some((self.index(at)?, at))).collect();
        list.sort_unstable();
        list
    }

    pub fn nodes(&self, at: usize) -> Nodes<'_, 'n> {
        match self {
            Branches::Plain(fields) => Nodes::One(&fields.children[at].node),
            Branches::Merged(list, _) => match list[at].nodes.as_slice() {
                [one] => Nodes::One(one),
                many => Nodes::Many(many),
            },
        }
    }
}

/// Which branches have met their field: bits, without allocation for up to 64.
pub(super) struct Seen {
    first: u64,
    more: Vec<u64>,
    pending: usize,
}

impl Seen {
    pub fn new(len: usize) -> Seen {
        Seen { first: 0, more: vec![0; len.saturating_sub(1) / 64], pending: len }
    }

    /// How many have not.
    pub fn pending(&self) -> usize {
        self.pending
    }

    fn word(&mut self, at: usize) -> &mut u64 {
        if at < 64 { &mut self.first } else { &mut self.more[at / 64 - 1] }
    }

    /// False if it had already.
    pub fn insert(&mut self, at: usize) -> bool {
        let bit = 1 << (at % 64);
        let word = self.word(at);
        let new = *word & bit == 0;
        *word |= bit;
        self.pending -= usize::from(new);
        new
    }

    pub fn contains(&mut self, at: usize) -> bool {
        *self.word(at) & (1 << (at % 64)) != 0
    }
}
