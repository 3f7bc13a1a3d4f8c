//! `$dateFromString`: The date that a string says, in a given format or in words.

use super::super::prelude::*;

pub(super) static DATE_FROM_STRING: Operator = Operator {
    name: "$dateFromString",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The date that a string says, in a given format or in words.",
};

use super::format::Format;
use super::parse_date::{self, Parsed};
use super::zone::{Zone, ZoneArg};

static NAMED: Named = Named {
    fields: &[
        Field::required("dateString", 40542),
        Field::optional("format"),
        Field::optional("timezone"),
        Field::optional("onError"),
        Field::optional("onNull"),
    ],
    not_object: 40540,
    unknown: 40541,
};

#[derive(Debug)]
struct DateFromString {
    text: Node,
    format: Option<Node>,
    zone: ZoneArg,
    has_zone: bool,
    on_error: Option<Node>,
    on_null: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$dateFromString", argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    let text = next().unwrap_or(Node::NULL);
    let format = next();
    let zone = next();
    let has_zone = zone.is_some();
    let zone = ZoneArg::parse("$dateFromString", zone)?;
    Ok(Node::custom(DateFromString { text, format, zone, has_zone, on_error: next(), on_null: next() }))
}

impl DateFromString {
    fn read(&self, text: &Value<'_>, format: Option<&Format>, zone: &Zone) -> Result<i64> {
        let Some(ValueRef::String(text)) = text.as_ref() else {
            let found = type_name(text);
            let message = format!("$dateFromString requires that 'dateString' be a string, found: {found}");
            return Err(Error::new(Code::ConversionFailure, message));
        };
        let Parsed { ms, has_zone } = match format {
            Some(format) => format.read(text)?,
            None => parse_date::parse(text)?,
        };
        match (has_zone, self.has_zone) {
            (true, true) => Err(Error::new(
                Code::ConversionFailure,
                "you cannot pass in a date/time string with time zone information together with a timezone argument",
            )),
            (true, false) => Ok(ms),
            (false, _) => Ok(zone.to_utc(ms)),
        }
    }
}

impl Custom for DateFromString {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let text = self.text.eval(env)?;
        let format = match &self.format {
            None => None,
            Some(node) => Some(node.eval(env)?),
        };
        let parsed = match format.as_ref().map(Value::as_ref) {
            None => None,
            Some(Some(ValueRef::String(format))) => Some(Format::parse(format, true)?),
            Some(None | Some(ValueRef::Null | ValueRef::Undefined)) => None,
            Some(Some(other)) => {
                let found = other.ty().name();
                return refuse(40684, format!("$dateFromString requires that 'format' be a string, found: {found}"));
            }
        };
        let zone = self.zone.eval("$dateFromString", env)?;
        if text.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::NULL), |node| node.eval(env));
        }
        let is_string = matches!(text.as_ref(), Some(ValueRef::String(_)));
        if is_string && (zone.is_none() || format.is_some_and(|format| format.is_nullish())) {
            return Ok(Value::NULL);
        }
        let zone = zone.unwrap_or(std::borrow::Cow::Owned(Zone::UTC));
        match (self.read(&text, parsed.as_ref(), &zone), &self.on_error) {
            (Ok(ms), _) => Ok(Value::Ref(ValueRef::DateTime(ms))),
            (Err(e), Some(node)) if e.code() == Code::ConversionFailure => node.eval(env),
            (Err(e), _) => Err(e),
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        ([&self.text].into_iter().chain(&self.format).chain(self.zone.node()))
            .chain(&self.on_error)
            .chain(&self.on_null)
            .for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
