//! `$dateToString`: A date written in a format.

use super::super::prelude::*;

pub(super) static DATE_TO_STRING: Operator =
    Operator { name: "$dateToString", args: Args::Any, eval: Eval::Special(parse), doc: "A date written in a format." };

use super::format::Format;
use super::zone::{ZoneArg, expect_date};
use crate::expression::steps::{Dated, Step};

static NAMED: Named = Named {
    fields: &[
        Field::required("date", 18628),
        Field::optional("format"),
        Field::optional("timezone"),
        Field::optional("onNull"),
    ],
    not_object: 18629,
    unknown: 18534,
};

const DEFAULT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";

#[derive(Debug)]
struct DateToString {
    date: Node,
    format: FormatArg,
    zone: ZoneArg,
    on_null: Option<Node>,
}

#[derive(Debug)]
enum FormatArg {
    Known(Format),
    Computed(Node),
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$dateToString", argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    let date = next().unwrap_or(Node::NULL);
    let format = match next() {
        None => FormatArg::Known(Format::parse(DEFAULT, false)?),
        Some(Node::Literal(value)) if !value.is_nullish() => FormatArg::Known(format_of(&value)?),
        Some(node) => FormatArg::Computed(node),
    };
    let zone = ZoneArg::parse("$dateToString", next())?;
    Ok(Node::custom(DateToString { date, format, zone, on_null: next() }))
}

fn format_of(value: &Value<'_>) -> Result<Format> {
    match value.as_ref() {
        Some(ValueRef::String(text)) => Format::parse(text, false),
        _ => {
            let found = type_name(value);
            refuse(18533, format!("$dateToString requires that 'format' be a string, found: {found}"))
        }
    }
}

impl Custom for DateToString {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let date = self.date.eval(env)?;
        let computed;
        let format = match &self.format {
            FormatArg::Known(format) => Some(format),
            FormatArg::Computed(node) => {
                let value = node.eval(env)?;
                computed = if value.is_nullish() { None } else { Some(format_of(&value)?) };
                computed.as_ref()
            }
        };
        let zone = self.zone.eval("$dateToString", env)?;
        let Some(value) = date.as_ref().filter(|v| !v.is_nullish()) else {
            return self.on_null.as_ref().map_or(Ok(Value::NULL), |node| node.eval(env));
        };
        match (format, zone) {
            (Some(format), Some(zone)) => Ok(Value::string(format.write(expect_date(value)?, &zone)?)),
            _ => Ok(Value::NULL),
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        let format = if let FormatArg::Computed(node) = &self.format { Some(node) } else { None };
        [&self.date].into_iter().chain(format).chain(self.zone.node()).chain(&self.on_null).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }

    fn dated(&self) -> Option<Dated<'_>> {
        let (ZoneArg::Known(zone), FormatArg::Known(format)) = (&self.zone, &self.format) else { return None };
        let others = self.on_null.iter().collect();
        Some(Dated { date: &self.date, others, step: Step::new(format.finest(), zone) })
    }
}
