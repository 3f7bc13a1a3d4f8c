//! `$gte`: at or above a value, among the values that compare with it.

super::comparison::ordering!(Gte, Gte, GTE, "$gte", "Values at or above the given one, of types that compare with it.");
