//! Units of time for stages and windows, which count in UTC.

use super::civil::DAY_MS;
use super::unit::Unit;
use super::zone::Zone;

/// `year` to `millisecond`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeUnit(Unit);

impl TimeUnit {
    pub fn parse(name: &str) -> Option<TimeUnit> {
        Unit::parse(name).map(TimeUnit)
    }

    /// So many units after a date; `None` if no date can hold it.
    pub fn add_utc(self, ms: i64, amount: i64) -> Option<i64> {
        self.0.add(ms, amount, &Zone::UTC)
    }

    /// Its length, if it is always the same.
    pub fn fixed_ms(self) -> Option<i64> {
        match self.0 {
            Unit::Months(_) => None,
            Unit::Week => Some(7 * DAY_MS),
            Unit::Days(days) => Some(days * DAY_MS),
            Unit::Ms(ms) => Some(ms),
        }
    }
}
