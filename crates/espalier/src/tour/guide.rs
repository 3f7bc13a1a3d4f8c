//! Leads through a chapter: says, shows, runs and measures.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

use super::client::{Client, number};
use super::screen::{Screen, typed};
use super::shop::Random;
use super::{Chapter, Result};

/// The plain collections, and the ones with patterns.
pub const BEFORE: &str = "before";
pub const AFTER: &str = "after";

/// Documents of one insert.
const BATCH: usize = 1_000;

/// What one statement cost: the mean of what the server counted, the median of the time.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub documents: f64,
    /// Bytes of answers.
    pub received: f64,
    /// Bytes that went to the log.
    pub logged: f64,
    pub time: Duration,
}

pub struct Guide {
    client: Client,
    screen: Screen,
    seed: u64,
    scale: f64,
    interrupted: Arc<AtomicBool>,
}

impl Guide {
    pub fn new(
        address: SocketAddr,
        screen: Screen,
        seed: u64,
        scale: f64,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Guide> {
        Ok(Guide { client: Client::connect(address)?, screen, seed, scale, interrupted })
    }

    pub fn begin(&mut self, chapter: &Chapter) -> Result<()> {
        self.screen.heading(&format!("{}: {}", chapter.name, chapter.title));
        self.screen.text(chapter.problem);
        for db in [BEFORE, AFTER] {
            self.run(db, &doc! { "dropDatabase": 1 })?;
        }
        Ok(())
    }

    pub fn end(self) -> Screen {
        self.screen
    }

    /// The same numbers in every run with the same seed, whichever chapters are told.
    pub fn random(&self) -> Random {
        Random::new(self.seed)
    }

    /// A number of things in a shop of the size that is wanted.
    pub fn scaled(&self, whole: usize, least: usize) -> usize {
        ((whole as f64 * self.scale) as usize).max(least)
    }

    pub fn say(&self, text: &str) {
        self.screen.text(text);
    }

    /// Shows statements as they would be typed.
    pub fn show(&self, text: &str) {
        self.screen.line("");
        self.screen.code(text);
        self.screen.pause();
    }

    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    pub fn run(&mut self, db: &str, command: &DocBuf) -> Result<DocBuf> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        self.client.run(db, command)
    }

    /// Shows a command exactly as it is sent, and sends it.
    pub fn declare(&mut self, command: &DocBuf) -> Result<()> {
        self.screen.text("Declared instead:");
        self.show(&format!("db.runCommand({})", typed(ValueRef::Document(command.as_raw()), 0)));
        self.run(AFTER, command).map(drop)
    }

    pub fn insert(&mut self, db: &str, collection: &str, docs: &[DocBuf]) -> Result<()> {
        for chunk in docs.chunks(BATCH) {
            self.run(db, &doc! { "insert": collection, "documents": &list(chunk) })?;
        }
        Ok(())
    }

    /// Runs what a statement sends, several times, and says what one time cost.
    pub fn measure(&mut self, db: &str, times: usize, mut statement: impl FnMut(usize) -> Vec<DocBuf>) -> Result<Cost> {
        let commands: Vec<Vec<DocBuf>> = (0..times).map(&mut statement).collect();
        let before = self.counted()?;
        let (mut received, mut each) = (0, Vec::new());
        for commands in &commands {
            let begun = Instant::now();
            for command in commands {
                received += self.run(db, command)?.as_bytes().len();
            }
            each.push(begun.elapsed());
        }
        let after = self.counted()?;
        each.sort_unstable();
        let share = |before: f64, after: f64| (after - before) / times as f64;
        Ok(Cost {
            documents: share(before.0, after.0),
            received: received as f64 / times as f64,
            logged: share(before.1, after.1),
            time: each.get(each.len() / 2).copied().unwrap_or_default(),
        })
    }

    /// Documents that the server has read and bytes that it has written to its log, so far.
    fn counted(&mut self) -> Result<(f64, f64)> {
        let status = self.run("admin", &doc! { "serverStatus": 1 })?;
        let documents = number(status.as_raw(), &["metrics", "queryExecutor", "scannedObjects"]);
        Ok((documents, number(status.as_raw(), &["espalier", "store", "loggedBytes"])))
    }
}

/// An array of documents.
pub fn list(docs: &[DocBuf]) -> ArrayBuf {
    docs.iter().map(|doc| ValueRef::Document(doc.as_raw())).collect()
}

/// `{find: …, filter: {_id: id}}`.
pub fn find_one<'v>(collection: &str, id: impl Into<ValueRef<'v>>) -> DocBuf {
    doc! { "find": collection, "filter": &doc! { "_id": id.into() }, "limit": 1, "singleBatch": true }
}

/// An aggregation whose answer is one batch.
pub fn aggregate(collection: &str, stages: &[DocBuf]) -> DocBuf {
    doc! { "aggregate": collection, "pipeline": &list(stages), "cursor": &doc! { "batchSize": 10_000 } }
}

pub fn update_one<'v>(collection: &str, id: impl Into<ValueRef<'v>>, change: &DocBuf) -> DocBuf {
    let update = doc! { "q": &doc! { "_id": id.into() }, "u": change };
    doc! { "update": collection, "updates": &list(&[update]) }
}

pub fn insert_one(collection: &str, doc: &DocBuf) -> DocBuf {
    doc! { "insert": collection, "documents": &list(std::slice::from_ref(doc)) }
}
