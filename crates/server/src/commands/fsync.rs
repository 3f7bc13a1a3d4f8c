//! `fsync`: writes out what is in memory; with `lock`, also holds all writes back until `fsyncUnlock`.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "fsync",
    doc: "Writes out what is in memory, and may hold writes back for a file copy.",
    privilege: Privilege::Cluster(&[Action::Fsync]),
    place: Place::Admin,
    run: fsync,
    ..Command::BASE
};

fn fsync(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut lock = false;
    for field in request.fields("fsync") {
        match field.name() {
            "lock" => lock = field.bool_or_number()?.unwrap_or(false),
            "async" => {
                field.bool_or_number()?;
            }
            _ => return Err(field.unknown()),
        }
    }
    let count = lock.then(|| call.server.fsync_locks.lock());
    if let Err(error) = call.server.store.flush() {
        if lock {
            call.server.fsync_locks.unlock();
        }
        return Err(error);
    }
    match count {
        Some(count) => {
            call.reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
            call.reply.append_long("lockCount", count);
        }
        None => {
            call.reply.append("numFiles", 1);
        }
    }
    Ok(())
}
