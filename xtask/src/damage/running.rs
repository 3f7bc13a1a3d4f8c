//! Run files are damaged under a running server.

use bson::doc;

use super::content::{DB, DOCUMENTS, Original, check_log, data, document, files, read};
use super::harm::flip;
use crate::client::is_ok;
use crate::error::{Result, err};
use crate::process::{Build, Espalier, Server};
use crate::random::Random;

/// Documents that are read one by one by their `_id`.
const POINTS: u64 = 300;

pub fn trial(build: Build, original: &Original, random: &mut Random) -> Result<String> {
    let server = Espalier::start(build, original.copy()?)?;
    let mut damaged = Vec::new();
    let flips = 1 + random.below(4);
    for name in files(&data(server.files()))?.into_iter().filter(|name| name.ends_with(".run")) {
        let path = data(server.files()).join(&name);
        let mut bytes = std::fs::read(&path)?;
        (0..flips).for_each(|_| flip(&mut bytes, random));
        // In place: the server has the file open.
        let file = std::fs::File::options().write(true).open(&path)?;
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0)?;
        damaged.push(name);
    }
    if damaged.is_empty() {
        return Err(err!("there are no runs to damage"));
    }
    let outcome = look(&server, &damaged, random).map_err(|error| err!("{error}\n{}", server.log()))?;
    check_log(&server.log())?;
    Ok(format!("running server, {flips} bytes in each of {} runs flipped: {outcome}", damaged.len()))
}

fn look(server: &Espalier, damaged: &[String], random: &mut Random) -> Result<String> {
    let mut client = server.connect()?;
    let names_it = |message: &str| damaged.iter().any(|name| message.contains(name.as_str()));
    let mut refused = 0;
    for _ in 0..POINTS {
        let id = random.below(DOCUMENTS as u64) as i64;
        let reply = client.run(DB, &doc! { "find": "documents", "filter": { "_id": id } })?;
        if !is_ok(&reply) {
            let message = reply.get_str("errmsg").unwrap_or_default();
            if !names_it(message) {
                return Err(err!("the error does not name the file: {message}"));
            }
            refused += 1;
            continue;
        }
        let batch = reply.get_document("cursor")?.get_array("firstBatch")?;
        if batch.len() != 1 || batch[0].as_document() != Some(&document(id)) {
            return Err(err!("a wrong answer for document {id}: {} documents", batch.len()));
        }
    }
    let mut whole = 0;
    for hint in ["$natural", "reverse_1"] {
        let reading = read(&mut client, hint)?;
        match reading.error {
            Some(error) if !names_it(&error) => return Err(err!("the error does not name the file: {error}")),
            Some(_) => {}
            None if reading.found.len() as i64 == DOCUMENTS => whole += 1,
            None => return Err(err!("{} documents without a word, by {hint}", reading.found.len())),
        }
    }
    let reply = client.run(DB, &doc! { "validate": "documents", "full": true })?;
    let said = reply.to_string();
    if reply.get_bool("valid").unwrap_or(false) || !names_it(&said) {
        return Err(err!("validate does not find the damage: {said}"));
    }
    // What has nothing to do with the damage goes on.
    client.must(DB, &doc! { "insert": "others", "documents": [{ "_id": 1 }] })?;
    client.must(DB, &doc! { "find": "others" })?;
    Ok(format!("{refused} of {POINTS} point reads refused, {whole} of 2 scans whole, found by validate"))
}
