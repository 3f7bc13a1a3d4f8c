//! `configureFailPoint`: makes commands fail on purpose, for the tests of drivers. Only with `--enable-test-commands`.

use super::prelude::*;
use crate::fields;

pub(super) static COMMAND: Command = Command {
    name: "configureFailPoint",
    doc: "Makes commands fail on purpose (test servers only).",
    privilege: Privilege::Cluster(&[Action::SetParameter]),
    place: Place::Admin,
    run: configure_fail_point,
    ..Command::BASE
};

fn configure_fail_point(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    if !call.server.options.test_commands {
        return Err(Error::new(Code::CommandNotFound, "no such command: 'configureFailPoint'"));
    }
    let (mut mode, mut data) = (None, RawDoc::EMPTY);
    for field in request.fields("configureFailPoint") {
        match field.name() {
            "mode" => mode = Some(field.value()),
            "data" => data = field.doc()?.unwrap_or(RawDoc::EMPTY),
            _ => return Err(field.unknown()),
        }
    }
    let mode = mode.ok_or_else(|| fields::missing("configureFailPoint", "mode"))?;
    match request.argument {
        ValueRef::String("failCommand") => call.server.fail_points.configure(mode, data)?,
        ValueRef::String(other) => {
            return Err(Error::new(Code(266), format!("{other} not found")));
        }
        _ => return Err(Error::type_mismatch("the name of a fail point is a string")),
    }
    call.reply.append("count", 0i64);
    Ok(())
}
