//! `$bottomN`: The outputs of the last n documents in a sort order.

use espalier_value::{Result, ValueRef};

use super::definition::{Definition, Parse};
use super::ranked::{BySort, Keep, Ranked, Rule, Show, parse_sorted};
use super::{AccumulatorSpec, State};
use crate::expression::Scope;

pub(super) static BOTTOM_N: Definition = Definition {
    name: "$bottomN",
    parse: Parse::Special(parse),
    doc: "The outputs of the last n documents in a sort order.",
};

const RULE: Rule = Rule { operator: "$bottomN", keep: Keep::Greatest, show: Show::Ascending };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    parse_sorted(RULE.operator, true, |given| State::other(BySort(Ranked::new(RULE, given.count))), argument, scope)
}
