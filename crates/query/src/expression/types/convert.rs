//! `$convert`: A value converted to another type, with answers for null and for what cannot be converted.

use super::super::prelude::*;

pub(super) static CONVERT: Operator = Operator {
    name: "$convert",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A value converted to another type, with answers for null and for what cannot be converted.",
};

use super::conversion;

static NAMED: Named = Named {
    fields: &[
        Field::required("input", 9),
        Field::required("to", 9),
        Field::optional("onError"),
        Field::optional("onNull"),
    ],
    not_object: 9,
    unknown: 9,
};

#[derive(Debug)]
struct Convert {
    input: Node,
    to: Node,
    on_error: Option<Node>,
    on_null: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$convert", argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    Ok(Node::custom(Convert {
        input: next().unwrap_or(Node::NULL),
        to: next().unwrap_or(Node::NULL),
        on_error: next(),
        on_null: next(),
    }))
}

/// The type that `to` names; `None` if it is null, an unknown place for "missing", to which nothing converts.
fn target(to: &Value<'_>) -> Result<Option<Type>> {
    match to.as_ref() {
        Some(ValueRef::String("missing")) => Ok(None),
        Some(ValueRef::String(name)) => match Type::ALL.into_iter().find(|t| t.name() == name) {
            Some(ty) => Ok(Some(ty)),
            None => Err(Error::bad_value(format!("Unknown type name: {name}"))),
        },
        Some(value) if value.is_number() => {
            let Some(number) = Number::of(value).and_then(Number::as_exact_i64) else {
                return Err(Error::failed_to_parse("In $convert, numeric 'to' argument is not an integer"));
            };
            match (number, Type::ALL.into_iter().find(|t| i64::from(t.number()) == number)) {
                (0, _) => Ok(None),
                (_, Some(ty)) => Ok(Some(ty)),
                _ => Err(Error::failed_to_parse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {number}"
                ))),
            }
        }
        _ => Err(Error::failed_to_parse(format!(
            "$convert's 'to' argument must be a string or number, but is {}",
            type_name(to)
        ))),
    }
}

impl Custom for Convert {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let to = self.to.eval(env)?;
        let input = self.input.eval(env)?;
        // An unknown type is an error even where there is nothing to convert.
        let target = if to.is_nullish() { None } else { target(&to)? };
        if input.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::NULL), |node| node.eval(env));
        }
        if to.is_nullish() {
            return Ok(Value::NULL);
        }
        let converted = match target {
            Some(ty) => conversion::convert(&input, ty),
            None => conversion::failure(format!(
                "Unsupported conversion from {} to missing in $convert with no onError value",
                type_name(&input)
            )),
        };
        match (converted, &self.on_error) {
            (Err(e), Some(node)) if e.code() == Code::ConversionFailure => node.eval(env),
            (converted, _) => converted,
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.input, &self.to].into_iter().chain(&self.on_error).chain(&self.on_null).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
