//! `$accumulator`: a custom accumulator in JavaScript. Known, not supported.

use super::definition::{Definition, Parse};

pub(super) static ACCUMULATOR: Definition =
    Definition { name: "$accumulator", parse: Parse::Unsupported, doc: "A custom accumulator in JavaScript." };
