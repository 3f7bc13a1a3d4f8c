//! `$month`: The month of a date, from 1.

use super::super::prelude::*;

pub(super) static MONTH: Operator =
    Operator { name: "$month", args: Args::Any, eval: Eval::Special(parse), doc: "The month of a date, from 1." };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::date_part::parse("$month", |c| (c.month as i32).into(), argument, scope)
}
