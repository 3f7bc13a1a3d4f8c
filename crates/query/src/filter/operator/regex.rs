//! `$regex`, and the plain `{a: /x/}`: strings that a Perl-compatible regular expression finds itself in. Also
//! matches a stored regular expression that is the same.

use espalier_value::{Code, DocBuf, Error, Result, Type, Value, ValueRef};
use pcre2::bytes::{Regex as Compiled, RegexBuilder};

use super::{Operator, Place, prefix};
use crate::context::Context;
use crate::filter::parse::Field;
use crate::filter::{Bounds, Interval, Node, Predicate};

pub(super) const REGEX: Operator = Operator {
    name: "$regex",
    place: Place::Field(parse),
    doc: "Strings that the Perl-compatible regular expression matches.",
};

fn parse(field: &Field<'_>) -> Result<Node> {
    let (pattern, own) = match field.argument {
        ValueRef::String(pattern) => (pattern, None),
        ValueRef::Regex(pattern, options) => (pattern, Some(options)),
        _ => return Err(Error::bad_value("$regex has to be a string")),
    };
    let options = match (own, field.siblings.get("$options")) {
        (_, Some(ValueRef::String(given))) => {
            if own.is_some_and(|own| !own.is_empty()) {
                return Err(Error::new(Code(51075), "options set in both $regex and $options"));
            }
            given
        }
        (_, Some(_)) => return Err(Error::bad_value("$options has to be a string")),
        (own, None) => own.unwrap_or_default(),
    };
    Ok(field.leaf(Regex::new(pattern, options)?))
}

#[derive(Debug, Clone)]
pub(crate) struct Regex {
    pattern: Box<str>,
    options: Box<str>,
    compiled: Compiled,
}

impl Regex {
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        let compiled = compile(pattern, options)?;
        Ok(Regex { pattern: pattern.into(), options: options.into(), compiled })
    }

    pub fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Regex(&self.pattern, &self.options)
    }

    pub fn is_match(&self, text: &str) -> Result<bool> {
        self.compiled
            .is_match(text.as_bytes())
            .map_err(|e| Error::new(Code(51156), format!("Error occurred while executing regular expression: {e}")))
    }
}

/// Compiles a pattern with MongoDB's option letters.
pub(crate) fn compile(pattern: &str, options: &str) -> Result<Compiled> {
    let mut builder = RegexBuilder::new();
    builder.utf(true).jit_if_available(true);
    for option in options.chars() {
        match option {
            'i' => builder.caseless(true),
            'm' => builder.multi_line(true),
            's' => builder.dotall(true),
            'x' => builder.extended(true),
            // UTF-8 is always on.
            'u' => &mut builder,
            other => return Err(Error::new(Code(51108), format!(" invalid flag in regex options: {other}"))),
        };
    }
    builder.build(pattern).map_err(|e| Error::new(Code(51091), format!("Regular expression is invalid: {e}")))
}

impl Predicate for Regex {
    fn name(&self) -> &'static str {
        "$regex"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        match value {
            Some(ValueRef::String(text) | ValueRef::Symbol(text)) => self.is_match(text),
            Some(ValueRef::Regex(pattern, options)) => Ok(pattern == &*self.pattern && options == &*self.options),
            _ => Ok(false),
        }
    }

    /// Strings that start as the pattern does, and the regular expression itself.
    fn bounds(&self) -> Option<Bounds> {
        let same = Interval::point(self.as_value());
        Some(match prefix::of(&self.pattern, &self.options) {
            Some(found) => {
                let low = Value::string(&found.text);
                let (high, inclusive) = match prefix::successor(&found.text) {
                    Some(next) => (Value::string(next), false),
                    None => crate::filter::brackets::end(Type::String.rank()),
                };
                let strings = Interval::new(low, true, high, inclusive);
                let intervals = vec![strings, same];
                if found.whole { Bounds::exact(intervals) } else { Bounds::inexact(intervals) }
            }
            None => Bounds::inexact(vec![crate::filter::brackets::interval(Type::String.rank()), same]),
        })
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$regex", &*self.pattern);
        if !self.options.is_empty() {
            out.append("$options", &*self.options);
        }
    }
}
