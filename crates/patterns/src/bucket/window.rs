//! Windows of time: where the one begins and ends that an instant lies in. All in UTC, so that the windows of two
//! writers are the same wherever they run.

const SECOND_MS: i64 = 1_000;
const DAY_MS: i64 = 86_400_000;
/// From a Monday to 1970-01-01, a Thursday.
const MONDAY_MS: i64 = 3 * DAY_MS;

/// The width of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Every {
    /// Counted from the epoch, or from a Monday for whole weeks.
    Fixed {
        ms: i64,
        offset_ms: i64,
    },
    Months(i64),
}

/// Units in the order in which a text's ending is tried.
const UNITS: [(&str, Every); 8] = [
    ("ms", Every::Fixed { ms: 1, offset_ms: 0 }),
    ("mo", Every::Months(1)),
    ("s", Every::Fixed { ms: SECOND_MS, offset_ms: 0 }),
    ("m", Every::Fixed { ms: 60 * SECOND_MS, offset_ms: 0 }),
    ("h", Every::Fixed { ms: 3600 * SECOND_MS, offset_ms: 0 }),
    ("d", Every::Fixed { ms: DAY_MS, offset_ms: 0 }),
    ("w", Every::Fixed { ms: 7 * DAY_MS, offset_ms: MONDAY_MS }),
    ("y", Every::Months(12)),
];

impl Every {
    /// `15m`, `1h`, `1mo`; `None` if it is nothing like that.
    pub fn parse(text: &str) -> Option<Every> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, unit) = text.split_at(digits);
        // At most a few thousand years: no arithmetic on windows can overflow.
        let count: i64 = count.parse().ok().filter(|count| (1..=100_000).contains(count))?;
        let (_, every) = UNITS.iter().find(|(name, _)| *name == unit)?;
        Some(match *every {
            Every::Fixed { ms, offset_ms } => Every::Fixed { ms: ms * count, offset_ms },
            Every::Months(months) => Every::Months(months * count),
        })
    }

    /// First millisecond of the window that an instant lies in, and of the next.
    pub fn window(self, at_ms: i64) -> (i64, i64) {
        match self {
            Every::Fixed { ms, offset_ms } => {
                let into = at_ms.wrapping_add(offset_ms).rem_euclid(ms);
                let start = at_ms.saturating_sub(into);
                (start, start.saturating_add(ms))
            }
            Every::Months(count) => {
                let month = month_of(at_ms.div_euclid(DAY_MS));
                let first = month.div_euclid(count) * count;
                (month_start(first), month_start(first + count))
            }
        }
    }
}

/// As it is declared.
impl std::fmt::Display for Every {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, unit) = match *self {
            Every::Months(months) if months % 12 == 0 => (months / 12, "y"),
            Every::Months(months) => (months, "mo"),
            Every::Fixed { ms, offset_ms } => {
                // The widest unit that divides it.
                let widths = UNITS.iter().rev().filter_map(|(name, unit)| match unit {
                    Every::Fixed { ms: width, offset_ms: offset } if *offset == offset_ms => Some((*width, *name)),
                    _ => None,
                });
                let fitting = widths.filter(|(width, _)| ms % width == 0).max_by_key(|(width, _)| *width);
                fitting.map_or((ms, "ms"), |(width, name)| (ms / width, name))
            }
        };
        write!(f, "{count}{unit}")
    }
}

/// Months since 0000-01 of a day counted from the epoch. Years begin in March here, so that the leap day is the last of
/// its year, and are counted in cycles of 400, after which the calendar repeats.
fn month_of(days: i64) -> i64 {
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    (cycle * 400 + year) * 12 + (5 * day + 2) / 153 + 2
}

/// The first millisecond of a month counted from 0000-01.
fn month_start(month: i64) -> i64 {
    let from_march = month - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * month + 2) / 5 + 365 * year + year / 4 - year / 100;
    (cycle * 146_097 + day - 719_468).saturating_mul(DAY_MS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::ValueRef;

    use super::*;

    fn window(every: &str, at: i64) -> (String, String) {
        let (start, end) = Every::parse(every).unwrap().window(at);
        (ValueRef::DateTime(start).to_string(), ValueRef::DateTime(end).to_string())
    }

    #[test]
    fn windows_are_those_of_the_calendar() {
        // 2026-04-15T10:20:30Z, a Wednesday.
        let at = 1_776_248_430_000;
        let ends = |every| {
            let (start, end) = window(every, at);
            assert!(start.len() > 10 && end.len() > 10, "{start} {end}");
            let (start, end) = Every::parse(every).unwrap().window(at);
            ((start - at).div_euclid(SECOND_MS), (end - at).div_euclid(SECOND_MS))
        };
        assert_eq!(ends("1h"), (-1230, 2370));
        assert_eq!(ends("15m"), (-330, 570));
        assert_eq!(ends("1d"), (-37_230, 49_170));
        assert_eq!(ends("1w"), (-37_230 - 2 * 86_400, 49_170 + 4 * 86_400));
        assert_eq!(ends("1mo"), (-37_230 - 14 * 86_400, 49_170 + 15 * 86_400));
        assert_eq!(ends("1y"), (-37_230 - 104 * 86_400, 49_170 + 260 * 86_400));
    }

    #[test]
    fn every_instant_lies_in_its_window_and_windows_meet() {
        for every in ["1ms", "7s", "1h", "1w", "1mo", "3mo", "1y"] {
            let every = Every::parse(every).unwrap();
            for at in (-4_000_000_000_000..4_000_000_000_000i64).step_by(86_399_999_983) {
                let (start, end) = every.window(at);
                assert!(start <= at && at < end, "{every:?} {at}: {start} {end}");
                assert_eq!(every.window(end).0, end);
                assert_eq!(every.window(start - 1).1, start);
            }
            for at in [i64::MIN, i64::MAX] {
                every.window(at);
            }
        }
    }

    #[test]
    fn a_width_is_listed_as_it_is_declared() {
        for text in ["10s", "15m", "1h", "1d", "2d", "1w", "1mo", "1y", "250ms"] {
            assert_eq!(Every::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Every::parse("60m").unwrap(), Every::parse("1h").unwrap());
        assert_eq!(Every::parse("120s").unwrap().to_string(), "2m");
    }

    #[test]
    fn only_widths_are_read() {
        for text in ["", "h", "0h", "-1h", "1", "1 h", "1fortnight", "1.5h", "99999999999h", "1H"] {
            assert_eq!(Every::parse(text), None, "{text}");
        }
    }
}
