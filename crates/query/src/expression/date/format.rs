//! Format strings such as `%Y-%m-%d`, for writing and for reading.

use super::super::prelude::*;
use super::civil::{Civil, DAY_MS, days_in_month};
use super::parse_date::{Parsed, from_iso_week};
use super::unit::Unit;
use super::zone::Zone;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(char),
    Field(char),
}

/// A parsed format.
#[derive(Debug, Clone)]
pub(super) struct Format(Vec<Piece>);

impl Format {
    /// Reading takes fewer fields than writing.
    pub fn parse(text: &str, reading: bool) -> Result<Format> {
        let fields = if reading { "dGHLmMSuVYzZ" } else { "dGHjLmMSwuUVYzZ" };
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            pieces.push(match (c, c == '%') {
                (c, false) => Piece::Text(c),
                _ => match chars.next() {
                    Some('%') => Piece::Text('%'),
                    Some(field) if fields.contains(field) => Piece::Field(field),
                    Some(other) => {
                        return refuse(18536, format!("Invalid format character '%{other}' in format string"));
                    }
                    None => return refuse(18535, "Unmatched '%' at end of format string"),
                },
            });
        }
        Ok(Format(pieces))
    }

    pub fn write(&self, ms: i64, zone: &Zone) -> Result<String> {
        let offset = zone.offset_ms(ms) / 60_000;
        let c = Civil::of(zone.to_local(ms));
        let mut out = String::new();
        for piece in &self.0 {
            let text = match piece {
                Piece::Text(c) => {
                    out.push(*c);
                    continue;
                }
                Piece::Field(field) => match field {
                    'Y' => year(c.year)?,
                    'm' => format!("{:02}", c.month),
                    'd' => format!("{:02}", c.day),
                    'H' => format!("{:02}", c.hour),
                    'M' => format!("{:02}", c.minute),
                    'S' => format!("{:02}", c.second),
                    'L' => format!("{:03}", c.millisecond),
                    'j' => format!("{:03}", c.day_of_year()),
                    'w' => (c.iso_weekday() % 7 + 1).to_string(),
                    'u' => c.iso_weekday().to_string(),
                    'U' => format!("{:02}", c.week()),
                    'V' => format!("{:02}", c.iso_week().1),
                    'G' => year(c.iso_week().0)?,
                    'z' => {
                        let sign = if offset < 0 { '-' } else { '+' };
                        format!("{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60)
                    }
                    _ => offset.to_string(),
                },
            };
            out.push_str(&text);
        }
        Ok(out)
    }

    /// A unit of time such that dates within one of it are written alike, as long as the offset is the same.
    pub fn finest(&self) -> Unit {
        let units = self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) | Piece::Field('z' | 'Z') => None,
            Piece::Field('Y') => Some(Unit::Months(12)),
            Piece::Field('m') => Some(Unit::Months(1)),
            Piece::Field('H') => Some(Unit::Ms(3_600_000)),
            Piece::Field('M') => Some(Unit::Ms(60_000)),
            Piece::Field('S') => Some(Unit::Ms(1000)),
            Piece::Field('L') => Some(Unit::Ms(1)),
            Piece::Field(_) => Some(Unit::Days(1)),
        });
        // Each of these divides those before it.
        let rank = |unit: &Unit| match unit {
            Unit::Months(months) => (0, -months),
            Unit::Days(_) | Unit::Week => (1, 0),
            Unit::Ms(ms) => (2, -ms),
        };
        units.max_by_key(rank).unwrap_or(Unit::Months(12))
    }

    /// Reads a text that must fit the whole format.
    pub fn read(&self, text: &str) -> Result<Parsed> {
        match self.read_parts(text.as_bytes()) {
            Some(parsed) => Ok(parsed),
            None => Err(Error::new(
                Code::ConversionFailure,
                format!("Error parsing date string '{text}': it does not fit the format"),
            )),
        }
    }

    fn read_parts(&self, mut rest: &[u8]) -> Option<Parsed> {
        let (mut year, mut month, mut day) = (None, None, None);
        let (mut iso_year, mut iso_week, mut iso_day) = (None, None, None);
        let (mut hour, mut minute, mut second, mut milli) = (0, 0, 0, 0);
        let mut zone = None;
        for piece in &self.0 {
            match piece {
                Piece::Text(c) => rest = rest.strip_prefix(c.encode_utf8(&mut [0; 4]).as_bytes())?,
                Piece::Field(field) => {
                    let mut number = |least: usize, most: usize| {
                        let len = rest.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
                        let (digits, tail) = rest.split_at(len);
                        rest = tail;
                        (len >= least).then(|| digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
                    };
                    match field {
                        'Y' => year = Some(number(1, 4)?),
                        'G' => iso_year = Some(number(1, 4)?),
                        'm' => month = Some(number(1, 2)?),
                        'd' => day = Some(number(1, 2)?),
                        'V' => iso_week = Some(number(1, 2)?),
                        'u' => iso_day = Some(number(1, 1)?),
                        'H' => hour = number(1, 2)?,
                        'M' => minute = number(1, 2)?,
                        'S' => second = number(1, 2)?,
                        'L' => milli = number(1, 3)?,
                        'z' => zone = Some(read_offset(&mut rest)?),
                        _ => zone = Some(read_minutes(&mut rest)?),
                    }
                }
            }
        }
        let days = match (year, month, day, iso_year) {
            (Some(year), Some(month @ 1..=12), Some(day), None) if (1..=days_in_month(year, month)).contains(&day) => {
                super::civil::to_days(year, month, day)
            }
            (None, None, None, Some(year)) => from_iso_week(year, iso_week?, iso_day?),
            _ => return None,
        };
        if !rest.is_empty() || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let time = ((hour * 60 + minute) * 60 + second) * 1000 + milli;
        Some(Parsed { ms: days * DAY_MS + time - zone.unwrap_or(0) * 60_000, has_zone: zone.is_some() })
    }
}

fn year(year: i64) -> Result<String> {
    if !(0..=9999).contains(&year) {
        return refuse(18537, format!("Could not convert date to string: year {year} is outside of 0 to 9999"));
    }
    Ok(format!("{year:04}"))
}

/// `+hhmm` or `+hh:mm`, in minutes.
fn read_offset(rest: &mut &[u8]) -> Option<i64> {
    let (sign, tail) = rest.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        b'Z' | b'z' => {
            *rest = tail;
            return Some(0);
        }
        _ => return None,
    };
    let len = tail.iter().take(5).take_while(|b| b.is_ascii_digit() || **b == b':').count();
    let (digits, after) = tail.split_at(len);
    let digits: Vec<i64> = digits.iter().filter(|b| **b != b':').map(|b| i64::from(b - b'0')).collect();
    let minutes = match digits[..] {
        [a, b] => (a * 10 + b) * 60,
        [a, b, c, d] => (a * 10 + b) * 60 + c * 10 + d,
        _ => return None,
    };
    *rest = after;
    Some(sign * minutes)
}

/// A signed number of minutes.
fn read_minutes(rest: &mut &[u8]) -> Option<i64> {
    let (sign, tail) = match rest.split_first()? {
        (b'+', tail) => (1, tail),
        (b'-', tail) => (-1, tail),
        _ => (1, *rest),
    };
    let len = tail.iter().take(4).take_while(|b| b.is_ascii_digit()).count();
    let (digits, after) = tail.split_at(len);
    *rest = after;
    (len > 0).then(|| sign * digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
}
