//! Window functions: what `$setWindowFields` computes for a document out of its neighbours.
//!
//! One file each: a `static` [`Definition`] whose `parse` turns `{$sum: "$price", window: {documents: [-1, 1]}}` into a
//! [`Function`]. Most are a [`runner::Sliding`] state, which takes documents in at one end of the window and gives them
//! back at the other; [`runner::Windowed`] moves it. Accumulators over windows without a lower bound use the states of
//! [`crate::accumulator`].

use espalier_value::{Error, Path, RawDoc, Result, Value, ValueRef};

use crate::context::Context;
use crate::expression::{Deps, Expression, Scope, field_path};
use crate::registry::{Entry, State};
use crate::sort::Sort;

mod accumulated;
mod add_to_set;
mod arithmetic;
mod avg;
mod bottom;
mod bottom_n;
mod bounds;
mod count;
mod covariance;
mod covariance_pop;
mod covariance_samp;
mod dense_rank;
mod derivative;
mod document_number;
mod exp_moving_avg;
mod extreme;
mod first;
mod first_n;
mod integral;
mod last;
mod last_n;
mod linear_fill;
mod locf;
mod max;
mod max_n;
mod min;
mod min_n;
mod ordered;
mod over_time;
mod push;
mod rank;
mod ranking;
mod removable;
mod runner;
mod shift;
mod std_dev;
mod std_dev_pop;
mod std_dev_samp;
mod sum;
#[cfg(test)]
mod tests;
mod top;
mod top_n;

use bounds::Bounds;
pub(crate) use runner::Runner;
use runner::{Sliding, Windowed};

/// What a function's file exports.
pub(crate) struct Definition {
    /// With its `$`.
    name: &'static str,
    parse: fn(&Given<'_>) -> Result<Function>,
    /// One sentence for the compatibility table.
    doc: &'static str,
}

/// The functions in order of name.
static ALL: &[&Definition] = &[
    &add_to_set::ADD_TO_SET,
    &avg::AVG,
    &bottom::BOTTOM,
    &bottom_n::BOTTOM_N,
    &count::COUNT,
    &covariance_pop::COVARIANCE_POP,
    &covariance_samp::COVARIANCE_SAMP,
    &dense_rank::DENSE_RANK,
    &derivative::DERIVATIVE,
    &document_number::DOCUMENT_NUMBER,
    &exp_moving_avg::EXP_MOVING_AVG,
    &first::FIRST,
    &first_n::FIRST_N,
    &integral::INTEGRAL,
    &last::LAST,
    &last_n::LAST_N,
    &linear_fill::LINEAR_FILL,
    &locf::LOCF,
    &max::MAX,
    &max_n::MAX_N,
    &min::MIN,
    &min_n::MIN_N,
    &push::PUSH,
    &rank::RANK,
    &shift::SHIFT,
    &std_dev_pop::STD_DEV_POP,
    &std_dev_samp::STD_DEV_SAMP,
    &sum::SUM,
    &top::TOP,
    &top_n::TOP_N,
];

/// Makes the state of one partition.
type Start = Box<dyn Fn(&Context) -> Result<Box<dyn Runner>> + Send + Sync>;

/// A parsed function of one output field.
pub(crate) struct Function {
    name: &'static str,
    input: Expression,
    start: Start,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("name", &self.name).field("input", &self.input).finish_non_exhaustive()
    }
}

impl Function {
    /// What to evaluate for each document.
    pub fn input(&self) -> &Expression {
        &self.input
    }

    pub fn start(&self, context: &Context) -> Result<Box<dyn Runner>> {
        (self.start)(context)
    }
}

/// The value of a document in the sort field, for functions and windows that look at it.
#[derive(Debug)]
pub(crate) struct Position(Option<Path>);

impl Position {
    /// Only a sort by one field gives documents a position.
    pub fn of(sort: Option<&Sort>) -> Position {
        match sort.map(Sort::fields) {
            Some([field]) => Position(Some(field.path.clone())),
            _ => Position(None),
        }
    }

    pub fn read<'d>(&self, doc: RawDoc<'d>) -> Value<'d> {
        self.0.as_ref().map_or(Value::Missing, |path| field_path::walk(doc, path))
    }

    pub fn needs(&self, deps: &mut Deps) {
        if let Some(path) = &self.0 {
            deps.add(path.as_str());
        }
    }
}

/// What parsing a function can see.
pub(crate) struct Given<'a> {
    name: &'static str,
    argument: ValueRef<'a>,
    /// All of `{$name: argument, window: …}`.
    spec: RawDoc<'a>,
    sort: Option<&'a Sort>,
    scope: &'a Scope,
    context: &'a Context,
}

impl Given<'_> {
    /// The `window`; the whole partition if there is none. Nothing else may stand beside the function.
    fn bounds(&self) -> Result<Bounds> {
        self.only_window()?;
        match self.spec.get("window") {
            Some(window) => Bounds::parse(window, self.sort, self.scope, self.context),
            None => Ok(Bounds::ALL),
        }
    }

    fn only_window(&self) -> Result<()> {
        for elem in self.spec {
            match elem.name() {
                "window" => {}
                name if name == self.name => {}
                name if name.starts_with('$') => {
                    return Err(Error::failed_to_parse("Cannot specify two functions in window function spec"));
                }
                name => {
                    return Err(Error::failed_to_parse(format!("Window function found an unknown argument: {name}")));
                }
            }
        }
        Ok(())
    }

    /// For functions that have their own window.
    fn no_window(&self) -> Result<()> {
        self.only_window()?;
        if self.spec.get("window").is_some() {
            return Err(Error::failed_to_parse(format!("'window' field is not allowed in {}", self.name)));
        }
        Ok(())
    }

    fn expression(&self, value: ValueRef<'_>) -> Result<Expression> {
        Expression::parse(value, self.scope)
    }

    /// A function that slides over its bounds.
    fn windowed(
        &self,
        input: Expression,
        bounds: Bounds,
        takes_position: bool,
        make: impl Fn() -> Box<dyn Sliding> + Send + Sync + 'static,
    ) -> Function {
        let start = move |_: &Context| -> Result<Box<dyn Runner>> {
            Ok(Box::new(Windowed::new(bounds.clone(), make(), takes_position)))
        };
        Function { name: self.name, input, start: Box::new(start) }
    }
}

/// Parses the value of an output field.
pub(crate) fn parse(
    field: &str,
    spec: ValueRef<'_>,
    sort: Option<&Sort>,
    scope: &Scope,
    context: &Context,
) -> Result<Function> {
    let ValueRef::Document(spec) = spec else {
        return Err(Error::failed_to_parse(format!("The field '{field}' must be an object")));
    };
    let Some(elem) = spec.iter().find(|elem| elem.name().starts_with('$')) else {
        let found = spec.first().map_or(String::new(), |first| format!(", {}", first.name()));
        return Err(Error::failed_to_parse(format!("Expected a $-prefixed window function{found}")));
    };
    let Ok(at) = ALL.binary_search_by(|definition| definition.name.cmp(elem.name())) else {
        return Err(Error::failed_to_parse(format!("Unrecognized window function, {}", elem.name())));
    };
    let definition = ALL[at];
    (definition.parse)(&Given { name: definition.name, argument: elem.value(), spec, sort, scope, context })
}

/// Every window function of MongoDB 6.0.
pub fn registry() -> impl Iterator<Item = Entry> {
    ALL.iter().map(|definition| Entry { name: definition.name, state: State::Supported, doc: definition.doc })
}
