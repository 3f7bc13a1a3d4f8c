//! `$strcasecmp`: -1, 0 or 1 as two strings compare when the case of ASCII letters does not count.

use super::super::prelude::*;

pub(super) static STRCASECMP: Operator = Operator {
    name: "$strcasecmp",
    args: Args::Exactly(2),
    eval: Eval::Strict(strcasecmp),
    doc: "-1, 0 or 1 as two strings compare when the case of ASCII letters does not count.",
};

use super::coerce::text;

fn strcasecmp<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (left, right) = (text(&args[0])?, text(&args[1])?);
    let upper = |s: &str| s.bytes().map(|b| b.to_ascii_uppercase()).collect::<Vec<_>>();
    Ok((upper(&left).cmp(&upper(&right)) as i32).into())
}
