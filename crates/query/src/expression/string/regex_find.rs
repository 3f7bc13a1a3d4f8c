//! `$regexFind`: The first match of a regular expression: its text, position and captures, or null.

use super::super::prelude::*;

pub(super) static REGEX_FIND: Operator = Operator {
    name: "$regexFind",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The first match of a regular expression: its text, position and captures, or null.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::regex::parse("$regexFind", result, argument, scope)
}

fn result(given: Option<(&str, &pcre2::bytes::Regex)>) -> Result<Value<'static>> {
    let Some((text, regex)) = given else { return Ok(Value::NULL) };
    Ok(match super::regex::find_at(regex, text, 0)? {
        None => Value::NULL,
        Some(found) => Value::document(found.to_document(text[..found.start].chars().count())),
    })
}
