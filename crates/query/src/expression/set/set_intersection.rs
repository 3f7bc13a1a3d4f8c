//! `$setIntersection`: The elements that all arrays hold, each once, in BSON order.

use super::super::prelude::*;

pub(super) static SET_INTERSECTION: Operator = Operator {
    name: "$setIntersection",
    args: Args::Commutative,
    eval: Eval::Lazy(set_intersection),
    doc: "The elements that all arrays hold, each once, in BSON order.",
};

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::members::{Members, members, to_array};

fn set_intersection<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut sets: SmallVec<[Value<'a>; 4]> = SmallVec::new();
    let mut common: Option<BTreeSet<Vec<u8>>> = None;
    for arg in args.iter() {
        let arg = arg?;
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
        // Once nothing is in common MongoDB looks no further. After the first array and after the last it is plain.
        let is_known_empty = match sets.len() {
            0 => array.is_empty(),
            n if n + 1 == args.len() => false,
            _ => {
                let first = || sets.first().and_then(|set| set.as_ref()?.as_array()).map(keys).unwrap_or_default();
                let mut both = common.take().unwrap_or_else(first);
                let here = keys(array);
                both.retain(|key| here.contains(key));
                common.insert(both).is_empty()
            }
        };
        if is_known_empty {
            return Ok(Value::array(ArrayBuf::new()));
        }
        sets.push(arg);
    }
    let mut common: Option<Members<'_>> = None;
    for array in sets.iter().filter_map(|set| set.as_ref()?.as_array()) {
        let mut set = members(array);
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

fn keys(array: RawArray<'_>) -> BTreeSet<Vec<u8>> {
    array.iter().map(espalier_value::key::of).collect()
}
