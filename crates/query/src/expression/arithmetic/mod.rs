//! Numbers: one file each operator, listed in order of name.

use super::operator::Operator;

mod abs;
mod add;
mod ceil;
mod divide;
mod exp;
mod floor;
mod ln;
mod log;
mod log10;
mod modulo;
mod multiply;
mod places;
mod pow;
mod round;
mod sqrt;
mod subtract;
mod trunc;
pub(super) mod unary;

pub(super) static ALL: &[&Operator] = &[
    &abs::ABS,
    &add::ADD,
    &ceil::CEIL,
    &divide::DIVIDE,
    &exp::EXP,
    &floor::FLOOR,
    &ln::LN,
    &log::LOG,
    &log10::LOG10,
    &modulo::MOD,
    &multiply::MULTIPLY,
    &pow::POW,
    &round::ROUND,
    &sqrt::SQRT,
    &subtract::SUBTRACT,
    &trunc::TRUNC,
];
