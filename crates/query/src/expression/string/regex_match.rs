//! `$regexMatch`: True if a regular expression matches a string.

use super::super::prelude::*;

pub(super) static REGEX_MATCH: Operator = Operator {
    name: "$regexMatch",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "True if a regular expression matches a string.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::regex::parse("$regexMatch", result, argument, scope)
}

fn result(given: Option<(&str, &pcre2::bytes::Regex)>) -> Result<Value<'static>> {
    let Some((text, regex)) = given else { return Ok(false.into()) };
    Ok(super::regex::find_at(regex, text, 0)?.is_some().into())
}
