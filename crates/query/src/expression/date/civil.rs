//! The calendar: from milliseconds to year, month and day and back, for any year (Howard Hinnant's algorithms).

/// A point in time as calendar and clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expression) struct Civil {
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub millisecond: i64,
}

pub(in crate::expression) const DAY_MS: i64 = 86_400_000;

impl Civil {
    pub fn of(ms: i64) -> Civil {
        let (days, time) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
        let (year, month, day) = from_days(days);
        Civil {
            year,
            month,
            day,
            hour: time / 3_600_000,
            minute: time / 60_000 % 60,
            second: time / 1000 % 60,
            millisecond: time % 1000,
        }
    }

    /// Parts beyond their range carry over, so that month 13 is January of the next year.
    pub fn to_ms(self) -> Option<i64> {
        let months = self.year.checked_mul(12)?.checked_add(self.month.checked_sub(1)?)?;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        if year.abs() > 400_000_000 {
            return None;
        }
        let days = i128::from(to_days(year, month, 1)) + i128::from(self.day) - 1;
        let seconds =
            (days * 24 + i128::from(self.hour)) * 3600 + i128::from(self.minute) * 60 + i128::from(self.second);
        i64::try_from(seconds * 1000 + i128::from(self.millisecond)).ok()
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        to_days(self.year, self.month, self.day)
    }

    /// 1 to 366.
    pub fn day_of_year(self) -> i64 {
        self.days() - to_days(self.year, 1, 1) + 1
    }

    /// 1 is Monday, 7 is Sunday.
    pub fn iso_weekday(self) -> i64 {
        (self.days() + 3).rem_euclid(7) + 1
    }

    /// 0 to 53; weeks begin on Sunday, and the days before the first Sunday are in week 0.
    pub fn week(self) -> i64 {
        (self.day_of_year() + 6 - self.iso_weekday() % 7) / 7
    }

    /// The year that the week of this day belongs to, and its number from 1 to 53.
    pub fn iso_week(self) -> (i64, i64) {
        // The week belongs to the year of its Thursday.
        let thursday = self.days() - self.iso_weekday() + 4;
        let (year, ..) = from_days(thursday);
        (year, (thursday - to_days(year, 1, 1)) / 7 + 1)
    }
}

/// Days since 1970-01-01 of a date.
pub(in crate::expression) fn to_days(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March, so that the leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

pub(in crate::expression) fn from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

pub(in crate::expression) fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    to_days(next_year, next, 1) - to_days(year, month, 1)
}
