//! `$shift`: the value of the document that stands so many places further on, or a default beyond the partition.

use espalier_value::number::Number;
use espalier_value::{Error, RawDoc, Result, Value, ValueRef};

use super::bounds::Bounds;
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given};
use crate::expression::Env;

pub(super) static SHIFT: Definition = Definition {
    name: "$shift",
    parse,
    doc: "The value of the document that stands so many places before or after this one.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    let refuse = |message: String| Err(Error::failed_to_parse(message));
    if given.sort.is_none() {
        return refuse("'$shift' requires a sortBy".into());
    }
    if given.spec.get("window").is_some() {
        return refuse("$shift does not accept a 'window' field".into());
    }
    given.only_window()?;
    let ValueRef::Document(spec) = given.argument else {
        return refuse("Argument to $shift must be an object".into());
    };
    let (mut output, mut by, mut default) = (None, None, Value::NULL);
    for elem in spec {
        let value = elem.value();
        match elem.name() {
            "output" => output = Some(given.expression(value)?),
            "by" => {
                let whole = Number::of(value).and_then(Number::as_exact_i64).and_then(|by| i32::try_from(by).ok());
                match whole {
                    Some(whole) => by = Some(i64::from(whole)),
                    None => return refuse(format!("'$shift:by' field must be an integer, but found  by: {value}")),
                }
            }
            "default" => {
                let expression = given.expression(value)?;
                if !expression.is_constant() && !expression.dependencies().is_none() {
                    return refuse("'$shift:default' expression must yield a constant value.".into());
                }
                default = expression.eval(&Env::new(RawDoc::EMPTY, given.context))?.into_owned();
            }
            _ => return refuse("Unknown argument in $shift".into()),
        }
    }
    let Some(output) = output else { return refuse("$shift requires an 'output' expression.".into()) };
    let Some(by) = by else { return refuse("$shift requires 'by' as an integer value.".into()) };
    Ok(given.windowed(output, Bounds::one(by), false, move || Box::new(Shift(default.clone()))))
}

/// The default.
struct Shift(Value<'static>);

impl Sliding for Shift {
    fn add(&mut self, _at: u64, _item: &Item) -> Result<()> {
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        Ok(window.first().map_or_else(|| self.0.clone(), |item| item.value.clone()))
    }
}
