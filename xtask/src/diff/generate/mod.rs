//! Random scenarios: documents and commands on them, one file for each kind of thing generated.

mod aggregate;
mod document;
mod filter;
mod find;
mod path;
mod pipeline;
mod projection;
mod sort;
mod update;
mod value;
mod write;

use bson::Document;

use crate::random::Random;

/// Documents, perhaps an index, and commands whose answers are compared one by one.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub documents: Vec<Document>,
    pub index: Option<Document>,
    pub commands: Vec<Document>,
    /// The commands change the collection: it is put back before each, and read after it.
    pub writes: bool,
    /// The results have no order of their own.
    pub unordered: bool,
}

impl Scenario {
    /// The scenario with one of its commands.
    pub fn only(&self, number: usize) -> Scenario {
        Scenario { commands: vec![self.commands[number].clone()], ..self.clone() }
    }
}

/// A kind of scenario.
pub struct Kind {
    pub name: &'static str,
    pub generate: fn(&mut Random) -> Scenario,
}

/// Every kind, sorted by name.
pub static KINDS: &[Kind] = &[aggregate::AGGREGATE, find::FIND, find::SORTED, write::UPDATE];
