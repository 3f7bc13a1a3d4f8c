//! Accumulators as window functions: over a window that only grows with the state that `$group` uses, over a window
//! that loses documents with a state that gives them back.

use espalier_value::{RawDoc, Result, Value};

use super::bounds::Bounds;
use super::runner::{Item, Runner, Sliding, Window, Windowed};
use super::{Function, Given};
use crate::accumulator::{self, Accumulator, State};
use crate::context::Context;

/// A function that has an accumulator's name and argument. `sliding` makes the state that gives documents back, for
/// the accumulator's `n`.
pub(super) fn parse(given: &Given<'_>, sliding: fn(usize, &Context) -> Box<dyn Sliding>) -> Result<Function> {
    let bounds = given.bounds()?;
    over(given, bounds, sliding)
}

fn over(given: &Given<'_>, bounds: Bounds, sliding: fn(usize, &Context) -> Box<dyn Sliding>) -> Result<Function> {
    let mut spec = accumulator::parse_argument(given.name, given.argument, given.scope)?;
    let input = spec.take_expression();
    let start = move |context: &Context| -> Result<Box<dyn Runner>> {
        let function: Box<dyn Sliding> = if bounds.is_left_unbounded() {
            Box::new(Growing(spec.make(RawDoc::EMPTY, context)?))
        } else {
            sliding(spec.count(RawDoc::EMPTY, context)?, context)
        };
        Ok(Box::new(Windowed::new(bounds.clone(), function, false)))
    };
    Ok(Function { name: given.name, input, start: Box::new(start) })
}

struct Growing(State);

impl Sliding for Growing {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        self.0.push(item.value())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(self.0.peek())
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}
