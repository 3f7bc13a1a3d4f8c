//! The state of an accumulator as one type: the frequent ones in place, the others behind a pointer. A full-scan
//! `$group` spends its time here.

use espalier_value::{Result, Value, ValueRef};

use super::Accumulator;
use super::avg::Avg;
use super::count::Count;
use super::max::Max;
use super::min::Min;
use super::sum::SumState;

#[derive(Debug)]
pub enum State {
    #[doc(hidden)]
    Sum(SumState),
    #[doc(hidden)]
    Avg(Avg),
    #[doc(hidden)]
    Min(Min),
    #[doc(hidden)]
    Max(Max),
    #[doc(hidden)]
    Count(Count),
    #[doc(hidden)]
    Other(Box<dyn Accumulator>),
}

macro_rules! each {
    ($state:expr, $inner:ident => $call:expr) => {
        match $state {
            State::Sum($inner) => $call,
            State::Avg($inner) => $call,
            State::Min($inner) => $call,
            State::Max($inner) => $call,
            State::Count($inner) => $call,
            State::Other($inner) => $call,
        }
    };
}

impl State {
    pub(super) fn other(accumulator: impl Accumulator + 'static) -> State {
        State::Other(Box::new(accumulator))
    }
}

impl Accumulator for State {
    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        each!(self, inner => inner.push(value))
    }

    fn is_full(&self) -> bool {
        matches!(self, State::Other(inner) if inner.is_full())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        each!(self, inner => inner.merge(partial))
    }

    fn partial(&self) -> Value<'static> {
        each!(self, inner => inner.partial())
    }

    fn retract(&mut self, value: Option<ValueRef<'_>>) -> bool {
        each!(self, inner => inner.retract(value))
    }

    fn finish(&mut self) -> Value<'static> {
        each!(self, inner => inner.finish())
    }

    fn peek(&mut self) -> Value<'static> {
        each!(self, inner => inner.peek())
    }

    fn memory(&self) -> usize {
        size_of::<State>() + each!(self, inner => inner.memory())
    }
}
