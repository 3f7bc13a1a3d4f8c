//! `getLog`: the last lines of the log, and the warnings of the start.

use super::prelude::*;
use crate::reply::strings;

pub(super) static COMMAND: Command = Command {
    name: "getLog",
    doc: "Returns the last lines of the server's log.",
    privilege: Privilege::Cluster(&[Action::GetLog]),
    place: Place::Admin,
    run: get_log,
    ..Command::BASE
};

fn get_log(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("getLog")?;
    let ValueRef::String(name) = request.argument else {
        let found = request.argument.ty().name();
        let message = format!("BSON field 'getLog.getLog' is the wrong type '{found}', expected type 'string'");
        return Err(Error::type_mismatch(message));
    };
    let log = &call.server.log;
    let (total, lines) = match name {
        "*" => {
            strings(&mut call.reply.array("names"), ["global", "startupWarnings"]);
            return Ok(());
        }
        "global" => log.recent(),
        "startupWarnings" => {
            let warnings = log.startup_warnings();
            (warnings.len() as u64, warnings)
        }
        other => return Err(Error::new(Code::OperationFailed, format!("No log named '{other}'"))),
    };
    call.reply.append_count("totalLinesWritten", total);
    strings(&mut call.reply.array("log"), lines);
    Ok(())
}
