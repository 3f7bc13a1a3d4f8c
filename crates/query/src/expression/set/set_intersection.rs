//! `$setIntersection`: The elements that all arrays hold, each once, in BSON order.

use super::super::prelude::*;

pub(super) static SET_INTERSECTION: Operator = Operator {
    name: "$setIntersection",
    args: Args::Commutative,
    eval: Eval::Lazy(set_intersection),
    doc: "The elements that all arrays hold, each once, in BSON order.",
};

use smallvec::SmallVec;

use super::members::{Members, members, to_array};

fn set_intersection<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut sets: SmallVec<[Value<'a>; 4]> = SmallVec::new();
    for arg in args.iter() {
        let arg = arg?;
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(_)) => sets.push(arg),
            Some(other) => {
                let found = other.ty().name();
                let message =
                    format!("All operands of $setIntersection must be arrays. One argument is of type: {found}");
                return refuse(17047, message);
            }
        }
    }
    let mut common: Option<Members<'_>> = None;
    for array in sets.iter().filter_map(|set| set.as_ref()?.as_array()) {
        let mut set = members(array, args.collator());
        // Of two equal members, 1 and 1.0, the one of the smaller set stays, as in MongoDB.
        if let Some(mut kept) = common {
            if kept.len() <= set.len() {
                std::mem::swap(&mut kept, &mut set);
            }
            set.retain(|key, _| kept.contains_key(key));
        }
        common = Some(set);
    }
    Ok(to_array(common.unwrap_or_default()))
}
