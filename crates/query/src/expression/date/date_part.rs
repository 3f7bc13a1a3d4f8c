//! What the operators that take one part of a date share: a date alone, in brackets, or `{date, timezone}`.

use super::super::prelude::*;
use super::civil::Civil;
use super::unit::Unit;
use super::zone::{ZoneArg, expect_date};
use crate::expression::steps::{Dated, Step};

#[derive(Debug)]
struct DatePart {
    operator: &'static str,
    date: Node,
    zone: ZoneArg,
    part: fn(Civil) -> Value<'static>,
}

pub(super) fn parse(
    operator: &'static str,
    part: fn(Civil) -> Value<'static>,
    argument: ValueRef<'_>,
    scope: &Scope,
) -> Result<Node> {
    let (mut date, mut zone) = (None, None);
    match argument {
        ValueRef::Document(doc) if !doc.first().is_some_and(|e| e.name().starts_with('$')) => {
            for elem in doc {
                match elem.name() {
                    "date" => date = Some(operand(elem.value(), scope)?),
                    "timezone" => zone = Some(operand(elem.value(), scope)?),
                    other => return refuse(40535, format!("unrecognized option to {operator}: \"{other}\"")),
                }
            }
        }
        ValueRef::Array(array) => {
            let count = array.len();
            if count != 1 {
                let message =
                    format!("{operator} accepts exactly one argument if given an array, but was given {count}");
                return refuse(40536, message);
            }
            date = array.get(0).map(|value| operand(value, scope)).transpose()?;
        }
        other => date = Some(operand(other, scope)?),
    }
    let Some(date) = date else { return refuse(40539, format!("missing 'date' argument to {operator}")) };
    Ok(Node::custom(DatePart { operator, date, zone: ZoneArg::parse(operator, zone)?, part }))
}

impl Custom for DatePart {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let date = self.date.eval(env)?;
        let Some(value) = date.as_ref().filter(|v| !v.is_nullish()) else { return Ok(Value::NULL) };
        let ms = expect_date(value)?;
        let Some(zone) = self.zone.eval(self.operator, env)? else { return Ok(Value::NULL) };
        Ok((self.part)(Civil::of(zone.to_local(ms))))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.date].into_iter().chain(self.zone.node()).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }

    fn dated(&self) -> Option<Dated<'_>> {
        let ZoneArg::Known(zone) = &self.zone else { return None };
        let unit = match self.operator {
            "$year" => Unit::Months(12),
            "$month" => Unit::Months(1),
            "$hour" => Unit::Ms(3_600_000),
            "$minute" => Unit::Ms(60_000),
            "$second" => Unit::Ms(1000),
            "$millisecond" => Unit::Ms(1),
            // Days and weeks, whatever they are counted from.
            _ => Unit::Days(1),
        };
        Some(Dated { date: &self.date, others: Vec::new(), step: Step::new(unit, zone) })
    }
}
