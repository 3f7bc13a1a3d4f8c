//! What an operator's file needs.

pub(super) use espalier_value::decimal::Rounding;
pub(super) use espalier_value::number::Number;
pub(super) use espalier_value::{
    ArrayBuf, Code, Collation, Collator, Decimal128, DocBuf, Error, RawArray, RawDoc, Result, Type, Value, ValueRef,
};

pub(super) use super::env::Env;
pub(super) use super::given::Given;
pub(super) use super::node::{Custom, Node};
pub(super) use super::operator::{Args, Eval, Field, Named, Operator, check_count, object_argument, part, type_name};
pub(super) use super::parse::{list, operand};
pub(super) use super::scope::{Scope, validate_name_to_define};
pub(super) use super::{compare_values, truthy, truthy_ref};

/// An error with a code that has no name.
pub(super) fn refuse<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code(code), message))
}
