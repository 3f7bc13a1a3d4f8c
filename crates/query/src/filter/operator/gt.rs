//! `$gt`: above a value, among the values that compare with it.

super::comparison::ordering!(Gt, Gt, GT, "$gt", "Values above the given one, of types that compare with it.");
