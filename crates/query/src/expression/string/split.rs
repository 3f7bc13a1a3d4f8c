//! `$split`: The parts of a string between separators.

use super::super::prelude::*;

pub(super) static SPLIT: Operator = Operator {
    name: "$split",
    args: Args::Exactly(2),
    eval: Eval::Strict(split),
    doc: "The parts of a string between separators.",
};

fn split<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    if args.iter().any(Value::is_nullish) {
        return Ok(Value::NULL);
    }
    let which = ["first", "second"];
    for (at, code) in [(0, 40085), (1, 40086)] {
        if !matches!(args[at].as_ref(), Some(ValueRef::String(_))) {
            let message = format!(
                "$split requires an expression that evaluates to a string as a {} argument, found: {}",
                which[at],
                type_name(&args[at])
            );
            return refuse(code, message);
        }
    }
    let (Some(text), Some(separator)) = (args[0].or_null().as_str(), args[1].or_null().as_str()) else {
        return Ok(Value::NULL);
    };
    if separator.is_empty() {
        return refuse(40087, "$split requires a non-empty separator");
    }
    Ok(Value::array(text.split(separator).map(ValueRef::String).collect()))
}
