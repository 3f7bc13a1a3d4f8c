//! Units of time and days of the week, as `$dateAdd`, `$dateDiff` and `$dateTrunc` name them.

use super::civil::{Civil, DAY_MS, days_in_month};
use super::zone::Zone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expression) enum Unit {
    /// So many months.
    Months(i64),
    /// So many days.
    Days(i64),
    Week,
    /// So many milliseconds, whatever the clocks do.
    Ms(i64),
}

impl Unit {
    pub fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Months(12),
            "quarter" => Unit::Months(3),
            "month" => Unit::Months(1),
            "week" => Unit::Week,
            "day" => Unit::Days(1),
            "hour" => Unit::Ms(3_600_000),
            "minute" => Unit::Ms(60_000),
            "second" => Unit::Ms(1000),
            "millisecond" => Unit::Ms(1),
            _ => return None,
        })
    }

    /// So many units later; `None` if no date can hold it.
    pub fn add(self, ms: i64, amount: i64, zone: &Zone) -> Option<i64> {
        match self {
            Unit::Ms(unit) => ms.checked_add(amount.checked_mul(unit)?),
            Unit::Week => Unit::Days(7).add(ms, amount, zone),
            Unit::Days(days) => {
                let local = zone.to_local(ms).checked_add(amount.checked_mul(days)?.checked_mul(DAY_MS)?)?;
                Some(zone.to_utc_near(local, ms))
            }
            Unit::Months(months) => {
                let mut civil = Civil::of(zone.to_local(ms));
                let total = (civil.year * 12 + civil.month - 1).checked_add(amount.checked_mul(months)?)?;
                civil.year = total.div_euclid(12);
                civil.month = total.rem_euclid(12) + 1;
                if civil.year.abs() > 300_000_000 {
                    return None;
                }
                // The last day of the month, if it is too short.
                civil.day = civil.day.min(days_in_month(civil.year, civil.month));
                Some(zone.to_utc_near(civil.to_ms()?, ms))
            }
        }
    }
}

/// A day of the week from 0 (Monday) to 6, by its name or its first three letters.
pub(in crate::expression) fn day_of_week(name: &str) -> Option<i64> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let name = name.to_ascii_lowercase();
    DAYS.iter().position(|day| *day == name || day[..3] == name).map(|at| at as i64)
}

pub(in crate::expression) const SUNDAY: i64 = 6;
