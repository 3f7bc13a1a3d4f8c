//! `reIndex`, which MongoDB allows only on a server that is not a member of a replica set: here, it never is.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "reIndex",
    doc: "Says that a member of a replica set cannot rebuild its indexes in place.",
    privilege: Privilege::Collection(&[Action::ReIndex]),
    writes: true,
    run: re_index,
    ..Command::BASE
};

fn re_index(request: &Request<'_>, _: &mut Call<'_>) -> Result<()> {
    let ns = request.namespace()?;
    let message = format!(
        "reIndex is only allowed on a standalone instance. To rebuild the indexes of '{ns}', drop and create them, or \
         run {{validate: '{}', repair: true}}",
        ns.collection()
    );
    Err(Error::new(Code::IllegalOperation, message))
}
