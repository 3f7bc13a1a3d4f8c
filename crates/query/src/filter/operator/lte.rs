//! `$lte`: at or below a value, among the values that compare with it.

super::comparison::ordering!(Lte, Lte, LTE, "$lte", "Values at or below the given one, of types that compare with it.");
