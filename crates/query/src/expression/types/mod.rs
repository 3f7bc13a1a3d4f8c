//! Types and conversion: one file each operator, listed in order of name.

use super::operator::Operator;

mod conversion;
mod convert;
mod is_number;
mod numbers;
mod single;
mod to_bool;
mod to_date;
mod to_decimal;
mod to_double;
mod to_int;
mod to_long;
mod to_object_id;
mod to_string;
mod type_of;

pub(super) static ALL: &[&Operator] = &[
    &convert::CONVERT,
    &is_number::IS_NUMBER,
    &to_bool::TO_BOOL,
    &to_date::TO_DATE,
    &to_decimal::TO_DECIMAL,
    &to_double::TO_DOUBLE,
    &to_int::TO_INT,
    &to_long::TO_LONG,
    &to_object_id::TO_OBJECT_ID,
    &to_string::TO_STRING,
    &type_of::TYPE,
];
