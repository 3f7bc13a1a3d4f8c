//! `$setUnion`: The elements of all arrays, each once, in BSON order.

use super::super::prelude::*;

pub(super) static SET_UNION: Operator = Operator {
    name: "$setUnion",
    args: Args::Commutative,
    eval: Eval::Lazy(set_union),
    doc: "The elements of all arrays, each once, in BSON order.",
};

use smallvec::SmallVec;

use super::members::{Members, members, to_array};

fn set_union<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut sets: SmallVec<[Value<'a>; 4]> = SmallVec::new();
    for arg in args.iter() {
        let arg = arg?;
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(_)) => sets.push(arg),
            Some(other) => {
                let found = other.ty().name();
                let message = format!("All operands of $setUnion must be arrays. One argument is of type: {found}");
                return refuse(17043, message);
            }
        }
    }
    let mut all = Members::new();
    for array in sets.iter().filter_map(|set| set.as_ref()?.as_array()) {
        for (key, value) in members(array, args.collator()) {
            all.entry(key).or_insert(value);
        }
    }
    Ok(to_array(all))
}
