//! `$dateToParts`: A document of the parts of a date: year, month, day, … or the parts of the ISO week date.

use super::super::prelude::*;

pub(super) static DATE_TO_PARTS: Operator = Operator {
    name: "$dateToParts",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "A document of the parts of a date: year, month, day, … or the parts of the ISO week date.",
};

use super::civil::Civil;
use super::zone::{ZoneArg, expect_date};

static NAMED: Named = Named {
    fields: &[Field::required("date", 40522), Field::optional("timezone"), Field::optional("iso8601")],
    not_object: 40524,
    unknown: 40520,
};

#[derive(Debug)]
struct DateToParts {
    date: Node,
    zone: ZoneArg,
    iso: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$dateToParts", argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    let date = next().unwrap_or(Node::NULL);
    Ok(Node::custom(DateToParts { date, zone: ZoneArg::parse("$dateToParts", next())?, iso: next() }))
}

impl Custom for DateToParts {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let date = self.date.eval(env)?;
        let Some(zone) = self.zone.eval("$dateToParts", env)? else { return Ok(Value::NULL) };
        let iso = match &self.iso {
            None => false,
            Some(node) => match node.eval(env)?.as_ref() {
                None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
                Some(ValueRef::Bool(iso)) => iso,
                Some(other) => {
                    return refuse(40521, format!("iso8601 must evaluate to a bool, found {}", other.ty().name()));
                }
            },
        };
        let Some(value) = date.as_ref().filter(|v| !v.is_nullish()) else { return Ok(Value::NULL) };
        Ok(Value::document(parts(Civil::of(zone.to_local(expect_date(value)?)), iso)))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.date].into_iter().chain(self.zone.node()).chain(&self.iso).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

fn parts(c: Civil, iso: bool) -> DocBuf {
    let mut doc = DocBuf::new();
    if iso {
        let (year, week) = c.iso_week();
        doc.append("isoWeekYear", year as i32).append("isoWeek", week as i32);
        doc.append("isoDayOfWeek", c.iso_weekday() as i32);
    } else {
        doc.append("year", c.year as i32).append("month", c.month as i32).append("day", c.day as i32);
    }
    doc.append("hour", c.hour as i32).append("minute", c.minute as i32).append("second", c.second as i32);
    doc.append("millisecond", c.millisecond as i32);
    doc
}
