//! `$meta`: Metadata of a document, such as its text score. Known, not supported.

use super::super::prelude::*;

pub(super) static META: Operator =
    Operator::known_unsupported("$meta", "Metadata of a document, such as its text score.");
