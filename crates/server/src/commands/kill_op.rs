//! `killOp`: asks a running command to end, or work that the store does in the background.

use espalier_value::number::Number;

use super::prelude::*;
use crate::auth::names::UserName;

pub(super) static COMMAND: Command = Command {
    name: "killOp",
    doc: "Ends a running command.",
    privilege: Privilege::Asked { doc: "any user, for its own operations; `killop` on the cluster for others", may },
    place: Place::Admin,
    run: kill_op,
    ..Command::BASE
};

/// That the operation is the client's own is checked when it is found.
fn may(_: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated()
}

fn kill_op(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut op = None;
    for field in request.fields("killOp") {
        if field.name() == "op" {
            let found = field.value().ty().name();
            let wrong =
                || Error::type_mismatch(format!("Expected field \"op\" to have numeric type, but found {found}"));
            op = Some(Number::of(field.value()).ok_or_else(wrong)?.to_i64_clamped());
        }
    }
    let op = op.ok_or_else(|| Error::new(Code::NoSuchKey, "Missing expected field \"op\""))?;
    if let Ok(op) = u64::try_from(op) {
        let rights = &call.rights;
        let may = |owners: &[UserName]| rights.on_cluster(Action::Killop) || rights.shares_user_with(owners);
        if !call.server.clients.kill(op, may) {
            let message = "not authorized to kill an operation of another user";
            return Err(Error::new(Code::Unauthorized, message));
        }
        call.server.wake_all();
        // Jobs are nobody's own.
        if rights.on_cluster(Action::Killop) {
            call.server.store.kill_job(op);
        }
    }
    call.reply.append("info", "attempting to kill op");
    Ok(())
}
