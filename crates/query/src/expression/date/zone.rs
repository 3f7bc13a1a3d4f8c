//! Time zones: an offset such as `+05:30`, or a name of the Olson database, which is compiled in.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::super::prelude::*;
use super::civil::Civil;

#[derive(Debug, Clone)]
pub(in crate::expression) enum Zone {
    /// Milliseconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub const UTC: Zone = Zone::Fixed(0);

    pub fn parse(text: &str) -> Result<Zone> {
        if let Some(offset) = parse_offset(text) {
            return Ok(Zone::Fixed(offset));
        }
        match TimeZone::get(text) {
            // Names are case-sensitive in MongoDB.
            Ok(zone) if zone.iana_name() == Some(text) => Ok(Zone::Named(zone)),
            _ => refuse(40485, format!("unrecognized time zone identifier: \"{text}\"")),
        }
    }

    /// Milliseconds east of UTC at an instant.
    pub fn offset_ms(&self, utc_ms: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let instant = Timestamp::from_millisecond(utc_ms).unwrap_or(if utc_ms < 0 {
                    Timestamp::MIN
                } else {
                    Timestamp::MAX
                });
                i64::from(zone.to_offset(instant).seconds()) * 1000
            }
        }
    }

    /// What clocks in the zone show, as if it were UTC.
    pub fn to_local(&self, utc_ms: i64) -> i64 {
        utc_ms.saturating_add(self.offset_ms(utc_ms))
    }

    /// The instant at which clocks in the zone show this. A time that occurs twice is the second one; one that is
    /// skipped is as much later as was skipped.
    pub fn to_utc(&self, local_ms: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => local_ms.saturating_sub(*offset),
            Zone::Named(zone) => {
                let instant = to_datetime(local_ms).and_then(|local| zone.to_ambiguous_timestamp(local).later().ok());
                match instant {
                    Some(instant) => instant.as_millisecond(),
                    None => local_ms.saturating_sub(self.offset_ms(local_ms)),
                }
            }
        }
    }
}

impl Zone {
    /// As [`Zone::to_utc`], but of two instants the one with the offset that `near_ms` has.
    pub fn to_utc_near(&self, local_ms: i64, near_ms: i64) -> i64 {
        let same_offset = local_ms.saturating_sub(self.offset_ms(near_ms));
        if self.to_local(same_offset) == local_ms { same_offset } else { self.to_utc(local_ms) }
    }
}

fn to_datetime(local_ms: i64) -> Option<DateTime> {
    let c = Civil::of(local_ms);
    let small = |n: i64| i8::try_from(n).ok();
    let year = i16::try_from(c.year).ok()?;
    let nanosecond = i32::try_from(c.millisecond).ok()? * 1_000_000;
    DateTime::new(year, small(c.month)?, small(c.day)?, small(c.hour)?, small(c.minute)?, small(c.second)?, nanosecond)
        .ok()
}

/// `+hh`, `+hhmm` or `+hh:mm`, and the two names of UTC.
fn parse_offset(text: &str) -> Option<i64> {
    if matches!(text, "UTC" | "GMT") {
        return Some(0);
    }
    let (sign, digits) = match text.as_bytes().split_first()? {
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let pair = |at: usize| -> Option<i64> {
        let two = digits.get(at..at + 2)?;
        two.iter().all(u8::is_ascii_digit).then(|| i64::from(two[0] - b'0') * 10 + i64::from(two[1] - b'0'))
    };
    let minutes = match digits.len() {
        2 => 0,
        4 => pair(2)?,
        5 if digits[2] == b':' => pair(3)?,
        _ => return None,
    };
    Some(sign * (pair(0)? * 60 + minutes) * 60_000)
}

/// A `timezone` argument: a zone known at parse time, or an expression for it.
#[derive(Debug)]
pub(in crate::expression) enum ZoneArg {
    Known(Zone),
    Computed(Node),
}

impl ZoneArg {
    pub fn parse(operator: &str, node: Option<Node>) -> Result<ZoneArg> {
        Ok(match node {
            None => ZoneArg::Known(Zone::UTC),
            // Null is left to the evaluation, which answers null.
            Some(Node::Literal(value)) if !value.is_nullish() => ZoneArg::Known(zone_of(operator, &value)?),
            Some(node) => ZoneArg::Computed(node),
        })
    }

    /// `None` if it is null.
    pub fn eval<'a>(&'a self, operator: &str, env: &Env<'a>) -> Result<Option<std::borrow::Cow<'a, Zone>>> {
        match self {
            ZoneArg::Known(zone) => Ok(Some(std::borrow::Cow::Borrowed(zone))),
            ZoneArg::Computed(node) => {
                let value = node.eval(env)?;
                if value.is_nullish() {
                    Ok(None)
                } else {
                    Ok(Some(std::borrow::Cow::Owned(zone_of(operator, &value)?)))
                }
            }
        }
    }

    pub fn node(&self) -> Option<&Node> {
        match self {
            ZoneArg::Known(_) => None,
            ZoneArg::Computed(node) => Some(node),
        }
    }
}

fn zone_of(operator: &str, value: &Value<'_>) -> Result<Zone> {
    match value.as_ref() {
        Some(ValueRef::String(text)) => Zone::parse(text),
        _ => {
            let found = type_name(value);
            let code = if operator.starts_with("$date") { 40517 } else { 40533 };
            refuse(code, format!("{operator} requires a string for the timezone argument, but was given a {found}"))
        }
    }
}

/// The milliseconds of a date, a timestamp or an ObjectId.
pub(in crate::expression) fn date_ms(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::DateTime(ms) => Some(ms),
        ValueRef::Timestamp(t) => Some((t >> 32) as i64 * 1000),
        ValueRef::ObjectId(id) => Some(i64::from(espalier_value::ObjectId(id).seconds()) * 1000),
        _ => None,
    }
}

/// As [`date_ms`], with MongoDB's general error.
pub(in crate::expression) fn expect_date(value: ValueRef<'_>) -> Result<i64> {
    date_ms(value)
        .ok_or_else(|| Error::new(Code(16006), format!("can't convert from BSON type {} to Date", value.ty().name())))
}

/// The values of the nodes; `None` if one is null, and then those behind it are not evaluated.
pub(super) fn unless_null<'a, const N: usize>(nodes: [&'a Node; N], env: &Env<'a>) -> Result<Option<[Value<'a>; N]>> {
    let mut values = [const { Value::Missing }; N];
    for (value, node) in values.iter_mut().zip(nodes) {
        *value = node.eval(env)?;
        if value.is_nullish() {
            return Ok(None);
        }
    }
    Ok(Some(values))
}
