//! The same scenario on two servers.

use bson::{Bson, Document, doc};

use super::generate::Scenario;
use crate::client::{Client, is_ok};
use crate::conformance::{Directives, difference, normalize};
use crate::error::{Context, Result, err};
use crate::shell::{print, print_wrapped};

const DB: &str = "diff";
const COLLECTION: &str = "c";

/// Connections to the reference and to the server that is compared with it.
pub struct Pair {
    reference: Client,
    subject: Client,
}

impl Pair {
    pub fn new(reference: u16, subject: u16) -> Result<Pair> {
        let mut pair = Pair { reference: Client::connect(reference)?, subject: Client::connect(subject)? };
        // MongoDB 6.0 has two engines, and a pipeline that begins with `$group` or `$lookup` may run in either: the newer one
        // has other error codes and evaluates arguments in another order. Espalier answers like the older one.
        pair.reference.must("admin", &doc! { "setParameter": 1, "internalQueryForceClassicEngine": true })?;
        Ok(pair)
    }

    /// The numbers of the commands whose answers differ.
    pub fn differing(&mut self, scenario: &Scenario) -> Result<Vec<usize>> {
        prepare(&mut self.reference, scenario, true).context("on the reference")?;
        prepare(&mut self.subject, scenario, true)?;
        let mut differing = Vec::new();
        for (number, command) in scenario.commands.iter().enumerate() {
            if scenario.writes && number > 0 {
                prepare(&mut self.reference, scenario, false).context("on the reference")?;
                prepare(&mut self.subject, scenario, false)?;
            }
            let expected = answers(&mut self.reference, scenario, command).context("on the reference")?;
            let actual = answers(&mut self.subject, scenario, command).context(print(&command.clone().into()))?;
            if difference(&expected, &actual, &directives(scenario)).is_some() {
                differing.push(number);
            }
        }
        Ok(differing)
    }

    /// What the first command's answers are on both servers, as far as it tells one kind of difference from another: the
    /// error codes. `None` if they do not differ.
    pub fn kind_of_difference(&mut self, scenario: &Scenario) -> Result<Option<(Vec<i64>, Vec<i64>)>> {
        let Some(command) = scenario.commands.first() else { return Ok(None) };
        prepare(&mut self.reference, scenario, true).context("on the reference")?;
        prepare(&mut self.subject, scenario, true)?;
        let expected = answers(&mut self.reference, scenario, command).context("on the reference")?;
        let actual = answers(&mut self.subject, scenario, command)?;
        let differs = difference(&expected, &actual, &directives(scenario)).is_some();
        Ok(differs.then(|| (codes(&expected), codes(&actual))))
    }

    /// A difference as a conformance case, with both answers.
    pub fn describe(&mut self, scenario: &Scenario, seed: u64, round: u64) -> Result<String> {
        let mut text = format!("## found by seed {seed}, round {round}\n");
        if scenario.unordered {
            text.push_str("# unordered\n");
        }
        if !scenario.documents.is_empty() {
            let insert = doc! { "insert": COLLECTION, "documents": scenario.documents.clone() };
            text.push_str(&format!(">> {}\n", print(&insert.into())));
        }
        for index in &scenario.indexes {
            text.push_str(&format!(">> {}\n", print(&create_index(index).into())));
        }
        let command = scenario.commands.first().ok_or_else(|| err!("a scenario without a command"))?;
        text.push_str(&format!("> {}\n", print(&command.clone().into())));
        if scenario.writes {
            text.push_str(&format!("> {}\n", print(&read_all().into())));
            for index in &scenario.indexes {
                text.push_str(&format!("> {}\n", print(&read_indexed(index).into())));
            }
        }
        prepare(&mut self.reference, scenario, true)?;
        prepare(&mut self.subject, scenario, true)?;
        let expected = answers(&mut self.reference, scenario, command)?;
        let actual = answers(&mut self.subject, scenario, command)?;
        text.push_str("---\n");
        for answer in &expected {
            text.push_str(&format!("{}\n", print_wrapped(answer)));
        }
        let report = difference(&expected, &actual, &directives(scenario)).unwrap_or_default();
        Ok(format!("{text}\n  expected (-) and found (+):\n{report}"))
    }
}

/// The code of each answer, of its first write error, or zero.
fn codes(answers: &[Bson]) -> Vec<i64> {
    let of = |answer: &Bson| {
        let reply = answer.as_document()?;
        let error = match reply.get_array("writeErrors") {
            Ok(errors) => errors.first()?.as_document()?,
            Err(_) => reply,
        };
        error.get("code")?.as_i32().map(i64::from)
    };
    answers.iter().map(|answer| of(answer).unwrap_or(0)).collect()
}

fn directives(scenario: &Scenario) -> Directives {
    Directives { unordered: scenario.unordered, ..Directives::default() }
}

/// Puts the documents of the scenario in place; a new collection if the old one may have indexes.
fn prepare(client: &mut Client, scenario: &Scenario, fresh: bool) -> Result<()> {
    if fresh {
        client.run(DB, &doc! { "drop": COLLECTION })?;
        client.must(DB, &doc! { "create": COLLECTION })?;
    } else {
        client.must(DB, &doc! { "delete": COLLECTION, "deletes": [{ "q": {}, "limit": 0 }] })?;
    }
    if !scenario.documents.is_empty() {
        client.must(DB, &doc! { "insert": COLLECTION, "documents": scenario.documents.clone() })?;
    }
    for index in scenario.indexes.iter().filter(|_| fresh) {
        // Some documents cannot be indexed (two parallel arrays); then both servers go on without.
        client.run(DB, &create_index(index))?;
    }
    Ok(())
}

fn create_index(index: &Document) -> Document {
    doc! { "createIndexes": COLLECTION, "indexes": [index.clone()] }
}

/// What is in the collection after a write, in an order that both servers share.
fn read_all() -> Document {
    doc! { "find": COLLECTION, "sort": { "_id": 1 } }
}

fn read_indexed(index: &Document) -> Document {
    let name = index.get_str("name").unwrap_or_default();
    doc! { "find": COLLECTION, "hint": name, "sort": { "_id": 1 } }
}

/// The answer to a command and, if it writes, what is stored afterwards.
fn answers(client: &mut Client, scenario: &Scenario, command: &Document) -> Result<Vec<Bson>> {
    let mut answers = vec![answer(client, command)?];
    if scenario.writes {
        answers.push(answer(client, &read_all())?);
        // Through the indexes too, which the write had to keep up.
        for index in &scenario.indexes {
            answers.push(answer(client, &read_indexed(index))?);
        }
    }
    Ok(answers)
}

fn answer(client: &mut Client, command: &Document) -> Result<Bson> {
    let reply = client.run(DB, command)?;
    let output = match reply.get_document("cursor") {
        Ok(cursor) if is_ok(&reply) => Bson::Array(cursor.get_array("firstBatch")?.clone()),
        // A bag, as the documents of a cursor are.
        _ if is_ok(&reply) && reply.contains_key("values") => Bson::Array(reply.get_array("values")?.clone()),
        _ => Bson::Document(reply),
    };
    Ok(normalize(output, command, &Directives::default()))
}
