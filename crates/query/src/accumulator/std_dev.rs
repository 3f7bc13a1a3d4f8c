//! The standard deviation of doubles in one pass (Welford's method), for a population or a sample.

use espalier_value::number::Number;
use espalier_value::{DocBuf, Result, Value, ValueRef};

use super::Accumulator;

#[derive(Debug)]
pub(super) struct StdDev {
    of_sample: bool,
    count: i64,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
}

impl StdDev {
    pub fn new(of_sample: bool) -> StdDev {
        StdDev { of_sample, count: 0, mean: 0.0, squares: 0.0 }
    }
}

impl Accumulator for StdDev {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if let Some(x) = value.and_then(Number::of).map(Number::to_f64) {
            self.count += 1;
            let delta = x - self.mean;
            self.mean += delta / self.count as f64;
            self.squares += delta * (x - self.mean);
        }
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        let Some(doc) = partial.as_doc() else { return Ok(()) };
        let double = |name| doc.get(name).and_then(Number::of).map_or(0.0, Number::to_f64);
        let count = double("count");
        if count > 0.0 {
            let own = self.count as f64;
            let delta = double("mean") - self.mean;
            let total = own + count;
            self.mean = (own * self.mean + count * double("mean")) / total;
            self.squares += double("squares") + delta * delta * (own * count / total);
            self.count += count as i64;
        }
        Ok(())
    }

    fn partial(&self) -> Value<'static> {
        let mut doc = DocBuf::new();
        doc.append("count", self.count).append("mean", self.mean).append("squares", self.squares);
        Value::document(doc)
    }

    fn finish(&mut self) -> Value<'static> {
        let divisor = self.count - i64::from(self.of_sample);
        if divisor <= 0 {
            return Value::NULL;
        }
        (self.squares / divisor as f64).sqrt().into()
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }
}
