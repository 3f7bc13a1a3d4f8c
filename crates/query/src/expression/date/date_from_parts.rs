//! `$dateFromParts`: The date of the given parts; parts beyond their range carry over.

use super::super::prelude::*;

pub(super) static DATE_FROM_PARTS: Operator = Operator {
    name: "$dateFromParts",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The date of the given parts; parts beyond their range carry over.",
};

use super::civil::Civil;
use super::parse_date::from_iso_week;
use super::zone::ZoneArg;

static NAMED: Named = Named {
    fields: &[
        Field::optional("year"),
        Field::optional("month"),
        Field::optional("day"),
        Field::optional("hour"),
        Field::optional("minute"),
        Field::optional("second"),
        Field::optional("millisecond"),
        Field::optional("isoWeekYear"),
        Field::optional("isoWeek"),
        Field::optional("isoDayOfWeek"),
        Field::optional("timezone"),
    ],
    not_object: 40519,
    unknown: 40518,
};

#[derive(Debug)]
struct DateFromParts {
    iso: bool,
    /// Year, month, day or the three of the ISO calendar; then hour, minute, second, millisecond.
    parts: [Option<Node>; 7],
    zone: ZoneArg,
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse("$dateFromParts", argument, scope)?;
    let zone = ZoneArg::parse("$dateFromParts", given.pop().flatten())?;
    let mut iso_parts = given.split_off(7);
    let iso = iso_parts[0].is_some();
    if given[0].is_none() && !iso {
        return refuse(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    }
    if given[0].is_some() && iso_parts.iter().any(Option::is_some) {
        return refuse(40489, "$dateFromParts does not allow mixing natural dates with ISO dates");
    }
    if iso && given[..3].iter().any(Option::is_some) {
        return refuse(40525, "$dateFromParts does not allow mixing ISO dates with natural dates");
    }
    if iso {
        for (at, part) in iso_parts.drain(..).enumerate() {
            given[at] = part;
        }
    }
    let mut parts = given.into_iter();
    let parts = std::array::from_fn(|_| parts.next().flatten());
    Ok(Node::custom(DateFromParts { iso, parts, zone }))
}

impl DateFromParts {
    /// `None` if it is null.
    fn part<'a>(&'a self, at: usize, env: &Env<'a>) -> Result<Option<i64>> {
        const NAMES: [&str; 7] = ["year", "month", "day", "hour", "minute", "second", "millisecond"];
        const ISO_NAMES: [&str; 3] = ["isoWeekYear", "isoWeek", "isoDayOfWeek"];
        const DEFAULTS: [i64; 7] = [1970, 1, 1, 0, 0, 0, 0];
        let name = if self.iso && at < 3 { ISO_NAMES[at] } else { NAMES[at] };
        let Some(node) = &self.parts[at] else { return Ok(Some(DEFAULTS[at])) };
        let value = node.eval(env)?;
        if value.is_nullish() {
            return Ok(None);
        }
        let Some(n) = Number::of(value.or_null()).and_then(Number::as_exact_i64) else {
            let found = type_name(&value);
            return refuse(
                40515,
                format!("'{name}' must evaluate to an integer, found {found} with value {}", value.or_null()),
            );
        };
        match at {
            1..=4 if !(-32768..=32767).contains(&n) => refuse(
                31034,
                format!("'{name}' must evaluate to a value in the range [-32768, 32767]; value {n} is not in range"),
            ),
            _ => Ok(Some(n)),
        }
    }
}

impl Custom for DateFromParts {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        // The time of day and the zone come before the day, in this order.
        let mut parts = [0; 7];
        for (at, part) in parts.iter_mut().enumerate().skip(3) {
            let Some(n) = self.part(at, env)? else { return Ok(Value::NULL) };
            *part = n;
        }
        let Some(zone) = self.zone.eval("$dateFromParts", env)? else { return Ok(Value::NULL) };
        for (at, part) in parts.iter_mut().enumerate().take(3) {
            let Some(n) = self.part(at, env)? else { return Ok(Value::NULL) };
            *part = n;
        }
        if !(1..=9999).contains(&parts[0]) {
            let (code, name) = if self.iso { (31095, "isoWeekYear") } else { (40523, "year") };
            let message = format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {}", parts[0]);
            return refuse(code, message);
        }
        let [year, month, day, hour, minute, second, millisecond] = parts;
        let civil = if self.iso {
            let days = from_iso_week(year, month, day);
            Civil { hour, minute, second, millisecond, ..Civil::of(days * super::civil::DAY_MS) }
        } else {
            Civil { year, month, day, hour, minute, second, millisecond }
        };
        match civil.to_ms() {
            Some(local) => Ok(Value::Ref(ValueRef::DateTime(zone.to_utc(local)))),
            None => Err(Error::new(Code::Overflow, "the date of the parts is out of range")),
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        self.parts.iter().flatten().chain(self.zone.node()).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
