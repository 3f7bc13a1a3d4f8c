//! `killOp`: asks a running command to end.

use espalier_value::number::Number;

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "killOp",
    doc: "Ends a running command.",
    privilege: Privilege::Server,
    place: Place::Admin,
    run: kill_op,
    ..Command::BASE
};

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
        call.server.clients.kill(op);
        call.server.notifier.wake_all();
    }
    call.reply.append("info", "attempting to kill op");
    Ok(())
}
