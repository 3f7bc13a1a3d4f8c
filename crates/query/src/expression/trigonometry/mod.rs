//! Trigonometry: one file each operator, listed in order of name.

use super::operator::Operator;

mod acos;
mod acosh;
mod asin;
mod asinh;
mod atan;
mod atan2;
mod atanh;
mod cos;
mod cosh;
mod degrees_to_radians;
mod function;
mod pi;
mod radians_to_degrees;
mod sin;
mod sinh;
mod tan;
mod tanh;

pub(super) static ALL: &[&Operator] = &[
    &acos::ACOS,
    &acosh::ACOSH,
    &asin::ASIN,
    &asinh::ASINH,
    &atan::ATAN,
    &atan2::ATAN2,
    &atanh::ATANH,
    &cos::COS,
    &cosh::COSH,
    &degrees_to_radians::DEGREES_TO_RADIANS,
    &radians_to_degrees::RADIANS_TO_DEGREES,
    &sin::SIN,
    &sinh::SINH,
    &tan::TAN,
    &tanh::TANH,
];
