//! `$bottom`: The output of the last document in a sort order.

use espalier_value::{Result, ValueRef};

use super::definition::{Definition, Parse};
use super::ranked::{BySort, Keep, Ranked, Rule, Show, parse_sorted};
use super::{AccumulatorSpec, State};
use crate::expression::Scope;

pub(super) static BOTTOM: Definition = Definition {
    name: "$bottom",
    parse: Parse::Special(parse),
    doc: "The output of the last document in a sort order.",
};

const RULE: Rule = Rule { operator: "$bottom", keep: Keep::Greatest, show: Show::One };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    parse_sorted(RULE.operator, false, |given| State::other(BySort(Ranked::new(RULE, given.count))), argument, scope)
}
