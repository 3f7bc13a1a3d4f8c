//! What the functions of one angle or number share: the domain, and evaluation on doubles or decimals.
//!
//! Decimals are computed in binary with 256 bits, more than twice what their 34 digits need, and rounded once.

use std::cell::RefCell;

use astro_float_num::{BigFloat, Consts, Radix, RoundingMode};

use super::super::arithmetic::unary::real;
use super::super::prelude::*;

/// A function of one number.
pub(super) struct Function {
    pub name: &'static str,
    pub double: fn(f64) -> f64,
    pub decimal: fn(&BigFloat, &mut Consts) -> BigFloat,
    /// The decimal result for zero, where it is exact.
    pub at_zero: AtZero,
    pub domain: Domain,
}

/// What MongoDB answers for a decimal zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AtZero {
    /// The zero itself.
    Itself,
    /// A zero with 40 places.
    Padded,
    /// A one with all its 34 digits.
    One,
    /// Nothing in particular.
    Computed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    All,
    Finite,
    /// From -1 to 1.
    Unit,
    /// From 1 on.
    FromOne,
}

pub(super) const PRECISION: usize = 256;
pub(super) const NEAREST: RoundingMode = RoundingMode::ToEven;

thread_local! {
    /// Digits of pi and the like, computed when first needed; `None` if there was no memory for them.
    static CONSTS: RefCell<Option<Consts>> = RefCell::new(Consts::new().ok());
}

impl Function {
    pub fn eval<'a>(&self, value: &Value<'_>) -> Result<Value<'a>> {
        real(
            self.name,
            value,
            |x| {
                if self.holds(x.is_finite(), |n| x.partial_cmp(&n.into()), x.is_nan()) {
                    Ok((self.double)(x))
                } else {
                    self.outside(x)
                }
            },
            |x| {
                if !self.holds(x.is_finite(), |n| Some(x.cmp_i64(n.into())), x.is_nan()) {
                    return self.outside(x);
                }
                self.eval_decimal(x)
            },
        )
    }

    fn holds(&self, finite: bool, compare: impl Fn(i32) -> Option<std::cmp::Ordering>, nan: bool) -> bool {
        nan || match self.domain {
            Domain::All => true,
            Domain::Finite => finite,
            Domain::Unit => compare(-1).is_some_and(|o| o.is_ge()) && compare(1).is_some_and(|o| o.is_le()),
            Domain::FromOne => compare(1).is_some_and(|o| o.is_ge()),
        }
    }

    fn outside<T>(&self, x: impl std::fmt::Display) -> Result<T> {
        let range = match self.domain {
            Domain::Unit => "[-1,1]",
            Domain::FromOne => "[1,inf]",
            Domain::All | Domain::Finite => "(-inf,inf)",
        };
        refuse(50989, format!("cannot apply {} to {x}, value must be in {range}", self.name))
    }

    fn eval_decimal(&self, x: Decimal128) -> Result<Decimal128> {
        if x.is_nan() {
            return Ok(x);
        }
        if x.is_zero() {
            match self.at_zero {
                AtZero::Itself => return Ok(x),
                AtZero::Padded => return Ok(Decimal128::from_parts(x.is_sign_negative(), 0, -40).unwrap_or(x)),
                AtZero::One => return Ok(Decimal128::from_parts(false, 10u128.pow(33), -33).unwrap_or(Decimal128::ONE)),
                AtZero::Computed => {}
            }
        }
        with_consts(|consts| Ok(to_decimal(&(self.decimal)(&from_decimal(x, consts), consts), consts)))
    }
}

/// Runs a computation that needs the constants.
pub(super) fn with_consts<T>(run: impl FnOnce(&mut Consts) -> Result<T>) -> Result<T> {
    CONSTS.with_borrow_mut(|consts| match consts {
        Some(consts) => run(consts),
        None => Err(Error::new(Code::ExceededMemoryLimit, "no memory for the constants of decimal trigonometry")),
    })
}

pub(super) fn from_decimal(x: Decimal128, consts: &mut Consts) -> BigFloat {
    BigFloat::parse(&x.to_string(), Radix::Dec, PRECISION, NEAREST, consts)
}

/// Infinity and NaN included.
pub(super) fn to_decimal(x: &BigFloat, consts: &mut Consts) -> Decimal128 {
    if x.is_nan() {
        return Decimal128::NAN;
    }
    if x.is_inf_pos() {
        return Decimal128::INFINITY;
    }
    if x.is_inf_neg() {
        return Decimal128::NEG_INFINITY;
    }
    if x.is_zero() {
        return Decimal128::ZERO;
    }
    let text = x.format(Radix::Dec, NEAREST, consts).unwrap_or_default();
    Decimal128::parse(&text, Rounding::HalfEven).unwrap_or(Decimal128::NAN)
}
