//! Arrays: one file each operator, listed in order of name.

use super::operator::Operator;

mod array_elem_at;
mod array_to_object;
mod concat_arrays;
mod contains;
mod filter;
mod first;
mod first_n;
pub(super) mod index_of_array;
mod is_array;
mod last;
mod last_n;
mod map;
mod max_n;
mod min_n;
pub(super) mod n_of;
mod range;
mod reduce;
mod reverse_array;
mod size;
mod slice;
mod sort_array;
mod zip;

pub(super) static ALL: &[&Operator] = &[
    &array_elem_at::ARRAY_ELEM_AT,
    &array_to_object::ARRAY_TO_OBJECT,
    &concat_arrays::CONCAT_ARRAYS,
    &filter::FILTER,
    &first::FIRST,
    &first_n::FIRST_N,
    &contains::IN,
    &index_of_array::INDEX_OF_ARRAY,
    &is_array::IS_ARRAY,
    &last::LAST,
    &last_n::LAST_N,
    &map::MAP,
    &max_n::MAX_N,
    &min_n::MIN_N,
    &range::RANGE,
    &reduce::REDUCE,
    &reverse_array::REVERSE_ARRAY,
    &size::SIZE,
    &slice::SLICE,
    &sort_array::SORT_ARRAY,
    &zip::ZIP,
];

// ---
use super::prelude::*;

/// The element at an index, counted from the end if negative.
fn element<'a>(array: &Value<'a>, index: i64) -> Value<'a> {
    part(array, |value| {
        let array = value.as_array()?;
        let at = if index >= 0 { index as usize } else { array.len().checked_sub(index.unsigned_abs() as usize)? };
        array.get(at)
    })
}

/// The name that `as` gives to the element, `this` by default.
fn variable(name: Option<ValueRef<'_>>) -> Result<&str> {
    match name {
        None => Ok("this"),
        Some(ValueRef::String(name)) => validate_name_to_define(name).map(|()| name),
        Some(_) => Err(Error::failed_to_parse("empty variable names are not allowed")),
    }
}
