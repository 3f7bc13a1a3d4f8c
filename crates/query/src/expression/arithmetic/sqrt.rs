//! `$sqrt`: The square root of a number.

use super::super::prelude::*;

pub(super) static SQRT: Operator =
    Operator { name: "$sqrt", args: Args::Exactly(1), eval: Eval::Strict(sqrt), doc: "The square root of a number." };

fn sqrt<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    super::unary::real(
        "$sqrt",
        &args[0],
        |x| if x < 0.0 { negative() } else { Ok(x.sqrt()) },
        |x| if !x.is_nan() && x.cmp_i64(0).is_lt() { negative() } else { Ok(x.sqrt()) },
    )
}

fn negative<T>() -> Result<T> {
    refuse(28714, "$sqrt's argument must be greater than or equal to 0")
}
