//! `killCursors`: closes cursors that are no longer needed.

use super::get_more;
use super::prelude::*;
use crate::auth::names::UserName;
use crate::cursors::Killed;
use crate::fields;

pub(super) static COMMAND: Command = Command {
    name: "killCursors",
    doc: "Closes cursors.",
    privilege: Privilege::Asked {
        doc: "any user, for cursors that it opened itself; `killAnyCursor` on the cluster for others",
        may,
    },
    stable: true,
    run: kill_cursors,
    ..Command::BASE
};

/// That the cursors are the client's own is checked one by one.
fn may(_: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated()
}

fn kill_cursors(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut cursors = None;
    for field in request.fields("killCursors") {
        match field.name() {
            "cursors" => cursors = field.array()?,
            _ => return Err(field.unknown()),
        }
    }
    match request.argument {
        ValueRef::String(collection) => drop(get_more::cursor_namespace(request.db, collection)?),
        _ => drop(request.namespace()?),
    }
    let cursors = cursors.ok_or_else(|| fields::missing("killCursors", "cursors"))?;
    let ids = cursors.elems().map(|elem| match elem.value() {
        ValueRef::Int64(id) => Ok(id),
        other => Err(Error::type_mismatch(format!(
            "BSON field 'killCursors.cursors.{}' is the wrong type '{}', expected type 'long'",
            elem.name(),
            other.ty().name()
        ))),
    });
    let ids = ids.collect::<Result<Vec<i64>>>()?;
    let may =
        |owners: &[UserName]| call.rights.shares_user_with(owners) || call.rights.on_cluster(Action::KillAnyCursor);
    if ids.iter().filter_map(|id| call.server.cursors.owners(*id)).any(|owners| !may(&owners)) {
        return Err(Error::new(Code::Unauthorized, "not authorized to kill a cursor of another user"));
    }
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in ids {
        match call.server.cursors.kill(id) {
            Killed::Killed => killed.push(id),
            Killed::NotFound => not_found.push(id),
        }
    }
    call.server.wake_all();
    for (name, list) in [
        ("cursorsKilled", killed),
        ("cursorsNotFound", not_found),
        ("cursorsAlive", vec![]),
        ("cursorsUnknown", vec![]),
    ] {
        let mut array = call.reply.array(name);
        list.into_iter().for_each(|id| {
            array.push(id);
        });
    }
    Ok(())
}
