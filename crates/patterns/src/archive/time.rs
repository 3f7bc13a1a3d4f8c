//! Times in a declaration: `"90d"` is a duration, `"$$NOW - 90d"` a moment relative to the run.

use espalier_value::{ArrayBuf, DocBuf, RawArray, RawDoc, ValueRef};

const NOW: &str = "$$NOW";

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
    Some(match crate::duration::parse(amount.trim()) {
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
