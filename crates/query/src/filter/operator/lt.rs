//! `$lt`: below a value, among the values that compare with it.

super::comparison::ordering!(Lt, Lt, LT, "$lt", "Values below the given one, of types that compare with it.");
