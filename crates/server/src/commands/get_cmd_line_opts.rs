//! `getCmdLineOpts`: how the server was started.

use super::prelude::*;
use crate::reply::strings;

pub(super) static COMMAND: Command = Command {
    name: "getCmdLineOpts",
    doc: "Returns the command line the server was started with.",
    privilege: Privilege::Cluster(&[Action::GetCmdLineOpts]),
    place: Place::Admin,
    run: get_cmd_line_opts,
    ..Command::BASE
};

fn get_cmd_line_opts(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("getCmdLineOpts")?;
    let server = call.server;
    let options = &server.options;
    strings(&mut call.reply.array("argv"), &options.argv);
    let mut parsed = call.reply.doc("parsed");
    let local = server.local_addr();
    parsed.doc("net").append("bindIp", &local.ip().to_string()).append("port", i32::from(local.port()));
    parsed.doc("replication").append("replSet", &options.set_name);
    if options.test_commands {
        parsed.doc("setParameter").append("enableTestCommands", "1");
    }
    parsed.doc("storage").append("dbPath", &options.data);
    Ok(())
}
