//! `$regex`, and the plain `{a: /x/}`: strings that a Perl-compatible regular expression finds itself in. Also
//! matches a stored regular expression that is the same.

use std::sync::OnceLock;

use espalier_value::{Code, Collator, DocBuf, Error, Result, Type, Value, ValueRef};
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
    /// The same without machine code, for the rare text that needs more stack than machine code may use.
    patient: OnceLock<Compiled>,
}

/// How deep machine code may go into one text.
const JIT_STACK_BYTES_MAX: usize = 1 << 20;
const PCRE2_ERROR_JIT_STACKLIMIT: i32 = -46;

impl Regex {
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        let compiled = compile(pattern, options)?;
        Ok(Regex { pattern: pattern.into(), options: options.into(), compiled, patient: OnceLock::new() })
    }

    pub fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Regex(&self.pattern, &self.options)
    }

    /// An error if PCRE gives up (`(a+)+$` can take for ever): MongoDB 6.0 took that for no match, later versions
    /// say so, as this does.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        match self.compiled.is_match(text.as_bytes()) {
            Ok(answer) => Ok(answer),
            Err(e) if e.code() == PCRE2_ERROR_JIT_STACKLIMIT => self.is_match_patiently(text),
            Err(e) => Err(gave_up(&e)),
        }
    }

    #[cold]
    fn is_match_patiently(&self, text: &str) -> Result<bool> {
        let compiled = match self.patient.get() {
            Some(compiled) => compiled,
            None => {
                let compiled = compile_with(&self.pattern, &self.options, false)?;
                self.patient.get_or_init(|| compiled)
            }
        };
        compiled.is_match(text.as_bytes()).map_err(|e| gave_up(&e))
    }
}

fn gave_up(e: &pcre2::Error) -> Error {
    Error::new(Code(51156), format!("Error occurred while executing the regular expression: {e}"))
}

/// Compiles a pattern with MongoDB's option letters.
pub(crate) fn compile(pattern: &str, options: &str) -> Result<Compiled> {
    compile_with(pattern, options, true)
}

fn compile_with(pattern: &str, options: &str, jit: bool) -> Result<Compiled> {
    let mut builder = RegexBuilder::new();
    builder.utf(true).jit_if_available(jit).max_jit_stack_size(Some(JIT_STACK_BYTES_MAX));
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
    fn bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        let same = Interval::point(self.as_value());
        // Of a string's key under a collation nothing can be said about how the string begins.
        let prefix = if index.is_simple() { prefix::of(&self.pattern, &self.options) } else { None };
        Some(match prefix {
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
