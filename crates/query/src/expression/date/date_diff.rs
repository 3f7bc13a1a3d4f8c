//! `$dateDiff`: The number of boundaries of a unit of time between two dates.

use super::super::prelude::*;

pub(super) static DATE_DIFF: Operator = Operator {
    name: "$dateDiff",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The number of boundaries of a unit of time between two dates.",
};

use super::civil::{Civil, DAY_MS};
use super::unit::{SUNDAY, Unit, day_of_week};
use super::zone::{Zone, ZoneArg, date_ms, unless_null};

static NAMED: Named = Named {
    fields: &[
        Field::required("startDate", 5166303),
        Field::required("endDate", 5166304),
        Field::required("unit", 5166305),
        Field::optional("timezone"),
        Field::optional("startOfWeek"),
    ],
    not_object: 5166301,
    unknown: 5166302,
};

#[derive(Debug)]
struct DateDiff {
    start: Node,
    end: Node,
    unit: Node,
    zone: ZoneArg,
    start_of_week: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$dateDiff", argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    let mut required = || next().unwrap_or(Node::NULL);
    let (start, end, unit) = (required(), required(), required());
    let zone = ZoneArg::parse("$dateDiff", next())?;
    Ok(Node::custom(DateDiff { start, end, unit, zone, start_of_week: next() }))
}

impl Custom for DateDiff {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let Some([start, end, unit]) = unless_null([&self.start, &self.end, &self.unit], env)? else {
            return Ok(Value::NULL);
        };
        let week = self.start_of_week.as_ref().map(|node| node.eval(env)).transpose()?;
        let Some(zone) = self.zone.eval("$dateDiff", env)? else { return Ok(Value::NULL) };
        let date = |value: &Value<'_>, name: &str| {
            date_ms(value.or_null()).map_or_else(
                || refuse(5166307, format!("$dateDiff requires '{name}' to be a date, but got {}", type_name(value))),
                Ok,
            )
        };
        let (start, end) = (date(&start, "startDate")?, date(&end, "endDate")?);
        let unit = unit_of("$dateDiff", &unit)?;
        let mut first = SUNDAY;
        if unit == Unit::Week
            && let Some(week) = week
        {
            match week_of("$dateDiff", &week)? {
                Some(day) => first = day,
                None => return Ok(Value::NULL),
            }
        }
        Ok(difference(unit, start, end, &zone, first).into())
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.start, &self.end, &self.unit]
            .into_iter()
            .chain(self.zone.node())
            .chain(&self.start_of_week)
            .for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

/// The `unit` of `$dateDiff` and `$dateTrunc`.
pub(super) fn unit_of(operator: &str, value: &Value<'_>) -> Result<Unit> {
    let Some(ValueRef::String(name)) = value.as_ref() else {
        return refuse(5439013, format!("{operator} requires 'unit' to be a string, but got {}", type_name(value)));
    };
    Unit::parse(name).map_or_else(
        || refuse(5439014, format!("{operator} parameter 'unit' value cannot be recognized as a time unit: {name}")),
        Ok,
    )
}

/// The `startOfWeek` of `$dateDiff` and `$dateTrunc`; `None` if it is null.
pub(super) fn week_of(operator: &str, value: &Value<'_>) -> Result<Option<i64>> {
    match value.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(ValueRef::String(name)) => match day_of_week(name) {
            Some(day) => Ok(Some(day)),
            None => refuse(
                5439016,
                format!("{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}"),
            ),
        },
        Some(other) => {
            let found = other.ty().name();
            refuse(5439015, format!("{operator} requires 'startOfWeek' to be a string, but got {found}"))
        }
    }
}

fn difference(unit: Unit, start: i64, end: i64, zone: &Zone, start_of_week: i64) -> i64 {
    let days = |ms: i64| zone.to_local(ms).div_euclid(DAY_MS);
    match unit {
        Unit::Months(months) => {
            let of = |ms: i64| {
                let civil = Civil::of(zone.to_local(ms));
                (civil.year * 12 + civil.month - 1).div_euclid(months)
            };
            of(end) - of(start)
        }
        // Day 0 is a Thursday, day 3 from Monday.
        Unit::Week => {
            let of = |ms: i64| (days(ms) + 3 - start_of_week).div_euclid(7);
            of(end) - of(start)
        }
        Unit::Days(_) => days(end) - days(start),
        Unit::Ms(unit) => {
            // Hours and less are counted by elapsed time; the zone says where an hour begins.
            let offset = zone.offset_ms(start);
            let of = |ms: i64| ms.saturating_add(offset).div_euclid(unit);
            of(end) - of(start)
        }
    }
}
