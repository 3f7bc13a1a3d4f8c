//! `listCommands`: the commands this server knows.

use espalier_query::registry::State;

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "listCommands",
    doc: "Lists the supported commands with what they do.",
    privilege: Privilege::Public,
    run: list_commands,
    ..Command::BASE
};

fn list_commands(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("listCommands")?;
    let mut list = call.reply.doc("commands");
    for command in super::ALL.iter().filter(|command| command.state == State::Supported) {
        list.doc(command.name)
            .append("help", command.doc)
            .append("requiresAuth", !matches!(command.privilege, Privilege::Public))
            .append("secondaryOk", !command.writes)
            .append("adminOnly", command.place == Place::Admin);
    }
    Ok(())
}
