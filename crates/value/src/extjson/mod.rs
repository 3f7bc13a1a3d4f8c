//! MongoDB extended JSON (version 2), written: canonical keeps every type, relaxed reads like plain JSON.
//!
//! For logs, tools and tests. Output goes through `Display`, so that it can be written anywhere.

mod base64;
mod write;

use std::fmt::{self, Display, Formatter};

use crate::raw::ValueRef;

/// A value in canonical extended JSON: `{"$numberInt":"1"}`.
#[derive(Clone, Copy)]
pub struct Canonical<'a>(pub ValueRef<'a>);

/// A value in relaxed extended JSON: `1`.
#[derive(Clone, Copy)]
pub struct Relaxed<'a>(pub ValueRef<'a>);

impl Display for Canonical<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write::value(f, self.0, true)
    }
}

impl Display for Relaxed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write::value(f, self.0, false)
    }
}

#[cfg(test)]
mod tests;
