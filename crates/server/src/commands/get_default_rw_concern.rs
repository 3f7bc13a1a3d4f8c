//! `getDefaultRWConcern`: what a client gets that does not say.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "getDefaultRWConcern",
    doc: "Returns the default read and write concern.",
    privilege: Privilege::Cluster(&[Action::GetDefaultRwConcern]),
    place: Place::Admin,
    run: get_default_rw_concern,
    ..Command::BASE
};

fn get_default_rw_concern(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    for field in request.fields("getDefaultRWConcern") {
        match field.name() {
            "inMemory" => {
                field.bool()?;
            }
            _ => return Err(field.unknown()),
        }
    }
    call.reply.doc("defaultReadConcern").append("level", "local");
    call.reply.doc("defaultWriteConcern").append("w", "majority").append("wtimeout", 0);
    call.reply.append("defaultWriteConcernSource", "implicit").append("defaultReadConcernSource", "implicit");
    let now = call.now_ms;
    call.reply.append_date("localUpdateWallClockTime", now);
    Ok(())
}
