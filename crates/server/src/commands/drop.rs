//! `drop`: a collection with all its documents and indexes.

use espalier_store::Namespace;

use super::prelude::*;
use crate::observe::PROFILE;
use crate::views;
use crate::write_batch::{check_writable, wait_for_writes_allowed};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "drop",
    doc: "Drops a collection.",
    privilege: Privilege::Collection(&[Action::DropCollection]),
    stable: true,
    writes: true,
    run: drop_collection,
    ..Command::BASE
};

fn drop_collection(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    if let Some(field) = request.fields("drop").next() {
        return Err(match field.name() {
            "collectionUUID" => field.unsupported(),
            _ => field.unknown(),
        });
    }
    let ns = request.namespace()?;
    if ns.collection() == PROFILE && call.server.profiler.is_on(ns.db()) {
        let message = "turn off profiling before dropping system.profile collection";
        return Err(Error::new(Code::IllegalOperation, message));
    }
    if !matches!(ns.collection(), views::DEFINITIONS | PROFILE) {
        check_writable(&ns, call)?;
    }
    let concern = WriteConcern::of(request)?;
    wait_for_writes_allowed(call)?;
    let mut transaction = call.begin_plain()?;
    let is_view = transaction.view(&ns)?.is_some();
    let indexes = if is_view { 0 } else { transaction.indexes(&ns)?.len() };
    if ns.collection() == views::DEFINITIONS {
        // Without their definitions there are no views.
        for view in transaction.collections(ns.db())?.iter().filter(|info| info.options.view.is_some()) {
            transaction.drop_collection(&Namespace::new(ns.db(), &view.name))?;
        }
    }
    if !transaction.drop_collection(&ns)? {
        return Err(Error::new(Code::NamespaceNotFound, "ns not found"));
    }
    let commit = call.commit(transaction)?;
    call.server.cursors.end_collection(&ns, "collection dropped");
    call.server.top.forget(ns.db(), Some(ns.collection()));
    call.server.wake_all();
    if !is_view {
        call.reply.append_count("nIndexesWas", indexes as u64);
    }
    call.reply.append("ns", &ns.to_string());
    concern.fulfil(call, commit)
}
