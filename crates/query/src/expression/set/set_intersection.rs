//! `$setIntersection`: The elements that all arrays hold, each once, in BSON order.

use super::super::prelude::*;

pub(super) static SET_INTERSECTION: Operator = Operator {
    name: "$setIntersection",
    args: Args::Commutative,
    eval: Eval::Strict(set_intersection),
    doc: "The elements that all arrays hold, each once, in BSON order.",
};

use super::members::{Members, members, to_array};

fn set_intersection<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let mut common: Option<Members<'_>> = None;
    for arg in args {
        let array = match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                let found = other.ty().name();
                let message =
                    format!("All operands of $setIntersection must be arrays. One argument is of type: {found}");
                return refuse(17047, message);
            }
        };
        let mut set = members(array);
        // Of two equal members, 1 and 1.0, the one of the smaller set stays, as in MongoDB.
        if let Some(mut kept) = common {
            if kept.len() <= set.len() {
                std::mem::swap(&mut kept, &mut set);
            }
            set.retain(|key, _| kept.contains_key(key));
        }
        if set.is_empty() {
            // MongoDB looks no further.
            return Ok(Value::array(ArrayBuf::new()));
        }
        common = Some(set);
    }
    Ok(to_array(common.unwrap_or_default()))
}
