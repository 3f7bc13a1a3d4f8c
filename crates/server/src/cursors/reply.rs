//! The `cursor` field of a reply: a batch, and the cursor that is kept if there is more.

use espalier_value::Result;

use super::{FIRST_BATCH_DEFAULT, OpenCursor};
use crate::call::Call;

/// How the first reply is to be filled.
#[derive(Clone, Copy, Default)]
pub struct First {
    pub batch_size: Option<u64>,
    pub single_batch: bool,
    /// `id` and `ns` stand before the batch, as in the replies of commands that list things.
    pub id_first: bool,
}

/// Writes `cursor: {firstBatch, id, ns}` and keeps the cursor if there is more to read. `ns` is the name clients see.
pub fn write_first(call: &mut Call<'_>, mut cursor: Box<OpenCursor>, ns: &str, first: First) -> Result<()> {
    let size = first.batch_size.unwrap_or(FIRST_BATCH_DEFAULT);
    cursor.owners = call.rights.names();
    let server = call.server;
    let mut doc = call.reply.doc("cursor");
    let place = first.id_first.then(|| {
        let place = doc.reserve("id");
        doc.append("ns", ns);
        place
    });
    let (more, returned) = {
        let mut batch = doc.array("firstBatch");
        (cursor.fill(&mut batch, size, &mut call.room)?, batch.len() as u64)
    };
    call.told.returns(returned);
    cursor.transaction = call.transaction.as_ref().map(|joint| joint.number());
    if let Some(token) = cursor.resume {
        doc.append("postBatchResumeToken", &token.write());
    }
    if cursor.is_invalidated() && !more {
        doc.append("invalidated", true);
    }
    let kept = more && !first.single_batch;
    cursor.origin = kept.then(|| call.client.current_command()).flatten();
    let id = if kept { server.cursors.keep(cursor, || server.ids.cursor())? } else { 0 };
    call.told.cursor_id = kept.then_some(id);
    call.told.cursor_exhausted = !kept;
    if let Some(joint) = &call.transaction
        && id != 0
    {
        joint.opened(id);
    }
    match place {
        Some(place) => doc.fill(place, id),
        None => {
            doc.append("id", id).append("ns", ns);
            if let Some(time) = call.snapshot.as_ref().and_then(std::cell::Cell::get) {
                doc.append_timestamp("atClusterTime", time);
            }
        }
    }
    Ok(())
}
