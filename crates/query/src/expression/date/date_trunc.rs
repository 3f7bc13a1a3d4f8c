//! `$dateTrunc`: The start of the unit of time, or of the bin of several, that a date lies in.

use super::super::prelude::*;

pub(super) static DATE_TRUNC: Operator = Operator {
    name: "$dateTrunc",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The start of the unit of time, or of the bin of several, that a date lies in.",
};

use super::civil::{Civil, DAY_MS, to_days};
use super::date_diff::{unit_of, week_of};
use super::unit::{SUNDAY, Unit};
use super::zone::{Zone, ZoneArg, date_ms, unless_null};
use crate::expression::steps::{Dated, Step};

static NAMED: Named = Named {
    fields: &[
        Field::required("date", 5439009),
        Field::required("unit", 5439010),
        Field::optional("binSize"),
        Field::optional("timezone"),
        Field::optional("startOfWeek"),
    ],
    not_object: 5439007,
    unknown: 5439008,
};

#[derive(Debug)]
struct DateTrunc {
    date: Node,
    unit: Node,
    bin_size: Option<Node>,
    zone: ZoneArg,
    start_of_week: Option<Node>,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$dateTrunc", argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    let (date, unit) = (next().unwrap_or(Node::NULL), next().unwrap_or(Node::NULL));
    let bin_size = next();
    let zone = ZoneArg::parse("$dateTrunc", next())?;
    Ok(Node::custom(DateTrunc { date, unit, bin_size, zone, start_of_week: next() }))
}

impl Custom for DateTrunc {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let Some([date, unit]) = unless_null([&self.date, &self.unit], env)? else { return Ok(Value::NULL) };
        let bin_size = self.bin_size.as_ref().map_or(Ok(1.into()), |node| node.eval(env))?;
        if bin_size.is_nullish() {
            return Ok(Value::NULL);
        }
        let week = self.start_of_week.as_ref().map(|node| node.eval(env)).transpose()?;
        if week.as_ref().is_some_and(Value::is_nullish) && matches!(unit.as_ref(), Some(ValueRef::String("week"))) {
            return Ok(Value::NULL);
        }
        let Some(zone) = self.zone.eval("$dateTrunc", env)? else { return Ok(Value::NULL) };
        let Some(ms) = date_ms(date.or_null()) else {
            return refuse(5439012, format!("$dateTrunc requires 'date' to be a date, but got {}", type_name(&date)));
        };
        let unit = unit_of("$dateTrunc", &unit)?;
        let bin = match Number::of(bin_size.or_null()).and_then(Number::as_exact_i64) {
            Some(bin @ 1..) => bin,
            Some(bin) => {
                return refuse(
                    5439018,
                    format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {bin}"),
                );
            }
            None => {
                let found = type_name(&bin_size);
                let message =
                    format!("$dateTrunc requires 'binSize' to be a 64-bit integer, but got a value of type {found}");
                return refuse(5439017, message);
            }
        };
        let mut first = SUNDAY;
        if unit == Unit::Week
            && let Some(week) = week
        {
            match week_of("$dateTrunc", &week)? {
                Some(day) => first = day,
                None => return Ok(Value::NULL),
            }
        }
        match truncate(unit, ms, bin, &zone, first) {
            Some(ms) => Ok(Value::Ref(ValueRef::DateTime(ms))),
            None => refuse(5439005, "an overflow happened in $dateTrunc"),
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        ([&self.date, &self.unit].into_iter().chain(&self.bin_size))
            .chain(self.zone.node())
            .chain(&self.start_of_week)
            .for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }

    fn dated(&self) -> Option<Dated<'_>> {
        let ZoneArg::Known(zone) = &self.zone else { return None };
        let literal = |node: &Node| if let Node::Literal(value) = node { Some(value.clone()) } else { None };
        let unit = unit_of("$dateTrunc", &literal(&self.unit)?).ok()?;
        let bin = match &self.bin_size {
            None => 1,
            Some(node) => Number::of(literal(node)?.or_null()).and_then(Number::as_exact_i64).filter(|bin| *bin > 0)?,
        };
        let first = match &self.start_of_week {
            Some(node) if unit == Unit::Week => week_of("$dateTrunc", &literal(node)?).ok().flatten()?,
            _ => SUNDAY,
        };
        Some(Dated {
            date: &self.date,
            others: Vec::new(),
            step: Step { unit, bin, first, zone: zone.clone(), by_clock: false },
        })
    }
}

/// Bins are counted from the start of the year 2000 in the zone, weeks from the first start of a week after it.
pub(in crate::expression) fn truncate(unit: Unit, ms: i64, bin: i64, zone: &Zone, start_of_week: i64) -> Option<i64> {
    let epoch = to_days(2000, 1, 1);
    let floor = |value: i64, step: i64| value.div_euclid(step).checked_mul(step);
    let from_days = |days: i64| Some(zone.to_utc(epoch.checked_add(days)?.checked_mul(DAY_MS)?));
    let days = zone.to_local(ms).div_euclid(DAY_MS) - epoch;
    match unit {
        Unit::Months(months) => {
            let civil = Civil::of(zone.to_local(ms));
            let since = (civil.year - 2000) * 12 + civil.month - 1;
            let start = floor(since, bin.checked_mul(months)?)?;
            let (year, month) = (2000 + start.div_euclid(12), start.rem_euclid(12) + 1);
            let start = Civil { year, month, day: 1, hour: 0, minute: 0, second: 0, millisecond: 0 };
            Some(zone.to_utc(start.to_ms()?))
        }
        Unit::Days(_) => from_days(floor(days, bin)?),
        Unit::Week => {
            // The year 2000 began on a Saturday.
            let first = (start_of_week - 5).rem_euclid(7);
            from_days(first + floor(days - first, bin.checked_mul(7)?)?)
        }
        Unit::Ms(unit) => {
            let epoch_ms = zone.to_utc(epoch * DAY_MS);
            epoch_ms.checked_add(floor(ms.checked_sub(epoch_ms)?, bin.checked_mul(unit)?)?)
        }
    }
}
