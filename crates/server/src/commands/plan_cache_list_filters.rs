//! `planCacheListFilters`: there are no index filters.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "planCacheListFilters",
    doc: "Lists index filters.",
    privilege: Privilege::Collection(&[Action::PlanCacheIndexFilter]),
    run: plan_cache_list_filters,
    ..Command::BASE
};

fn plan_cache_list_filters(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.namespace_of_name()?;
    call.reply.array("filters");
    Ok(())
}
