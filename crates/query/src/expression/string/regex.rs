//! What `$regexMatch`, `$regexFind` and `$regexFindAll` share: the arguments, and a pattern that is compiled once if it
//! is constant.

use pcre2::bytes::Regex;

use super::super::prelude::*;
use crate::filter::compile_regex;

static NAMED: Named = Named {
    fields: &[Field::required("input", 31022), Field::required("regex", 31023), Field::optional("options")],
    not_object: 51103,
    unknown: 31024,
};

/// A parsed operator of the family.
#[derive(Debug)]
pub(super) struct RegexCall {
    operator: &'static str,
    input: Node,
    regex: Node,
    options: Node,
    /// The pattern, if it is constant; the inner `None` is null, which matches nothing.
    compiled: Option<Option<Regex>>,
    result: ResultOf,
}

/// Makes the result from the text and the pattern; `None` if one of them is null.
type ResultOf = fn(Option<(&str, &Regex)>) -> Result<Value<'static>>;

pub(super) fn parse(operator: &'static str, result: ResultOf, argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse(operator, argument, scope)?.into_iter();
    let mut next = || given.next().flatten().unwrap_or(Node::NULL);
    let (input, regex, options) = (next(), next(), next());
    let compiled = match (&regex, &options) {
        (Node::Literal(regex), Node::Literal(options)) => {
            compile(operator, regex, options).map_err(|error| scope.defer(error)).ok()
        }
        _ => None,
    };
    Ok(Node::custom(RegexCall { operator, input, regex, options, compiled, result }))
}

fn compile(operator: &str, regex: &Value<'_>, options: &Value<'_>) -> Result<Option<Regex>> {
    if !regex.is_nullish() && !matches!(regex.as_ref(), Some(ValueRef::String(_) | ValueRef::Regex(..))) {
        return refuse(51105, format!("{operator} needs 'regex' to be of type string or regex"));
    }
    let options = match options.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => "",
        Some(ValueRef::String(options)) => options,
        Some(_) => return refuse(51106, format!("{operator} needs 'options' to be of type string")),
    };
    let (pattern, options) = match regex.as_ref() {
        Some(ValueRef::String(pattern)) => (pattern, options),
        Some(ValueRef::Regex(pattern, "")) => (pattern, options),
        Some(ValueRef::Regex(pattern, own)) if options.is_empty() => (pattern, own),
        Some(ValueRef::Regex(..)) => {
            let message = format!("{operator}: found regex option(s) specified in both 'regex' and 'option' fields");
            return refuse(51107, message);
        }
        _ => return Ok(None),
    };
    if pattern.contains('\0') {
        return refuse(51109, format!("{operator}: regular expression cannot contain an embedded null byte"));
    }
    match compile_regex(pattern, options) {
        Ok(regex) => Ok(Some(regex)),
        Err(e) if e.code() == Code(51108) => refuse(51108, format!("{operator}{}", e.message())),
        Err(e) => refuse(51111, format!("Invalid Regex in {operator}: {}", e.message())),
    }
}

impl Custom for RegexCall {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        let pattern = match &self.compiled {
            Some(_) => None,
            None => Some((self.regex.eval(env)?, self.options.eval(env)?)),
        };
        let text = match input.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => None,
            Some(ValueRef::String(text)) => Some(text),
            Some(_) => return refuse(51104, format!("{} needs 'input' to be of type string", self.operator)),
        };
        let computed;
        let regex = match (&self.compiled, pattern) {
            (Some(regex), _) => regex.as_ref(),
            (None, Some((regex, options))) => {
                computed = compile(self.operator, &regex, &options)?;
                computed.as_ref()
            }
            (None, None) => None,
        };
        (self.result)(text.zip(regex))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input, &self.regex, &self.options].into_iter().for_each(visit);
    }
}

/// One match: where it is in bytes, and its captures.
pub(super) struct Found<'t> {
    pub start: usize,
    pub end: usize,
    pub text: &'t str,
    captures: Vec<Option<&'t str>>,
}

/// The first match at or after a byte position.
pub(super) fn find_at<'t>(regex: &Regex, text: &'t str, at: usize) -> Result<Option<Found<'t>>> {
    let mut places = regex.capture_locations();
    let found = (regex.captures_read_at(&mut places, text.as_bytes(), at))
        .map_err(|e| Error::new(Code(51156), format!("Error occurred while executing regular expression: {e}")))?;
    let Some(found) = found else { return Ok(None) };
    let (start, end) = (found.start(), found.end());
    let slice = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let captures = (1..places.len()).map(|i| places.get(i).map(|(from, to)| slice(from, to))).collect();
    Ok(Some(Found { start, end, text: slice(start, end), captures }))
}

impl Found<'_> {
    /// `{match, idx, captures}`; `idx` counts code points.
    pub fn to_document(&self, index: usize) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("match", self.text).append("idx", index as i32);
        doc.append_array("captures", |array| {
            for capture in &self.captures {
                array.push(capture.map_or(ValueRef::Null, ValueRef::String));
            }
        });
        doc
    }
}
