//! Arrays as sets: one file each operator, listed in order of name.

use super::operator::Operator;

mod all_elements_true;
mod any_element_true;
mod members;
mod set_difference;
mod set_equals;
mod set_intersection;
mod set_is_subset;
mod set_union;

pub(super) static ALL: &[&Operator] = &[
    &all_elements_true::ALL_ELEMENTS_TRUE,
    &any_element_true::ANY_ELEMENT_TRUE,
    &set_difference::SET_DIFFERENCE,
    &set_equals::SET_EQUALS,
    &set_intersection::SET_INTERSECTION,
    &set_is_subset::SET_IS_SUBSET,
    &set_union::SET_UNION,
];
