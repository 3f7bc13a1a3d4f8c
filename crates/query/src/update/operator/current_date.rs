//! `$currentDate` sets a field to the time of the command: a date for `true`, `false` or `{$type: "date"}`, a
//! timestamp for `{$type: "timestamp"}`.

use espalier_value::{Error, RawDoc, Result, ValueRef};

use super::{Argument, Definition, Operator, Outcome, Slot};
use crate::update::timestamp;

pub(super) static CURRENT_DATE: Definition =
    Definition { name: "$currentDate", doc: "Sets a field to the current time, as a date or a timestamp.", parse };

#[derive(Debug)]
enum CurrentDate {
    Date,
    Timestamp,
}

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let kind = match argument.value {
        ValueRef::Bool(_) => CurrentDate::Date,
        ValueRef::Document(options) => parse_options(options)?,
        other => {
            let ty = other.ty().name();
            return Err(Error::bad_value(format!(
                "{ty} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression \
                 ({{$type: 'timestamp/date'}})."
            )));
        }
    };
    Ok(Box::new(kind))
}

fn parse_options(options: RawDoc<'_>) -> Result<CurrentDate> {
    let mut kind = None;
    for option in options {
        match (option.name(), option.value()) {
            ("$type", ValueRef::String("date")) => kind = Some(CurrentDate::Date),
            ("$type", ValueRef::String("timestamp")) => kind = Some(CurrentDate::Timestamp),
            ("$type", _) => return Err(bad_type()),
            (name, _) => return Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}"))),
        }
    }
    kind.ok_or_else(bad_type)
}

fn bad_type() -> Error {
    Error::bad_value(
        "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
    )
}

impl Operator for CurrentDate {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let now = match self {
            CurrentDate::Date => ValueRef::DateTime(slot.context.now_ms),
            CurrentDate::Timestamp => ValueRef::Timestamp(timestamp(slot.context)),
        };
        Ok(Outcome::Replace(now.into()))
    }
}
