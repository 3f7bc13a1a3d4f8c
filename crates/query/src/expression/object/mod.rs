//! Documents: one file each operator, listed in order of name.

use super::operator::Operator;

mod field_name;
mod get_field;
mod merge_objects;
mod object_to_array;
mod set_field;
mod unset_field;

pub(super) static ALL: &[&Operator] = &[
    &get_field::GET_FIELD,
    &merge_objects::MERGE_OBJECTS,
    &object_to_array::OBJECT_TO_ARRAY,
    &set_field::SET_FIELD,
    &unset_field::UNSET_FIELD,
];
