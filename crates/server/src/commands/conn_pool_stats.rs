//! `connPoolStats`: this server keeps no connections to others.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "connPoolStats",
    doc: "Describes the connections to other servers.",
    privilege: Privilege::Cluster(&[Action::ConnPoolStats]),
    run: conn_pool_stats,
    ..Command::BASE
};

fn conn_pool_stats(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let reply = &mut call.reply;
    for name in ["numClientConnections", "numAScopedConnections", "totalInUse", "totalAvailable", "totalCreated"] {
        reply.append(name, 0);
    }
    reply.append("totalRefreshing", 0).append("totalRefreshed", 0);
    for name in ["pools", "hosts", "replicaSets"] {
        reply.doc(name);
    }
    Ok(())
}
