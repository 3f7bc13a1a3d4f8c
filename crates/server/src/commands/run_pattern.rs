//! `runPattern`: does at once what the patterns of a collection do from time to time, and says what was done. MongoDB
//! has no such command.

use std::sync::Arc;

use super::prelude::*;
use crate::write_batch::{check_writable, wait_for_writes_allowed};

pub(super) static COMMAND: Command = Command {
    name: "runPattern",
    doc: "Does at once what the patterns of a collection do from time to time: moves what is due to the archive.",
    privilege: Privilege::Collection(&[Action::CollMod]),
    run: run_pattern,
    ..Command::BASE
};

fn run_pattern(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("runPattern")?;
    let ns = request.namespace()?;
    check_writable(&ns, call)?;
    wait_for_writes_allowed(call)?;
    if call.begin_plain()?.collection(&ns)?.is_none() {
        return Err(Error::new(Code::NamespaceNotFound, "ns does not exist"));
    }
    let Some(report) = call.server.store.run_pattern(&ns, &Arc::new(call.context()))? else {
        let message =
            format!("{ns} has no pattern that does something from time to time, as 'archive' and 'approximate' do");
        return Err(Error::new(Code::IllegalOperation, message));
    };
    call.reply.append("ns", &ns.to_string());
    call.reply.append_fields(report.as_raw());
    Ok(())
}
