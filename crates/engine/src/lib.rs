//! The embedded engine: catalog, indexes, planner, executor and transactions on an ordered key-value engine.
//!
//! It implements the store seam. A find walks: [`plan::plan`] → [`exec::open`] → [`exec::FindCursor`]. A write
//! walks: [`txn`] finds and locks the record, [`index`] gives the entries to add and remove, one batch commits both.

mod backoff;
mod build;
mod catalog;
mod core;
mod error;
mod exec;
mod explain;
mod history;
mod index;
mod layout;
mod locks;
mod past;
mod plan;
mod retry;
mod spill;
mod stats;
mod txn;
mod validate;
mod view;

pub use crate::core::{Engine, EngineOptions, Recovered};
