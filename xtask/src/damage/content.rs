//! A data folder whose every document is known, and what reading one gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};

use crate::client::{Client, is_ok};
use crate::error::{Result, err};
use crate::process::{Build, Espalier, Killable, Server, TemporaryFolder};
use crate::random::Random;

pub const DB: &str = "damage";
/// More than one memtable, so that some documents are in runs and some only in the log.
pub const DOCUMENTS: i64 = 12_000;
const BATCH: i64 = 200;
const PAYLOAD_BYTES: usize = 4_000;

/// A data folder that nobody uses, to be copied.
pub struct Original {
    folder: TemporaryFolder,
    /// It ended in good order, so that nothing of it may be missing.
    pub is_clean: bool,
}

impl Original {
    pub fn make(build: Build, is_clean: bool) -> Result<Original> {
        let mut server = Espalier::start(build, TemporaryFolder::in_memory("damage-original")?)?;
        let mut client = server.connect()?;
        let index = doc! { "key": { "reverse": 1 }, "name": "reverse_1" };
        client.must(DB, &doc! { "createIndexes": "documents", "indexes": [index] })?;
        for first in (0..DOCUMENTS).step_by(BATCH as usize) {
            let documents: Vec<Bson> = (first..first + BATCH).map(|id| document(id).into()).collect();
            client.must(DB, &doc! { "insert": "documents", "documents": documents })?;
        }
        if is_clean {
            server.terminate()?;
            server.wait(Duration::from_secs(60))?;
        } else {
            server.kill();
        }
        Ok(Original { folder: server.into_folder(), is_clean })
    }

    /// A folder of its own with the same content.
    pub fn copy(&self) -> Result<TemporaryFolder> {
        let copy = TemporaryFolder::in_memory("damage")?;
        std::fs::create_dir_all(copy.path().join("data"))?;
        for file in files(&data(&self.folder))? {
            std::fs::copy(data(&self.folder).join(&file), data(&copy).join(&file))?;
        }
        Ok(copy)
    }
}

/// Where the files of a server are.
pub fn data(folder: &TemporaryFolder) -> PathBuf {
    folder.path().join("data")
}

/// The names of the files that hold data, sorted.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What is in the lock means nothing.
        if entry.file_type()?.is_file() && name != "LOCK" {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The document with this `_id`.
pub fn document(id: i64) -> Document {
    let mut random = Random::part(17, id as u64);
    let part: Vec<u8> = (0..64).flat_map(|_| random.next().to_le_bytes()).collect();
    let bytes: Vec<u8> = part.iter().copied().cycle().take(PAYLOAD_BYTES).collect();
    doc! { "_id": id, "reverse": -id, "bytes": Binary { subtype: BinarySubtype::Generic, bytes } }
}

/// What a complete read gave.
pub struct Reading {
    pub found: BTreeMap<i64, ()>,
    /// Why it ended early.
    pub error: Option<String>,
}

/// Reads everything, forwards or by the index; a document that is not what was written is an error of the test.
pub fn read(client: &mut Client, hint: &str) -> Result<Reading> {
    let mut reading = Reading { found: BTreeMap::new(), error: None };
    let hint = if hint == "$natural" { Bson::from(doc! { "$natural": 1 }) } else { Bson::from(hint) };
    let mut reply = client.run(DB, &doc! { "find": "documents", "hint": hint, "batchSize": 1_000 })?;
    let mut batch = "firstBatch";
    loop {
        if !is_ok(&reply) {
            reading.error = Some(reply.get_str("errmsg").unwrap_or_default().to_owned());
            return Ok(reading);
        }
        let cursor = reply.get_document("cursor")?;
        for found in cursor.get_array(batch)? {
            let found = found.as_document().ok_or_else(|| err!("not a document: {found}"))?;
            let id = found.get_i64("_id").unwrap_or(-1);
            if *found != document(id) {
                return Err(err!("a wrong document was served: _id {:?}", found.get("_id")));
            }
            if reading.found.insert(id, ()).is_some() {
                return Err(err!("document {id} was served twice"));
            }
        }
        let id = cursor.get_i64("id")?;
        if id == 0 {
            return Ok(reading);
        }
        reply = client.run(DB, &doc! { "getMore": id, "collection": "documents", "batchSize": 1_000 })?;
        batch = "nextBatch";
    }
}

/// A panic leaves its traces in the log.
pub fn check_log(log: &str) -> Result<()> {
    if log.contains("panicked") || log.contains("Internal error: a bug") {
        return Err(err!("the server panicked:\n{log}"));
    }
    Ok(())
}
