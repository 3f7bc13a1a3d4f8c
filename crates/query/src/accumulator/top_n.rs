//! `$topN`: The outputs of the first n documents in a sort order.

use espalier_value::{Result, ValueRef};

use super::definition::{Definition, Parse};
use super::ranked::{BySort, Keep, Ranked, Rule, Show, parse_sorted};
use super::{AccumulatorSpec, State};
use crate::expression::Scope;

pub(super) static TOP_N: Definition = Definition {
    name: "$topN",
    parse: Parse::Special(parse),
    doc: "The outputs of the first n documents in a sort order.",
};

const RULE: Rule = Rule { operator: "$topN", keep: Keep::Least, show: Show::Ascending };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    parse_sorted(RULE.operator, true, |given| State::other(BySort(Ranked::new(RULE, given.count))), argument, scope)
}
