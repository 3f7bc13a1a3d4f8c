//! A disk that takes no more, by a limit on the size of files: the server says so, refuses writes, serves reads, and
//! has everything it acknowledged after a restart with room.

use bson::{Bson, doc};

use super::content::{DB, check_log, document};
use crate::client::is_ok;
use crate::error::{Result, err};
use crate::process::{Build, Espalier, Killable, Server, TemporaryFolder};
use crate::random::Random;

const BATCH: i64 = 20;
const BATCHES_MAX: i64 = 5_000;

pub fn trial(build: Build, random: &mut Random) -> Result<String> {
    let mut server = Espalier::start(build, TemporaryFolder::in_memory("full")?)?;
    server.connect()?.must(DB, &doc! { "create": "documents" })?;
    let kib = random.between(256, 24_000) as u64;
    server.limit_files(Some(kib));
    server.restart()?;
    let acknowledged = fill(&server).map_err(|error| err!("files of {kib} KiB: {error}\n{}", server.log()))?;
    check_log(&server.log())?;
    server.limit_files(None);
    if random.chance(1, 2) {
        server.terminate()?;
        // It says that the last writes could not be written out, so it may end with an error, but it ends.
        server.wait(std::time::Duration::from_secs(30))?;
    }
    server.restart()?;
    let mut client = server.connect()?;
    let reply = client.must(DB, &doc! { "count": "documents", "query": { "_id": { "$lt": acknowledged } } })?;
    if reply.get_i32("n")? != acknowledged as i32 {
        return Err(err!("files of {kib} KiB: {acknowledged} documents were acknowledged, found {reply}"));
    }
    for id in (0..acknowledged).step_by(7) {
        let reply = client.must(DB, &doc! { "find": "documents", "filter": { "_id": id } })?;
        let batch = reply.get_document("cursor")?.get_array("firstBatch")?;
        if batch.first().and_then(Bson::as_document) != Some(&document(id)) {
            return Err(err!("files of {kib} KiB: document {id} is not what was written"));
        }
    }
    client.must(DB, &doc! { "insert": "documents", "documents": [{ "_id": -1 }] })?;
    let reply = client.must(DB, &doc! { "validate": "documents", "full": true })?;
    if !reply.get_bool("valid").unwrap_or(false) {
        return Err(err!("files of {kib} KiB: {reply}"));
    }
    Ok(format!("no file over {kib} KiB: {acknowledged} documents acknowledged, then refused, all there afterwards"))
}

/// Inserts until the server refuses; returns how many it has acknowledged.
fn fill(server: &Espalier) -> Result<i64> {
    let mut client = server.connect()?;
    for batch in 0..BATCHES_MAX {
        let documents: Vec<Bson> = (batch * BATCH..(batch + 1) * BATCH).map(|id| document(id).into()).collect();
        let reply = client.run(DB, &doc! { "insert": "documents", "documents": documents })?;
        if is_ok(&reply) && !reply.contains_key("writeErrors") {
            continue;
        }
        let said = reply.to_string();
        if !said.contains("storage:") || !said.contains("File too large") {
            return Err(err!("the refusal does not say why: {said}"));
        }
        // Refused from now on, clearly, and reads go on.
        let again = client.run(DB, &doc! { "insert": "documents", "documents": [{ "_id": -1 }] })?;
        if is_ok(&again) && !again.contains_key("writeErrors") {
            return Err(err!("a write was taken after one had failed: {again}"));
        }
        if !again.to_string().contains("restart") {
            return Err(err!("the refusal does not say what to do: {again}"));
        }
        let mut other = server.connect()?;
        other.must("admin", &doc! { "ping": 1 })?;
        let reply = other.must(DB, &doc! { "count": "documents", "query": { "_id": { "$lt": batch * BATCH } } })?;
        if i64::from(reply.get_i32("n")?) != batch * BATCH {
            return Err(err!("{} documents were acknowledged, reads show {reply}", batch * BATCH));
        }
        return Ok(batch * BATCH);
    }
    Err(err!("{BATCHES_MAX} batches and no end of the disk"))
}
