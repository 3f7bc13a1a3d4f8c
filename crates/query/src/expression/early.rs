//! What MongoDB evaluates before the first document, where it is not simply every call with constant arguments.

use espalier_value::{Code, Error, Result, ValueRef};

use super::node::Node;

/// Whether a call with constant arguments is evaluated early. A custom operator says so itself.
pub(super) fn is_folded(operator: &str) -> bool {
    const NOT: [&str; 2] = ["$replaceAll", "$replaceOne"];
    !NOT.contains(&operator) && are_operands_folded(operator)
}

/// Whether the arguments themselves are.
pub(super) fn are_operands_folded(operator: &str) -> bool {
    const NOT: [&str; 7] = ["$firstN", "$getField", "$lastN", "$maxN", "$minN", "$setField", "$unsetField"];
    !NOT.contains(&operator)
}

/// Refuses a constant argument that can never be right, though others are not constant.
pub(super) fn check(operator: &str, args: &[Node]) -> Result<()> {
    let wrong = |at: usize| match args.get(at) {
        Some(Node::Literal(value)) if !matches!(value.as_ref(), Some(ValueRef::Array(_))) => Some(value),
        _ => None,
    };
    match operator {
        "$indexOfArray" => match wrong(0) {
            Some(value) if !value.is_nullish() => {
                Err(Error::new(Code(50809), "First operand of $indexOfArray must be an array"))
            }
            _ => Ok(()),
        },
        "$setIsSubset" if wrong(1).is_some() => {
            Err(Error::new(Code(17311), "both operands of $setIsSubset must be arrays"))
        }
        _ => Ok(()),
    }
}
