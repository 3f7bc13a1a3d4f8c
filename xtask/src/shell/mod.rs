//! BSON values as text, in the syntax people know from mongosh, with exact types.
//!
//! `parse` reads what a person writes (unquoted keys, either quote, trailing commas, comments, constructors such as
//! `NumberLong(5)`); `print` writes one canonical form, so that `parse(print(x)) == x` with types and key order kept.

mod constructor;
mod parse;
mod placeholder;
mod print;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub use parse::parse;
pub use parse::{Environment, Parser};
pub use placeholder::{Placeholder, placeholder};
pub use print::{print, print_wrapped};
