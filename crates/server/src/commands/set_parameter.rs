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
        let Some(parameter) = parameters::find(field.name()) else {
            let message =
                format!("attempted to set unrecognized parameter [{}], use help:true to see options ", field.name());
            return Err(Error::new(Code::OK, message));
        };
        if !parameter.settable {
            let message = format!("not allowed to change [{}] at runtime", field.name());
            return Err(Error::new(Code::OK, message));
        }
        wanted.push((parameter, field.value()));
    }
    if wanted.is_empty() {
        return Err(Error::new(Code::OK, "no option found to set, use help:true to see options "));
    }
    for (i, (parameter, value)) in wanted.into_iter().enumerate() {
        let was = call.server.parameters.set(call.server, parameter, value)?;
        if i == 0 {
            call.reply.append_value("was", &was);
        }
    }
    Ok(())
}
