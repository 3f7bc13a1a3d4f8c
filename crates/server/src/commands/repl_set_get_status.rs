//! `replSetGetStatus`: the state of the replica set, which has one member: this server.

use super::hello::member_address;
use super::prelude::*;
use crate::reply::DocWriter;

pub(super) static COMMAND: Command = Command {
    name: "replSetGetStatus",
    doc: "Describes the state of the replica set.",
    privilege: Privilege::Cluster(&[Action::ReplSetGetStatus]),
    place: Place::Admin,
    run: repl_set_get_status,
    ..Command::BASE
};

fn repl_set_get_status(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let status = crate::reply::build(|doc| write(call, doc));
    call.reply.append_fields(status.as_raw());
    Ok(())
}

pub(super) fn write(call: &Call<'_>, reply: &mut DocWriter<'_>) {
    let server = call.server;
    let me = member_address(call);
    let time = server.clock.time();
    let wall = ((time >> 32) as i64).saturating_mul(1000);
    let now = call.now_ms;
    reply.append("set", &server.options.set_name).append_date("date", now);
    reply.append("myState", 1).append("term", 1i64).append("syncSourceHost", "").append("syncSourceId", -1);
    reply.append("heartbeatIntervalMillis", 2000i64);
    for name in ["majorityVoteCount", "writeMajorityCount", "votingMembersCount", "writableVotingMembersCount"] {
        reply.append(name, 1);
    }
    {
        let mut optimes = reply.doc("optimes");
        for name in ["lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"] {
            optimes.doc(name).append_timestamp("ts", time).append("t", 1i64);
        }
        for name in ["lastCommittedWallTime", "lastAppliedWallTime", "lastDurableWallTime"] {
            optimes.append_date(name, wall);
        }
    }
    let mut members = reply.array("members");
    let mut member = members.push_doc();
    member.append("_id", 0).append("name", &me).append("health", 1.0);
    member.append("state", 1).append("stateStr", "PRIMARY");
    member.append("uptime", i32::try_from(server.clock.uptime_ms() / 1000).unwrap_or(i32::MAX));
    member.doc("optime").append_timestamp("ts", time).append("t", 1i64);
    member.append_date("optimeDate", wall);
    member.append("syncSourceHost", "").append("syncSourceId", -1).append("infoMessage", "");
    let started = server.clock.started_ms();
    member.append_timestamp("electionTime", (started / 1000) as u64 * (1 << 32) + 1);
    member.append_date("electionDate", started);
    member.append("configVersion", 1).append("configTerm", 1).append("self", true);
    member.append("lastHeartbeatMessage", "");
}
