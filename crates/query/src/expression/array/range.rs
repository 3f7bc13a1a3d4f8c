//! `$range`: The integers from a start up to an end that is not included.

use super::super::prelude::*;

pub(super) static RANGE: Operator = Operator {
    name: "$range",
    args: Args::Between(2, 3),
    eval: Eval::Lazy(range),
    doc: "The integers from a start up to an end that is not included.",
};

/// MongoDB refuses what would take more than this, at 16 bytes an element.
const BYTES_MAX: u64 = 100 * 1024 * 1024;

fn range<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let (start, end) = (args.at(0)?, args.at(1)?);
    let start = whole(&start, "starting", 34443, 34444)?;
    let end = whole(&end, "ending", 34445, 34446)?;
    let step = args.optional(2)?.map_or(Ok(1), |v| whole(&v, "step", 34447, 34448))?;
    if step == 0 {
        return refuse(34449, "$range requires a non-zero step value");
    }
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 { 0 } else { (span as u64).div_ceil(step.unsigned_abs()) };
    let bytes = 40 + 16 * count;
    if bytes > BYTES_MAX {
        let message = format!(
            "$range would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: {BYTES_MAX} bytes"
        );
        return Err(Error::new(Code::ExceededMemoryLimit, message));
    }
    let mut out = ArrayBuf::new();
    for at in 0..count as i64 {
        out.push((start + at * step) as i32);
    }
    Ok(Value::array(out))
}

fn whole(value: &Value<'_>, which: &str, not_number: i32, not_int: i32) -> Result<i64> {
    let Some(number) = Number::of(value.or_null()) else {
        let found = type_name(value);
        return refuse(not_number, format!("$range requires a numeric {which} value, found value of type: {found}"));
    };
    match number.as_exact_i64().filter(|n| i32::try_from(*n).is_ok()) {
        Some(n) => Ok(n),
        None => refuse(
            not_int,
            format!(
                "$range requires a {which} value that can be represented as a 32-bit integer, found value: {number:?}"
            ),
        ),
    }
}
