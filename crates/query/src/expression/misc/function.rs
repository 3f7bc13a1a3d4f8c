//! `$function`: A function in JavaScript. Known, not supported.

use super::super::prelude::*;

pub(super) static FUNCTION: Operator = Operator::known_unsupported("$function", "A function in JavaScript.");
