//! `$maxN`: the n greatest values, greatest first; null and missing do not count.

use espalier_value::{Result, ValueRef};

use super::definition::{Definition, Parse};
use super::ranked::{ByValue, Keep, Rule, Show, parse_n};
use super::{AccumulatorSpec, State};
use crate::expression::Scope;

pub(super) static MAX_N: Definition = Definition {
    name: "$maxN",
    parse: Parse::Special(parse),
    doc: "The n greatest values; null and missing do not count.",
};

const RULE: Rule = Rule { operator: "$maxN", keep: Keep::Greatest, show: Show::Descending };

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    parse_n(RULE.operator, 5787900, |given| State::other(ByValue::new(RULE, given)), argument, scope)
}
