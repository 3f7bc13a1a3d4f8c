//! Queries: filters, updates, projections, sorts, expressions, accumulators and stages. Parsed once, then run on
//! raw documents. Pure: opens no file or socket and reads no clock; what changes from run to run (the time, `let`
//! variables, whether to stop) comes in with [`Context`].

pub mod accumulator;
pub mod context;
pub mod distinct;
pub mod expression;
pub mod filter;
pub mod gather;
pub mod helpers;
pub mod projection;
pub mod registry;
pub mod sort;
pub mod stage;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod update;
pub mod window;

pub use context::{Context, Interrupt, Summary, Work};
pub use expression::Expression;
pub use filter::Filter;
pub use helpers::Helpers;
pub use stream::Stream;
