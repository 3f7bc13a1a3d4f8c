//! `invalidateUserCache`: every connection looks its users up again.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "invalidateUserCache",
    doc: "Forgets cached users.",
    privilege: Privilege::Cluster(&[Action::InvalidateUserCache]),
    run: invalidate_user_cache,
    ..Command::BASE
};

fn invalidate_user_cache(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("invalidateUserCache")?;
    call.server.auth.changed();
    Ok(())
}
