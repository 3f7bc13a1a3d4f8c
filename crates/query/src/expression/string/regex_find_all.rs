//! `$regexFindAll`: All matches of a regular expression: their texts, positions and captures.

use super::super::prelude::*;

pub(super) static REGEX_FIND_ALL: Operator = Operator {
    name: "$regexFindAll",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "All matches of a regular expression: their texts, positions and captures.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    super::regex::parse("$regexFindAll", result, argument, scope)
}

fn result(given: Option<(&str, &pcre2::bytes::Regex)>) -> Result<Value<'static>> {
    let mut out = ArrayBuf::new();
    let Some((text, regex)) = given else { return Ok(Value::array(out)) };
    let (mut at, mut counted, mut index) = (0, 0, 0);
    while let Some(found) = super::regex::find_at(regex, text, at)? {
        index += text[counted..found.start].chars().count();
        counted = found.start;
        out.push(found.to_document(index).as_raw());
        // After an empty match the search goes on behind the next character.
        at = if found.end > found.start { found.end } else { found.end + step(text, found.end) };
        if at >= text.len() {
            break;
        }
    }
    Ok(Value::array(out))
}

fn step(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}
