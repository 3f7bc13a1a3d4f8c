//! `getMore`: the next batch of a cursor. On a tailable cursor that awaits data it waits for documents to come.

use std::time::{Duration, Instant};

use espalier_store::{Namespace, Tailable};

use super::prelude::*;
use crate::call::Wait;
use crate::cursors::Taken;
use crate::fields;
use crate::net::LINGER;
use crate::sessions::uuid_text;

pub(super) static COMMAND: Command = Command {
    name: "getMore",
    doc: "Returns the next documents of a cursor.",
    privilege: Privilege::Asked { doc: "any user, for cursors that it opened itself", may },
    stable: true,
    reads: true,
    own_max_time: true,
    run: get_more,
    ..Command::BASE
};

/// That the cursor is the client's own is checked when it is taken.
fn may(_: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated()
}

/// Change streams that wait on a thread at the same time, where they hear of changes soonest.
const ON_THREADS: usize = 32;
/// How long an awaiting cursor waits if the client does not say.
const AWAIT_DEFAULT: Duration = Duration::from_secs(1);

fn get_more(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut collection, mut batch_size) = (None, None);
    for field in request.fields("getMore") {
        match field.name() {
            "collection" => collection = field.str()?,
            "batchSize" => batch_size = field.count()?.filter(|size| *size > 0),
            "term" | "lastKnownCommittedOpTime" => {}
            _ => return Err(field.unknown()),
        }
    }
    let ValueRef::Int64(id) = request.argument else {
        let found = request.argument.ty().name();
        let message = format!("BSON field 'getMore.getMore' is the wrong type '{found}', expected type 'long'");
        return Err(Error::type_mismatch(message));
    };
    let collection = collection.ok_or_else(|| fields::missing("getMore", "collection"))?;
    let ns = cursor_namespace(request.db, collection)?;
    let server = call.server;
    if !call.waited {
        server.metrics.get_mores.add(1);
    }
    let mut cursor = server.cursors.take(id)?;
    if let Err(error) = check(&cursor, &ns, call) {
        // The cursor did nothing wrong.
        cursor.put_back();
        return Err(error);
    }
    call.resume(&cursor.context);
    call.told.origin = cursor.origin.clone().filter(|_| server.profiler.is_on(request.db));
    let waits = cursor.tailable == Some(Tailable::Await);
    let until = call.until.unwrap_or(call.started + call.max_time.unwrap_or(AWAIT_DEFAULT));

    let mut waiter = waits.then(|| match cursor.is_change_stream() {
        true => server.notifier.watcher(),
        false => server.notifier.waiter(&ns),
    });
    cursor.look_until(until);
    let mut doc = call.reply.doc("cursor");
    // A change stream waits on its thread for a moment only: there may be thousands that nothing happens to.
    let parks = cursor.is_change_stream() && !call.legacy;
    let patience = if call.waited || server.notifier.watching() > ON_THREADS { Duration::ZERO } else { LINGER };
    let linger = call.started + patience;
    let (more, returned) = {
        let mut batch = doc.array("nextBatch");
        let size = batch_size.unwrap_or(u64::MAX);
        let mut more = cursor.fill(&mut batch, size, &mut call.room)?;
        while let Some(waiter) = &mut waiter
            && more
            && batch.is_empty()
            && Instant::now() < until
        {
            if parks && Instant::now() >= linger {
                call.wait = Some(Wait::Changes { until, seen: waiter.seen() });
                break;
            }
            let waits = call.running.waits_for("waiting for documents to come");
            let pauses = call.server.crew.pause();
            waiter.wait(if parks { until.min(linger) } else { until });
            drop(pauses);
            call.told.waited += waits.elapsed();
            drop(waits);
            cursor.context.interrupt.check()?;
            more = cursor.fill(&mut batch, size, &mut call.room)?;
        }
        (more, batch.len() as u64)
    };
    call.told.returns(returned);
    call.told.cursor_id = Some(id);
    call.told.cursor_exhausted = !more;
    if let Some(token) = cursor.resume {
        doc.append("postBatchResumeToken", &token.write());
    }
    if cursor.is_invalidated() && !more {
        doc.append("invalidated", true);
    }
    doc.append("id", if more { id } else { 0 }).append("ns", &ns.to_string());
    if more {
        cursor.batches_returned += 1;
        cursor.put_back();
    }
    Ok(())
}

/// The namespace of a cursor, which may be one of those that only cursors have (`$cmd.listCollections`).
pub(super) fn cursor_namespace(db: &str, collection: &str) -> Result<Namespace> {
    if collection.is_empty() {
        return Err(Error::new(Code::InvalidNamespace, "Collection names cannot be empty"));
    }
    if collection.starts_with("$cmd.") {
        return Ok(Namespace::new(db, collection));
    }
    Namespace::checked(db, collection)
}

fn check(cursor: &Taken<'_>, ns: &Namespace, call: &Call<'_>) -> Result<()> {
    let id = cursor.id();
    if !call.rights.shares_user_with(&cursor.owners) {
        let message = format!("cursor id {id} was not created by the authenticated user");
        return Err(Error::new(Code::Unauthorized, message));
    }
    if cursor.ns != *ns {
        let message =
            format!("Requested getMore on namespace '{ns}', but cursor belongs to a different namespace {}", cursor.ns);
        return Err(Error::new(Code::Unauthorized, message));
    }
    match (&cursor.session, &call.lsid) {
        (Some(own), None) => {
            let message = format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, without an lsid",
                uuid_text(&own.id)
            );
            return Err(Error::new(Code(50736), message));
        }
        (None, Some(other)) => {
            let message = format!(
                "Cannot run getMore on cursor {id}, which was not created in a session, in session {}",
                uuid_text(&other.id)
            );
            return Err(Error::new(Code(50737), message));
        }
        (Some(own), Some(other)) if own != other => {
            let message = format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, in session {}",
                uuid_text(&own.id),
                uuid_text(&other.id)
            );
            return Err(Error::new(Code(50738), message));
        }
        _ => {}
    }
    let joined = call.transaction.as_ref().map(|joint| joint.number());
    match (cursor.transaction, joined) {
        (None, Some(number)) => {
            let message = format!(
                "Cannot run getMore on cursor {id}, which was not created in a transaction, in transaction {number}"
            );
            return Err(Error::new(Code(50739), message));
        }
        (Some(own), None) => {
            let message = format!(
                "Cannot run getMore on cursor {id}, which was created in transaction {own}, without a txnNumber"
            );
            return Err(Error::new(Code(50740), message));
        }
        (Some(own), Some(number)) if own != number => {
            let message = format!(
                "Cannot run getMore on cursor {id}, which was created in transaction {own}, in transaction {number}"
            );
            return Err(Error::new(Code(50741), message));
        }
        _ => {}
    }
    if call.max_time.is_some() && cursor.tailable != Some(Tailable::Await) {
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    Ok(())
}
