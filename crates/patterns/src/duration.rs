//! Lengths of time in declarations.

use std::time::Duration;

/// `250ms`, `30s`, `15m`, `1h`, `90d`, `2w`; a day is 24 hours, whatever a clock on a wall does.
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit_ms = match text[digits..].trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return None,
    };
    // Past what a date can hold it means nothing.
    number.checked_mul(unit_ms).filter(|ms| *ms <= i64::MAX as u64 / 2).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse("90d"), Some(Duration::from_secs(90 * 86_400)));
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        for wrong in ["", "d", "1", "1y", "-1d", "1.5h", "99999999999999999999d", "9999999999999w"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
