//! `$log10`: The logarithm of a number to base 10.

use super::super::prelude::*;

pub(super) static LOG10: Operator = Operator {
    name: "$log10",
    args: Args::Exactly(1),
    eval: Eval::Strict(log10),
    doc: "The logarithm of a number to base 10.",
};

fn log10<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    // MongoDB answers a decimal NaN with a double one.
    if let Some(ValueRef::Decimal(x)) = args[0].as_ref()
        && x.is_nan()
    {
        return Ok(f64::NAN.into());
    }
    super::unary::real(
        "$log10",
        &args[0],
        |x| if x > 0.0 || x.is_nan() { Ok(x.log10()) } else { not_positive(x) },
        |x| if x.cmp_i64(0).is_gt() { Ok(x.log10()) } else { not_positive(x) },
    )
}

fn not_positive<T>(x: impl std::fmt::Display) -> Result<T> {
    refuse(28761, format!("$log10's argument must be a positive number, but is {x}"))
}
