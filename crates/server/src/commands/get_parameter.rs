//! `getParameter`: the values of server parameters, one or all.

use espalier_value::Value;

use super::prelude::*;
use crate::parameters::{self, Parameter};

pub(super) static COMMAND: Command = Command {
    name: "getParameter",
    doc: "Returns the values of server parameters.",
    privilege: Privilege::Cluster(&[Action::GetParameter]),
    place: Place::Admin,
    run: get_parameter,
    ..Command::BASE
};

fn get_parameter(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut all, mut details) = (matches!(request.argument, ValueRef::String("*")), false);
    if let ValueRef::Document(how) = request.argument {
        for field in crate::fields::fields(how, "getParameter")? {
            match field.name() {
                "allParameters" => all = field.bool_or_number()?.unwrap_or(false),
                "showDetails" => details = field.bool_or_number()?.unwrap_or(false),
                "setAt" => {}
                _ => return Err(field.unknown()),
            }
        }
    }
    let wanted: Vec<&Parameter> = if all {
        parameters::ALL.iter().collect()
    } else {
        request.fields("getParameter").filter_map(|field| parameters::find(field.name())).collect()
    };
    if wanted.is_empty() {
        return Err(Error::new(Code::OK, "no option found to get"));
    }
    for parameter in wanted {
        let value: Value<'_> = call.server.parameters.get(call.server, parameter);
        if details {
            let mut shown = call.reply.doc(parameter.name);
            shown.append_value("value", &value);
            shown.append("settableAtRuntime", parameter.is_settable()).append("settableAtStartup", true);
        } else {
            call.reply.append_value(parameter.name, &value);
        }
    }
    Ok(())
}
