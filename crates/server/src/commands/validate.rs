//! `validate`: checks the documents and indexes of a collection against each other, and mends indexes if asked.

use super::prelude::*;
use crate::write_batch::wait_for_writes_allowed;

pub(super) static COMMAND: Command = Command {
    name: "validate",
    doc: "Checks a collection and its indexes.",
    privilege: Privilege::Collection(&[Action::Validate]),
    run: validate,
    ..Command::BASE
};

fn validate(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut full, mut repair, mut background) = (false, false, false);
    for field in request.fields("validate") {
        match field.name() {
            "full" => full = field.bool_or_number()?.unwrap_or(false),
            "repair" => repair = field.bool_or_number()?.unwrap_or(false),
            "background" => background = field.bool_or_number()?.unwrap_or(false),
            "metadata" | "checkBSONConformance" | "enforceFastCount" | "scandata" => {
                field.bool_or_number()?;
            }
            // What it does not know it ignores, as MongoDB does here.
            _ => {}
        }
    }
    let invalid = |message: &str| Err(Error::new(Code::InvalidOptions, message));
    if background && full {
        return invalid(
            "Running the validate command with both { background: true } and { full: true } is not supported.",
        );
    }
    if background && repair {
        return invalid(
            "Running the validate command with both { background: true } and { repair: true } is not supported.",
        );
    }
    let ns = request.namespace_of_name()?;
    if repair {
        wait_for_writes_allowed(call)?;
    }
    let mut transaction = call.begin_plain()?;
    if transaction.collection(&ns)?.is_none() {
        let message = format!("Collection '{ns}' does not exist to validate.");
        return Err(Error::new(Code::NamespaceNotFound, message));
    }
    let report = transaction.validate(&ns, full, repair)?;
    let commit = transaction.commit()?;
    if repair {
        call.server.store.wait_durable(commit)?;
    }
    if report.as_raw().get("ns").is_none() {
        call.reply.append("ns", &ns.to_string());
    }
    call.reply.append_fields(report.as_raw());
    Ok(())
}
