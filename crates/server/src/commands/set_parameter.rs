//! `setParameter`: changes server parameters while the server runs.

use super::prelude::*;
use crate::parameters;

pub(super) static COMMAND: Command = Command {
    name: "setParameter",
    doc: "Changes a server parameter.",
    privilege: Privilege::Cluster(&[Action::SetParameter]),
    place: Place::Admin,
    run: set_parameter,
    ..Command::BASE
};

fn set_parameter(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut wanted = Vec::new();
    for field in request.fields("setParameter") {
        if let Some(error) = parameters::without_effect(field.name()) {
            return Err(error);
        }
        let Some(parameter) = parameters::find(field.name()) else {
            let message =
                format!("attempted to set unrecognized parameter [{}], use help:true to see options ", field.name());
            return Err(Error::new(Code::OK, message));
        };
        if !parameter.is_settable() {
            let message = format!("not allowed to change [{}] at runtime", field.name());
            return Err(Error::new(Code::OK, message));
        }
        wanted.push((parameter, field.value()));
    }
    if wanted.is_empty() {
        return Err(Error::new(Code::OK, "no option found to set, use help:true to see options "));
    }
    let server = call.server;
    let first = wanted.first().map(|(parameter, _)| server.parameters.get(server, parameter));
    // All are checked before any is changed.
    let prepared = wanted.into_iter().map(|(parameter, value)| server.parameters.prepare(server, parameter, value));
    let prepared: Vec<_> = prepared.collect::<Result<_>>()?;
    prepared.into_iter().for_each(|set| set());
    if let Some(was) = first {
        call.reply.append_value("was", &was);
    }
    Ok(())
}
