//! Declared patterns: a store on a store. Collections without a pattern pass through at the price of one look-up; on
//! others a command on logical documents becomes operations on the stored ones, in one transaction.
//!
//! A *layout* decides where a logical document lives; one file (or folder) each, one line in [`kind::ALL`]. Whatever a
//! pattern stores beside the collection it is declared on lives in ordinary collections that say whose they are.
//!
//! The walk of a `$push` on an array with the `outlier` pattern: [`txn`] finds that the collection has a layout →
//! [`mod@write`] finds the document, takes its turn among the writers of that document and begins a transaction below →
//! `outlier/update.rs` sees that the update only appends, reads the head's counts and the last batch, writes both →
//! commit; a conflict starts over inside.
//!
//! Invariants:
//! - What a pattern stores for one logical write commits with it or not at all.
//! - A read sees one snapshot, also where it puts documents together.
//! - A command is carried out exactly as on the logical documents, or refused with an error that names the pattern.

mod approximate;
mod archive;
mod beside;
mod bson;
mod bucket;
mod chained;
mod computed;
mod cursor;
mod ddl;
mod declare;
mod derive;
mod duration;
mod fields;
mod freshness;
mod health;
mod job;
mod kind;
mod layout;
mod locks;
mod order;
mod outlier;
mod pace;
mod patterned;
mod raw;
mod read;
mod reference;
mod repair;
mod roles;
mod schedule;
mod shared;
mod shown;
mod sleeper;
mod stored;
mod subset;
mod txn;
mod validator;
mod write;

pub use kind::registry;
pub use patterned::Patterned;
