//! What `$covariancePop` and `$covarianceSamp` share: the sum of the products of distances from the means, corrected
//! for each pair of numbers that comes or goes.

use espalier_value::number::Number;
use espalier_value::{Result, Value, ValueRef};

use super::arithmetic::divide;
use super::removable::RemovableSum;
use super::runner::{Item, Sliding, Window};
use super::{Function, Given};

/// Both take an expression that gives an array of two numbers; everything else is ignored.
pub(super) fn parse(given: &Given<'_>, of_sample: bool) -> Result<Function> {
    let input = given.expression(given.argument)?;
    Ok(given.windowed(input, given.bounds()?, false, move || Box::new(Covariance::new(of_sample))))
}

struct Covariance {
    of_sample: bool,
    /// Pairs of two finite numbers.
    count: i64,
    x: RemovableSum,
    y: RemovableSum,
    products: RemovableSum,
    /// Numbers that are not finite, and how many pairs have one.
    not_finite: RemovableSum,
    not_finite_count: i64,
}

impl Covariance {
    fn new(of_sample: bool) -> Covariance {
        let sum = RemovableSum::default;
        Covariance { of_sample, count: 0, x: sum(), y: sum(), products: sum(), not_finite: sum(), not_finite_count: 0 }
    }

    /// A pair's part of the sum: from the mean of x without it, and the mean of y with it.
    fn product(&self, x: Number, y: Number) -> Option<Number> {
        Some(x.sub(self.x.mean()?).mul(y.sub(self.y.mean()?)))
    }
}

fn pair(item: &Item) -> Option<(Number, Number)> {
    let Some(ValueRef::Array(array)) = item.value() else { return None };
    let mut elements = array.iter();
    match (elements.next(), elements.next(), elements.next()) {
        (Some(x), Some(y), None) => Some((Number::of(x)?, Number::of(y)?)),
        _ => None,
    }
}

fn is_finite(number: &Number) -> bool {
    match number {
        Number::Double(x) => x.is_finite(),
        Number::Decimal(x) => x.is_finite(),
        Number::Int32(_) | Number::Int64(_) => true,
    }
}

impl Sliding for Covariance {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        let Some((x, y)) = pair(item) else { return Ok(()) };
        if !is_finite(&x) || !is_finite(&y) {
            self.not_finite_count += 1;
            [x, y].into_iter().filter(|number| !is_finite(number)).for_each(|number| self.not_finite.add(number));
            return Ok(());
        }
        self.count += 1;
        self.y.add(y);
        if let Some(product) = self.product(x, y) {
            self.products.add(product);
        }
        self.x.add(x);
        Ok(())
    }

    fn remove(&mut self, _at: u64, item: &Item) -> Result<()> {
        let Some((x, y)) = pair(item) else { return Ok(()) };
        if !is_finite(&x) || !is_finite(&y) {
            self.not_finite_count -= 1;
            [x, y].into_iter().filter(|number| !is_finite(number)).for_each(|number| self.not_finite.remove(number));
            return Ok(());
        }
        self.count -= 1;
        self.x.remove(x);
        if let Some(product) = self.product(x, y) {
            self.products.remove(product);
        }
        self.y.remove(y);
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        let divisor = self.count - i64::from(self.of_sample);
        if divisor <= 0 {
            return Ok(Value::NULL);
        }
        if self.count == 1 {
            return Ok(0.0.into());
        }
        if self.not_finite_count > 0 {
            return Ok(self.not_finite.total().to_value().into());
        }
        Ok(divide(self.products.total(), Number::Double(divisor as f64)).to_value().into())
    }
}
