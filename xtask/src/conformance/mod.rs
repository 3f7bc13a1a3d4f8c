//! Conformance: commands, and what MongoDB answers to them, in plain text files.
//!
//! `record` asks the reference mongod and writes its answers down; `replay` asks Espalier and compares. The format is
//! described in `conformance/README.md`.

mod case;
mod compare;
mod differences;
mod file;
mod files;
mod normalize;
mod record;
mod replay;
mod runner;

#[cfg(test)]
mod tests;

pub use case::Directives;
pub use compare::difference;
pub use normalize::normalize;
pub use record::record;
pub use replay::{replay, replay_on};
