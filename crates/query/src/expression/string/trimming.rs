//! What `$trim`, `$ltrim` and `$rtrim` share.

use super::super::prelude::*;

static NAMED: Named =
    Named { fields: &[Field::required("input", 50695), Field::optional("chars")], not_object: 50696, unknown: 50694 };

#[derive(Debug, Clone, Copy)]
pub(super) struct Sides {
    pub operator: &'static str,
    pub left: bool,
    pub right: bool,
}

#[derive(Debug)]
struct Trim {
    sides: Sides,
    input: Node,
    chars: Option<Node>,
}

pub(super) fn parse(sides: Sides, argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse(sides.operator, argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    Ok(Node::custom(Trim { sides, input: next().unwrap_or(Node::NULL), chars: next() }))
}

/// What MongoDB takes for white space.
fn is_space(c: char) -> bool {
    matches!(c, '\0' | '\t'..='\r' | ' ' | '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}')
}

impl Custom for Trim {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let operator = self.sides.operator;
        let input = self.input.eval(env)?;
        if input.is_nullish() {
            return Ok(Value::NULL);
        }
        if !matches!(input.as_ref(), Some(ValueRef::String(_))) {
            let found = type_name(&input);
            return refuse(
                50699,
                format!("{operator} requires its input to be a string, got a value of type {found} instead."),
            );
        }
        let Some(chars) = &self.chars else { return Ok(self.cut(&input, is_space)) };
        let chars = chars.eval(env)?;
        match chars.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(Value::NULL),
            Some(ValueRef::String(chars)) => Ok(self.cut(&input, |c| chars.contains(c))),
            Some(other) => {
                let found = other.ty().name();
                refuse(
                    50700,
                    format!("{operator} requires 'chars' to be a string, got a value of type {found} instead."),
                )
            }
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input].into_iter().chain(&self.chars).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

impl Trim {
    fn cut<'a>(&self, input: &Value<'a>, drop: impl Fn(char) -> bool) -> Value<'a> {
        part(input, |value| {
            let mut text = value.as_str()?;
            if self.sides.left {
                text = text.trim_start_matches(&drop);
            }
            if self.sides.right {
                text = text.trim_end_matches(&drop);
            }
            Some(ValueRef::String(text))
        })
    }
}
