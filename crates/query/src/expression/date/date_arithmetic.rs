//! What `$dateAdd` and `$dateSubtract` share.

use super::super::prelude::*;
use super::unit::Unit;
use super::zone::{ZoneArg, date_ms, unless_null};

static NAMED: Named = Named {
    fields: &[
        Field::required("startDate", 5166402),
        Field::required("unit", 5166402),
        Field::required("amount", 5166402),
        Field::optional("timezone"),
    ],
    not_object: 5166400,
    unknown: 5166401,
};

#[derive(Debug)]
struct DateArithmetic {
    operator: &'static str,
    subtract: bool,
    date: Node,
    unit: Node,
    amount: Node,
    zone: ZoneArg,
}

pub(super) fn parse(operator: &'static str, subtract: bool, argument: ValueRef<'_>, scope: &Scope) -> Result<Node> {
    let mut given = NAMED.parse(operator, argument, scope)?.into_iter();
    let mut next = || given.next().flatten();
    let mut required = || next().unwrap_or(Node::NULL);
    let (date, unit, amount) = (required(), required(), required());
    Ok(Node::custom(DateArithmetic { operator, subtract, date, unit, amount, zone: ZoneArg::parse(operator, next())? }))
}

impl Custom for DateArithmetic {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let operator = self.operator;
        let Some([date, unit, amount]) = unless_null([&self.date, &self.unit, &self.amount], env)? else {
            return Ok(Value::NULL);
        };
        let Some(zone) = self.zone.eval(operator, env)? else { return Ok(Value::NULL) };
        let Some(ms) = date_ms(date.or_null()) else {
            return refuse(5166403, format!("{operator} requires startDate to be convertible to a date"));
        };
        let Some(ValueRef::String(name)) = unit.as_ref() else {
            return refuse(5166404, format!("{operator} expects string defining the time unit"));
        };
        let Some(unit) = Unit::parse(name) else {
            return Err(Error::failed_to_parse(format!("unknown time unit value: {name}")));
        };
        let Some(amount) = Number::of(amount.or_null()).and_then(Number::as_exact_i64) else {
            return refuse(5166405, format!("{operator} expects integer amount of time units"));
        };
        let amount = if self.subtract {
            match amount.checked_neg() {
                Some(amount) => amount,
                None => return refuse(6045000, format!("invalid {operator} 'amount' parameter value: {amount}")),
            }
        } else {
            amount
        };
        match unit.add(ms, amount, &zone) {
            Some(ms) => Ok(Value::Ref(ValueRef::DateTime(ms))),
            None => refuse(5976500, format!("invalid dateAdd 'amount' parameter value: {amount} {name}")),
        }
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        [&self.date, &self.unit, &self.amount].into_iter().chain(self.zone.node()).for_each(visit);
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
