//! The standard deviation of a sliding window: the sum of squared distances is corrected for each number that comes
//! or goes, by the formula MongoDB uses, so that both round alike.

use espalier_value::number::Number;
use espalier_value::{Result, Value};

use super::removable::RemovableSum;
use super::runner::{Item, Sliding, Window};
use crate::accumulator::summation::Sum;

pub(super) struct StdDev {
    of_sample: bool,
    sum: RemovableSum,
    count: i64,
    /// Kept with compensation, so that what comes and goes leaves no trace.
    squares: Sum,
    not_finite: i64,
}

impl StdDev {
    pub fn new(of_sample: bool) -> StdDev {
        StdDev { of_sample, sum: RemovableSum::default(), count: 0, squares: Sum::default(), not_finite: 0 }
    }

    fn update(&mut self, item: &Item, quantity: i64) {
        let Some(number) = item.value().and_then(Number::of) else { return };
        let is_finite = match number {
            Number::Double(x) => x.is_finite(),
            Number::Decimal(x) => x.is_finite(),
            _ => true,
        };
        if !is_finite {
            self.not_finite += quantity;
            self.count += quantity;
            return;
        }
        if self.count == 0 {
            self.count = 1;
            self.sum.add(number);
            return;
        }
        if self.count + quantity == 0 {
            *self = StdDev::new(self.of_sample);
            return;
        }
        let distance = self.count as f64 * number.to_f64() - self.sum.total().to_f64();
        self.count += quantity;
        if quantity > 0 {
            self.sum.add(number);
        } else {
            self.sum.remove(number);
        }
        let part = (distance * distance * quantity as f64) / (self.count as f64 * (self.count - quantity) as f64);
        self.squares.add(Number::Double(part));
    }
}

impl Sliding for StdDev {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        self.update(item, 1);
        Ok(())
    }

    fn remove(&mut self, _at: u64, item: &Item) -> Result<()> {
        self.update(item, -1);
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        let divisor = self.count - i64::from(self.of_sample);
        if self.not_finite > 0 || divisor == 0 {
            return Ok(Value::NULL);
        }
        // A sample of nothing has a divisor of -1, and MongoDB gives -0.0 for it.
        let variance = self.squares.double() / divisor as f64;
        if variance < 0.0 || (!self.of_sample && self.count == 1) {
            return Ok(0.into());
        }
        Ok(variance.sqrt().into())
    }
}
