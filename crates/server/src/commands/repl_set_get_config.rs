//! `replSetGetConfig`: the configuration of the replica set, which has one member: this server.

use super::hello::member_address;
use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "replSetGetConfig",
    doc: "Returns the configuration of the replica set.",
    privilege: Privilege::Cluster(&[Action::ReplSetGetConfig]),
    place: Place::Admin,
    run: repl_set_get_config,
    ..Command::BASE
};

fn repl_set_get_config(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let server = call.server;
    let me = member_address(call);
    let mut config = call.reply.doc("config");
    config.append("_id", &server.options.set_name).append("version", 1).append("term", 1i64);
    {
        let mut members = config.array("members");
        let mut member = members.push_doc();
        member.append("_id", 0).append("host", &me).append("arbiterOnly", false).append("buildIndexes", true);
        member.append("hidden", false).append("priority", 1.0);
        member.doc("tags");
        member.append("secondaryDelaySecs", 0i64).append("votes", 1);
    }
    config.append("protocolVersion", 1i64).append("writeConcernMajorityJournalDefault", true);
    let mut settings = config.doc("settings");
    settings.append("chainingAllowed", true).append("heartbeatIntervalMillis", 2000);
    settings.append("heartbeatTimeoutSecs", 10).append("electionTimeoutMillis", 10_000);
    settings.doc("getLastErrorModes");
    settings.doc("getLastErrorDefaults").append("w", 1).append("wtimeout", 0);
    settings.append("replicaSetId", ValueRef::ObjectId(server.process_id.0));
    Ok(())
}
