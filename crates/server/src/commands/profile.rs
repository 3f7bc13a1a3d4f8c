//! `profile`: the profiler is off; slow commands go to the log.

use espalier_value::number::Number;

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "profile",
    doc: "Shows that the profiler is off.",
    privilege: Privilege::Asked { doc: "`enableProfiler` on the database; to look, `find` on `system.profile`", may },
    run: profile,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let only_look = Number::of(request.argument).is_some_and(|level| level.to_i64_clamped() < 0)
        && ["slowms", "sampleRate", "filter"].into_iter().all(|option| request.body.get(option).is_none());
    rights.on_database(request.db, Action::EnableProfiler)
        || only_look && rights.on_namespace(request.db, "system.profile", Action::Find)
}

fn profile(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    for field in request.fields("profile") {
        match field.name() {
            "slowms" | "sampleRate" | "filter" => {}
            _ => return Err(field.unknown()),
        }
    }
    if Number::of(request.argument).is_some_and(|level| level.to_i64_clamped() > 0) {
        let message = "the profiler is not supported yet: slow commands are in the log (see --slow-ms and getLog)";
        return Err(Error::new(Code::CommandNotSupported, message));
    }
    let slow = call.server.options.limits.slow_ms;
    call.reply.append("was", 0).append_count("slowms", slow).append("sampleRate", 1.0);
    Ok(())
}
