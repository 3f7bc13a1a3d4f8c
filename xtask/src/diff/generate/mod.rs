//! Random scenarios: documents and commands on them, one file for each kind of thing generated.

mod accumulator;
mod aggregate;
mod collation;
mod document;
mod expression;
mod filter;
mod find;
mod index;
mod path;
mod pipeline;
mod projection;
mod read;
mod sort;
mod stages;
mod update;
mod value;
mod wildcard;
mod write;

use bson::Document;

use crate::random::Random;

/// Documents, perhaps indexes, and commands whose answers are compared one by one.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub documents: Vec<Document>,
    /// Specifications as `createIndexes` takes them.
    pub indexes: Vec<Document>,
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
pub static KINDS: &[Kind] = &[
    aggregate::AGGREGATE,
    read::COUNT,
    write::DELETE,
    read::DISTINCT,
    find::FIND,
    write::FIND_AND_MODIFY,
    stages::PIPELINE,
    find::SORTED,
    write::UPDATE,
    wildcard::WILDCARD,
];
