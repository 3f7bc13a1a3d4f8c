//! `shutdown`: ends the server in good order.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "shutdown",
    doc: "Ends the server.",
    privilege: Privilege::Cluster(&[Action::Shutdown]),
    place: Place::Admin,
    run: shutdown,
    ..Command::BASE
};

fn shutdown(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    for field in request.fields("shutdown") {
        match field.name() {
            "force" => {
                field.bool_or_number()?;
            }
            "timeoutSecs" => {
                field.long()?;
            }
            _ => return Err(field.unknown()),
        }
    }
    call.server.log.info("control", "shutdown was asked for by a client", &[("peer", &call.client.peer)]);
    call.close = true;
    call.server.want_stop();
    Ok(())
}
