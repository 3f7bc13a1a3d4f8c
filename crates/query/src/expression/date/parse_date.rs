//! Dates in words, as `$toDate` and `$dateFromString` without a format read them: ISO 8601 in its calendar, week and
//! day-of-year forms, `2020/01/02`, `01/02/2020` (month first), `4 July 2020`, `July 4, 2020` and the dates of e-mails.

use super::super::prelude::*;
use super::civil::{Civil, days_in_month, to_days};

/// A date read from text.
#[derive(Debug, Clone, Copy)]
pub(in crate::expression) struct Parsed {
    /// As if it were UTC where the text names no zone.
    pub ms: i64,
    pub has_zone: bool,
}

pub(in crate::expression) fn parse(text: &str) -> Result<Parsed> {
    let mut scan = Scan { rest: text.trim().as_bytes() };
    let parsed = if scan.rest.is_empty() { None } else { whole(&mut scan) };
    match parsed {
        Some(parsed) if scan.rest.is_empty() => Ok(parsed),
        _ => {
            let at = text.trim_end().len() - scan.rest.len();
            Err(Error::new(
                Code::ConversionFailure,
                format!("Error parsing date string '{text}'; {at}: Unexpected character"),
            ))
        }
    }
}

struct Scan<'t> {
    rest: &'t [u8],
}

impl<'t> Scan<'t> {
    fn byte(&mut self, wanted: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if first.eq_ignore_ascii_case(&wanted) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn spaces(&mut self) -> bool {
        let start = self.rest.len();
        self.rest = self.rest.trim_ascii_start();
        self.rest.len() != start
    }

    /// As many digits as there are.
    fn digits(&mut self) -> &'t [u8] {
        let end = self.rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }

    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.digits();
        (least..=most).contains(&digits.len()).then(|| value(digits))
    }

    fn word(&mut self) -> &'t [u8] {
        let end = self.rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
}

fn value(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |n: i64, d| n.saturating_mul(10).saturating_add((d - b'0').into()))
}

fn whole(scan: &mut Scan<'_>) -> Option<Parsed> {
    let days = date(scan)?;
    let had_space = scan.spaces();
    let time = if scan.byte(b't') || (had_space && scan.rest.first().is_some_and(u8::is_ascii_digit)) {
        time(scan)?
    } else {
        0
    };
    scan.spaces();
    let zone = if scan.rest.is_empty() { None } else { Some(zone(scan)?) };
    let ms = days.checked_mul(86_400_000)?.checked_add(time)?.checked_sub(zone.unwrap_or(0) * 60_000)?;
    Some(Parsed { ms, has_zone: zone.is_some() })
}

/// Days since 1970-01-01.
fn date(scan: &mut Scan<'_>) -> Option<i64> {
    if scan.rest.first()?.is_ascii_alphabetic() {
        return named(scan);
    }
    let first = scan.digits();
    match first.len() {
        8 => checked(value(&first[..4]), value(&first[4..6]), value(&first[6..])),
        7 => day_of_year(value(&first[..4]), value(&first[4..])),
        4 => year_first(scan, value(first)),
        1 | 2 => {
            let first = value(first);
            if scan.byte(b'/') {
                let day = scan.number(1, 2)?;
                return if scan.byte(b'/') { checked(scan.number(4, 4)?, first, day) } else { None };
            }
            while scan.byte(b' ') || scan.byte(b'-') {}
            let month = month(scan.word())?;
            while scan.byte(b' ') || scan.byte(b'-') || scan.byte(b',') {}
            checked(scan.number(4, 4)?, month, first)
        }
        _ => None,
    }
}

fn year_first(scan: &mut Scan<'_>, year: i64) -> Option<i64> {
    if scan.byte(b'/') {
        let month = scan.number(1, 2)?;
        return if scan.byte(b'/') { checked(year, month, scan.number(1, 2)?) } else { None };
    }
    let dashed = scan.byte(b'-');
    if scan.byte(b'w') {
        let week = scan.number(2, 2)?;
        let day = if scan.byte(b'-') { scan.number(1, 1)? } else { 1 };
        return ((1..=53).contains(&week) && day <= 7).then(|| from_iso_week(year, week, day));
    }
    if !dashed {
        return None;
    }
    let second = scan.digits();
    match second.len() {
        3 => day_of_year(year, value(second)),
        1 | 2 if scan.byte(b'-') => checked(year, value(second), scan.number(1, 2)?),
        1 | 2 => checked(year, value(second), 1),
        _ => None,
    }
}

