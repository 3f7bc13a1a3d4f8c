//! An array as a set: which values it holds, told apart by the order of values.

use std::collections::BTreeMap;

use super::super::prelude::*;

/// The members in BSON order; of several that are equal, the first counts.
pub(super) type Members<'v> = BTreeMap<Vec<u8>, ValueRef<'v>>;

pub(super) fn members<'v>(array: RawArray<'v>, collator: Collator<'_>) -> Members<'v> {
    let mut set = Members::new();
    for value in array.iter() {
        set.entry(collator.key(value)).or_insert(value);
    }
    set
}

pub(super) fn to_array(set: Members<'_>) -> Value<'static> {
    Value::array(set.into_values().collect())
}
