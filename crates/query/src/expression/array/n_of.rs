//! What `$firstN`, `$lastN`, `$maxN` and `$minN` share: `n` and an array.

use super::super::prelude::*;

pub(in crate::expression) static NAMED: Named = Named {
    fields: &[Field::required("n", 5787906), Field::required("input", 5787907)],
    not_object: 5787801,
    unknown: 5787901,
};

/// Applies `pick` to the evaluated arguments: how many, of which array.
pub(super) fn of_array<'a>(
    args: &Given<'_, 'a>,
    pick: impl FnOnce(usize, RawArray<'_>) -> Value<'a>,
) -> Result<Value<'a>> {
    let n = count(&args.at(0)?)?;
    match args.at(1)?.as_ref() {
        Some(ValueRef::Array(array)) => Ok(pick(n, array)),
        _ => refuse(5788200, "Input must be an array"),
    }
}

/// `n` as the accumulators and expressions of this kind take it.
pub(crate) fn count(value: &Value<'_>) -> Result<usize> {
    let Some(number) = Number::of(value.or_null()) else {
        let message = format!("Value for 'n' must be of integral type, but found {:?}", value.or_null());
        return refuse(5787902, message);
    };
    match number.as_exact_i64() {
        None => refuse(5787903, format!("Value for 'n' must be of integral type, but found {number:?}")),
        Some(n @ 1..) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        Some(n) => refuse(5787908, format!("'n' must be greater than 0, found {n}")),
    }
}