/// `July 4, 2020`, or a day of the week before any other form.
fn named(scan: &mut Scan<'_>) -> Option<i64> {
    let word = scan.word();
    if let Some(month) = month(word) {
        while scan.byte(b'.') || scan.byte(b' ') {}
        let day = scan.number(1, 2)?;
        while scan.byte(b',') || scan.byte(b' ') {}
        return checked(scan.number(4, 4)?, month, day);
    }
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    if word.len() < 3 || !DAYS.iter().any(|day| day.starts_with(&word)) {
        return None;
    }
    while scan.byte(b',') || scan.byte(b'.') || scan.byte(b' ') {}
    date(scan)
}

fn month(word: &[u8]) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    let fits = |m: &str| m == word || m[..3] == word || (word == "sept" && m == "september");
    MONTHS.iter().position(|m| fits(m)).map(|at| at as i64 + 1)
}

fn checked(year: i64, month: i64, day: i64) -> Option<i64> {
    let fits = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    fits.then(|| to_days(year, month, day))
}

fn day_of_year(year: i64, day: i64) -> Option<i64> {
    (1..=366).contains(&day).then(|| to_days(year, 1, 1) + day - 1)
}

/// Days since 1970-01-01 of a day (1 is Monday) in a week of the ISO calendar.
pub(in crate::expression) fn from_iso_week(year: i64, week: i64, day: i64) -> i64 {
    let fourth = Civil { year, month: 1, day: 4, hour: 0, minute: 0, second: 0, millisecond: 0 };
    // January 4th is always in week 1.
    fourth.days() - fourth.iso_weekday() + 1 + (week - 1) * 7 + day - 1
}

/// Milliseconds of the day.
fn time(scan: &mut Scan<'_>) -> Option<i64> {
    let first = scan.digits();
    let (hour, minute, second) = match first.len() {
        1 | 2 => {
            let minute = if scan.byte(b':') { scan.number(2, 2)? } else { 0 };
            let second = if scan.byte(b':') { scan.number(2, 2)? } else { 0 };
            (value(first), minute, second)
        }
        4 => (value(&first[..2]), value(&first[2..]), 0),
        6 => (value(&first[..2]), value(&first[2..4]), value(&first[4..])),
        _ => return None,
    };
    let mut fraction = 0;
    if scan.byte(b'.') || scan.byte(b',') {
        let digits = scan.digits();
        if digits.is_empty() {
            return None;
        }
        let head = &digits[..digits.len().min(3)];
        fraction = value(head) * [100, 10, 1][head.len() - 1];
    }
    (hour < 24 && minute < 60 && second < 60).then(|| ((hour * 60 + minute) * 60 + second) * 1000 + fraction)
}

/// Minutes east of UTC.
fn zone(scan: &mut Scan<'_>) -> Option<i64> {
    let word = scan.word().to_ascii_uppercase();
    let named = match &word[..] {
        b"" => None,
        b"Z" | b"UTC" | b"GMT" => Some(0),
        b"EST" | b"CDT" => Some(-300),
        b"EDT" => Some(-240),
        b"CST" | b"MDT" => Some(-360),
        b"MST" | b"PDT" => Some(-420),
        b"PST" => Some(-480),
        b"CET" => Some(60),
        b"CEST" => Some(120),
        _ => return None,
    };
    if scan.rest.is_empty() {
        return named;
    }
    let sign = if scan.byte(b'+') {
        1
    } else if scan.byte(b'-') {
        -1
    } else {
        return None;
    };
    let digits = scan.digits();
    let (hours, minutes) = match digits.len() {
        1 | 2 => (value(digits), if scan.byte(b':') { scan.number(2, 2)? } else { 0 }),
        4 => (value(&digits[..2]), value(&digits[2..])),
        _ => return None,
    };
    Some(named.unwrap_or(0) + sign * (hours * 60 + minutes))
}
