//! `$ln`: The natural logarithm of a number.

use super::super::prelude::*;

pub(super) static LN: Operator =
    Operator { name: "$ln", args: Args::Exactly(1), eval: Eval::Strict(ln), doc: "The natural logarithm of a number." };

fn ln<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    // MongoDB answers a decimal NaN with a double one.
    if let Some(ValueRef::Decimal(x)) = args[0].as_ref()
        && x.is_nan()
    {
        return Ok(f64::NAN.into());
    }
    super::unary::real(
        "$ln",
        &args[0],
        |x| if x > 0.0 || x.is_nan() { Ok(x.ln()) } else { not_positive(x) },
        |x| if x.cmp_i64(0).is_gt() { Ok(x.ln()) } else { not_positive(x) },
    )
}

fn not_positive<T>(x: impl std::fmt::Display) -> Result<T> {
    refuse(28766, format!("$ln's argument must be a positive number, but is {x}"))
}
