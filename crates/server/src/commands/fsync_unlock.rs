//! `fsyncUnlock`: lets writes through again after `fsync` with `lock`.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "fsyncUnlock",
    doc: "Lets writes through again.",
    privilege: Privilege::Cluster(&[Action::Unlock]),
    place: Place::Admin,
    run: fsync_unlock,
    ..Command::BASE
};

fn fsync_unlock(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("fsyncUnlock")?;
    let Some(left) = call.server.fsync_locks.unlock() else {
        return Err(Error::new(Code::OK, "fsyncUnlock called when not locked"));
    };
    call.reply.append("info", "fsyncUnlock completed").append_long("lockCount", left);
    Ok(())
}
