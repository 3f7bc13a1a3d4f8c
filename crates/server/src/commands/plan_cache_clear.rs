//! `planCacheClear`: plans are chosen anew for every command, so there is nothing to clear.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "planCacheClear",
    doc: "Forgets cached plans.",
    privilege: Privilege::Collection(&[Action::PlanCacheWrite]),
    run: plan_cache_clear,
    ..Command::BASE
};

fn plan_cache_clear(request: &Request<'_>, _: &mut Call<'_>) -> Result<()> {
    request.namespace_of_name().map(|_| ())
}
