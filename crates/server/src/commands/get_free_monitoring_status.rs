//! `getFreeMonitoringStatus`: MongoDB's free monitoring, which mongosh asks about at its start, does not exist here.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "getFreeMonitoringStatus",
    doc: "Says that free monitoring is off.",
    privilege: Privilege::Cluster(&[Action::CheckFreeMonitoringStatus]),
    place: Place::Admin,
    run: get_free_monitoring_status,
    ..Command::BASE
};

fn get_free_monitoring_status(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    call.reply.append("state", "disabled");
    Ok(())
}
