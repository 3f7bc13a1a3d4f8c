//! `$sortArray`: The elements of an array in order, by themselves or by their fields.

use super::super::prelude::*;

pub(super) static SORT_ARRAY: Operator = Operator {
    name: "$sortArray",
    args: Args::Any,
    eval: Eval::Special(parse),
    doc: "The elements of an array in order, by themselves or by their fields.",
};

use std::sync::Arc;

use crate::sort::Sort;

static NAMED: Named = Named {
    fields: &[Field::required("input", 2942502), Field::required("sortBy", 2942503)],
    not_object: 2942500,
    unknown: 2942501,
};

#[derive(Debug)]
struct SortArray {
    input: Node,
    by: By,
}

#[derive(Debug)]
enum By {
    Itself { descending: bool, collation: Option<Arc<Collation>> },
    Fields(Sort),
}

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let given = NAMED.split("$sortArray", argument)?;
    let [Some(input), Some(by)] = given[..] else {
        return Err(Error::internal("a required argument of $sortArray is not there"));
    };
    let by = match by {
        ValueRef::Document(doc) => {
            let sort = Sort::parse(doc, scope).map_err(|e| Error::new(Code(2942505), e.message()))?;
            match sort {
                Some(sort) => By::Fields(sort),
                None => return refuse(2942505, "The sort pattern is empty when it should be a set of fields."),
            }
        }
        _ => match Number::of(by).map(Number::as_exact_i64) {
            Some(Some(n @ (1 | -1))) => By::Itself { descending: n < 0, collation: scope.collation().clone() },
            Some(_) => return refuse(2942506, "The $sort element value must be either 1 or -1"),
            None => {
                return refuse(
                    2942507,
                    "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
                );
            }
        },
    };
    Ok(Node::custom(SortArray { input: operand(input, scope)?, by }))
}

impl Custom for SortArray {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(env)?;
        let array = match input.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                let found = other.ty().name();
                return refuse(
                    2942504,
                    format!("The input argument to $sortArray must be an array, but was of type: {found}"),
                );
            }
        };
        let mut values: Vec<_> = array.iter().collect();
        match &self.by {
            By::Itself { descending, collation } => {
                let collator = Collator::of(collation);
                values.sort_by(|&a, &b| if *descending { collator.compare(b, a) } else { collator.compare(a, b) });
            }
            By::Fields(sort) => {
                let mut keyed = Vec::with_capacity(values.len());
                for value in values {
                    let mut key = Vec::new();
                    // What is no document has no fields, and sorts where they are missing.
                    sort.key(value.as_doc().unwrap_or(RawDoc::EMPTY), &mut key)?;
                    keyed.push((key, value));
                }
                keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
                values = keyed.into_iter().map(|(_, value)| value).collect();
            }
        }
        Ok(Value::array(values.into_iter().collect()))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        visit(&self.input);
    }
}
