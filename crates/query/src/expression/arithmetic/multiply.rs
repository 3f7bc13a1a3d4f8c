//! `$multiply`: The product of numbers.

use super::super::prelude::*;

pub(super) static MULTIPLY: Operator =
    Operator { name: "$multiply", args: Args::Commutative, eval: Eval::Lazy(multiply), doc: "The product of numbers." };

fn multiply<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut product = Number::Int32(1);
    for arg in args.iter() {
        let arg = arg?;
        let Some(value) = arg.as_ref().filter(|v| !v.is_nullish()) else { return Ok(Value::NULL) };
        let Some(factor) = Number::of(value) else {
            let found = value.ty().name();
            return Err(Error::type_mismatch(format!("$multiply only supports numeric types, not {found}")));
        };
        product = product.mul(factor);
    }
    Ok(product.to_value().into())
}
