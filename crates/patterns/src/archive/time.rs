//! Times in a declaration: `"90d"` is a duration, `"$$NOW - 90d"` a moment relative to the run.

use std::time::Duration;

use espalier_value::{ArrayBuf, DocBuf, RawArray, RawDoc, ValueRef};

const NOW: &str = "$$NOW";

/// `250ms`, `30s`, `15m`, `1h`, `90d`, `2w`; a day is 24 hours, whatever a clock on a wall does.
pub fn duration(text: &str) -> Option<Duration> {
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

/// Milliseconds from now on, if the text is a moment; an error if it begins like one and is none.
pub fn moment(text: &str) -> Option<Result<i64, String>> {
    let rest = text.strip_prefix(NOW)?;
    let wrong = || Err(format!("'{text}' is no time; write $$NOW, or for example $$NOW - 90d (ms, s, m, h, d, w)"));
    let rest = rest.trim();
    let (sign, amount) = match rest.as_bytes().first() {
        None => return Some(Ok(0)),
        Some(b'-') => (-1, &rest[1..]),
        Some(b'+') => (1, &rest[1..]),
        Some(_) => return Some(wrong()),
    };
    Some(match duration(amount.trim()) {
        Some(duration) => Ok(sign * duration.as_millis() as i64),
        None => wrong(),
    })
}

/// The document with every moment in it as a date. Expressions have a `$$NOW` of their own.
pub fn resolve(doc: RawDoc<'_>, now_ms: i64) -> Result<DocBuf, String> {
    let mut out = DocBuf::new();
    for elem in doc {
        match elem.value() {
            _ if elem.name() == "$expr" => out.append_elem(elem),
            ValueRef::Document(inner) => out.append(elem.name(), &resolve(inner, now_ms)?),
            ValueRef::Array(inner) => out.append(elem.name(), &resolve_array(inner, now_ms)?),
            value => out.append(elem.name(), scalar(value, now_ms)?),
        };
    }
    Ok(out)
}

fn resolve_array(array: RawArray<'_>, now_ms: i64) -> Result<ArrayBuf, String> {
    let mut out = ArrayBuf::new();
    for value in array.iter() {
        match value {
            ValueRef::Document(inner) => out.push(resolve(inner, now_ms)?.as_raw()),
            ValueRef::Array(inner) => out.push(ValueRef::Array(resolve_array(inner, now_ms)?.as_raw())),
            value => out.push(scalar(value, now_ms)?),
        };
    }
    Ok(out)
}

fn scalar(value: ValueRef<'_>, now_ms: i64) -> Result<ValueRef<'_>, String> {
    match value.as_str().and_then(moment) {
        Some(offset) => Ok(ValueRef::DateTime(now_ms.saturating_add(offset?))),
        None => Ok(value),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::doc;

    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("90d"), Some(Duration::from_secs(90 * 86_400)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for wrong in ["", "d", "1", "1y", "-1d", "1.5h", "99999999999999999999d", "9999999999999w"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn moments() {
        assert_eq!(moment("$$NOW"), Some(Ok(0)));
        assert_eq!(moment("$$NOW - 2s"), Some(Ok(-2_000)));
        assert_eq!(moment("$$NOW+1h"), Some(Ok(3_600_000)));
        assert_eq!(moment("NOW - 2s"), None);
        for wrong in ["$$NOW - ", "$$NOW - x", "$$NOWHERE", "$$NOW * 2", "$$NOW - 1d - 2h"] {
            assert!(moment(wrong).unwrap().is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_found_at_any_depth_but_in_expressions() {
        let list = |text: &str| [ValueRef::String(text)].into_iter().collect::<ArrayBuf>();
        let given = doc! { "a": &doc! { "$in": &list("$$NOW - 1s") }, "$expr": &doc! { "$lt": &list("$$NOW") } };
        let date: ArrayBuf = [ValueRef::DateTime(9_000)].into_iter().collect();
        let expected = doc! { "a": &doc! { "$in": &date }, "$expr": &doc! { "$lt": &list("$$NOW") } };
        assert_eq!(resolve(given.as_raw(), 10_000), Ok(expected));
    }
}
