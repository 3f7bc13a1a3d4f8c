//! `$top`: The output of the first document in a sort order.

use espalier_value::{Result, ValueRef};

use super::definition::{Definition, Parse};
use super::ranked::{BySort, Keep, Ranked, Rule, Show, parse_sorted};
use super::{AccumulatorSpec, State};
use crate::expression::Scope;

pub(super) static TOP: Definition =
    Definition { name: "$top", parse: Parse::Special(parse), doc: "The output of the first document in a sort order." };

const RULE: Rule = Rule { operator: "$top", keep: Keep::Least, show: Show::One };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    parse_sorted(RULE.operator, false, |given| State::other(BySort(Ranked::new(RULE, given.count))), argument, scope)
}
