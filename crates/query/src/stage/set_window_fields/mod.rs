//! `$setWindowFields` computes fields over windows of neighbouring documents.
//!
//! Parsed into a sort by partition and `sortBy`, which a store may answer from an index, and the stage itself, which
//! reads the sorted documents once: each goes to the window functions, waits in a [`queue::DocQueue`] until all of them
//! know their value for it, and leaves with the values set.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use super::sort::SortStage;
use super::{Definition, Parse, Parser, Run, Stage, Stages};
use crate::expression::{Deps, Expression, Scope};
use crate::projection::Projection;
use crate::sort::Sort;
use crate::stream::Stream;
use crate::window::{self, Function, Position};

mod partition;
mod partition_sort;
mod queue;
mod windowing;

pub(super) static SET_WINDOW_FIELDS: Definition = Definition {
    name: "$setWindowFields",
    parse: Parse::Stage(parse),
    doc: "Computes fields over windows of neighbouring documents.",
};

#[derive(Debug)]
struct SetWindowFields {
    partition_by: Option<Arc<Expression>>,
    position: Position,
    functions: Vec<Function>,
    /// Sets each output field to the variable of its function.
    output: Projection,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(spec) = argument else {
        let found = argument.ty().name();
        let message = format!("the $setWindowFields stage specification must be an object, found {found}");
        return Err(Error::failed_to_parse(message));
    };
    let document = |name: &str, value: ValueRef<'_>| {
        let found = value.ty().name();
        let message =
            format!("BSON field '$setWindowFields.{name}' is the wrong type '{found}', expected type 'object'");
        Err(Error::type_mismatch(message))
    };
    let (mut partition_by, mut sort_by, mut output) = (None, None, None);
    for elem in spec {
        match (elem.name(), elem.value()) {
            ("partitionBy", value) => partition_by = Some(value),
            ("sortBy", ValueRef::Document(by)) => sort_by = Some(by),
            ("sortBy", ValueRef::Null) => sort_by = None,
            ("output", ValueRef::Document(fields)) => output = Some(fields),
            (name @ ("sortBy" | "output"), value) => return document(name, value),
            (other, _) => {
                let message = format!("BSON field '$setWindowFields.{other}' is an unknown field.");
                return Err(Error::new(Code(40415), message));
            }
        }
    }
    let Some(output) = output else {
        let message = "BSON field '$setWindowFields.output' is missing but a required field";
        return Err(Error::new(Code(40414), message));
    };
    let partition_by = partition_by.map(|value| Expression::parse(value, parser.scope)).transpose()?;
    let sort = sort_by.map(|by| Sort::parse(by, parser.scope)).transpose()?.flatten();
    stages(partition_by, sort, output, parser)
}

/// The stages for a specification whose parts are parsed; `output` is still to be.
pub(super) fn stages(
    partition_by: Option<Expression>,
    sort: Option<Sort>,
    output: RawDoc<'_>,
    parser: &Parser<'_>,
) -> Result<Stages> {
    let functions = output
        .iter()
        .map(|elem| {
            crate::expression::field_path::parse(elem.name())?;
            window::parse(elem.name(), elem.value(), sort.as_ref(), parser.scope, parser.context)
        })
        .collect::<Result<Vec<_>>>()?;
    let output = setting(output)?;
    // A constant puts everything into one partition; it cannot be an array all the same.
    let partition_by = match partition_by {
        Some(by) if by.is_constant() => {
            if let Some(value) = by.as_constant() {
                partition::check(value)?;
            }
            None
        }
        other => other.map(Arc::new),
    };
    let position = Position::of(sort.as_ref());
    let mut stages: Stages = Vec::new();
    match (&partition_by, sort) {
        (None, None) => {}
        (None, Some(sort)) => stages.push(Arc::new(SortStage::new(sort))),
        (Some(by), sort) => match by.as_field_path().map(|path| by_path(path, sort.as_ref(), parser.scope)) {
            Some(sort) => stages.push(Arc::new(SortStage::new(sort?))),
            None => stages.push(Arc::new(partition_sort::PartitionSort { by: by.clone(), sort })),
        },
    }
    stages.push(Arc::new(SetWindowFields { partition_by, position, functions, output }));
    Ok(stages)
}

/// The order by a path and then by a sort.
fn by_path(path: &Path, sort: Option<&Sort>, scope: &Scope) -> Result<Sort> {
    let mut spec = DocBuf::new();
    spec.append(path.as_str(), 1);
    // What comes again further behind decides nothing.
    let others = sort.iter().flat_map(|sort| sort.fields()).filter(|field| field.path.as_str() != path.as_str());
    for field in others {
        spec.append(field.path.as_str(), if field.descending { -1 } else { 1 });
    }
    Sort::parse(spec.as_raw(), scope)?.ok_or_else(|| Error::internal("a sort by one field is a sort"))
}

/// The projection that sets each field to the variable of its function.
fn setting(output: RawDoc<'_>) -> Result<Projection> {
    let mut spec = DocBuf::new();
    let mut scope = Scope::default();
    for (at, elem) in output.iter().enumerate() {
        let variable = format!("w{at}");
        spec.append(elem.name(), &format!("$${variable}"));
        scope = scope.with(&variable);
    }
    Projection::parse_add_fields(spec.as_raw(), &scope).map_err(|error| match error.code() {
        Code(40176 | 31249 | 31250) => {
            let message = "$setWindowFields 'output' specification contains two conflicting paths";
            Error::new(Code(6307900), message)
        }
        _ => error,
    })
}

impl Stage for SetWindowFields {
    fn name(&self) -> &'static str {
        SET_WINDOW_FIELDS.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(windowing::Windowing::new(self, input, run)))
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        if let Some(by) = &self.partition_by {
            needs.merge(&by.dependencies());
        }
        self.position.needs(&mut needs);
        self.functions.iter().for_each(|function| needs.merge(&function.input().dependencies()));
        needs
    }
}
