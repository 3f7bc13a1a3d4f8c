//! Dates as text: milliseconds since the Unix epoch in the proleptic Gregorian calendar, UTC.

use std::fmt::{self, Display, Formatter};

const DAY_MS: i64 = 86_400_000;

/// A date in years 0 to 9999, the span that ISO 8601 writes with four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iso(i64);

impl Iso {
    const FIRST_MS: i64 = -62_167_219_200_000;
    const LAST_MS: i64 = 253_402_300_799_999;

    pub fn of(ms: i64) -> Option<Iso> {
        (Self::FIRST_MS..=Self::LAST_MS).contains(&ms).then_some(Iso(ms))
    }
}

impl Display for Iso {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0.div_euclid(DAY_MS));
        let ms = self.0.rem_euclid(DAY_MS);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so that the leap day
/// is the last of its year, and counted in cycles of 400 years, after which the calendar repeats.
fn civil(days: i64) -> (i64, i64, i64) {
    const CYCLE_DAYS: i64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const EPOCH_DAYS: i64 = 719_468;
    let days = days + EPOCH_DAYS;
    let cycle = days.div_euclid(CYCLE_DAYS);
    let day_of_cycle = days.rem_euclid(CYCLE_DAYS);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(ms: i64) -> String {
        Iso::of(ms).map_or_else(|| "none".to_owned(), |iso| iso.to_string())
    }

    #[test]
    fn known_dates() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(951_868_800_000), "2000-03-01T00:00:00.000Z");
        assert_eq!(iso(-62_135_596_800_001), "0000-12-31T23:59:59.999Z");
        assert_eq!(iso(-62_167_219_200_000), "0000-01-01T00:00:00.000Z");
        assert_eq!(iso(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn the_ends_are_refused() {
        assert_eq!(iso(-62_167_219_200_001), "none");
        assert_eq!(iso(253_402_300_800_000), "none");
        assert_eq!(iso(i64::MIN), "none");
    }

    #[test]
    fn days_follow_each_other_through_every_leap_rule() {
        let mut expected = (1599, 12, 31);
        for days in -135_140..=35_000 {
            let (year, month, day) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day == last) {
                (_, false) => (year, month, day + 1),
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
            };
            assert_eq!(civil(days), expected, "day {days}");
        }
    }
}
