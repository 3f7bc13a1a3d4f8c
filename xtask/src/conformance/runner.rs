//! Runs the commands of a case on a server.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bson::{Bson, Document, doc};

use super::case::{Case, Command, Directives};
use super::normalize::normalize;
use crate::client::{Client, is_ok};
use crate::error::{Context, Result, err};
use crate::shell::{Environment, Parser};

/// The server's own databases, which no case may drop.
const SYSTEM_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// A server on which cases run one after another, each on fresh databases.
pub struct Runner {
    client: Client,
    port: u16,
    /// Databases that may hold something; a name that is not here and not in `clean` was never looked at.
    dirty: BTreeSet<String>,
    clean: BTreeSet<String>,
}

impl Runner {
    pub fn new(port: u16) -> Result<Runner> {
        Ok(Runner { client: Client::connect(port)?, port, dirty: BTreeSet::new(), clean: BTreeSet::new() })
    }

    /// Runs a case and returns the normalised reply of each command that is not silent.
    pub fn run(&mut self, case: &Case) -> Result<Vec<Bson>> {
        self.prepare(case)?;
        let variables = Variables::default();
        let outputs = self.run_commands(case, &variables);
        if outputs.is_err() {
            // The connection may be in the middle of a reply; the next case starts on a new one.
            self.client = Client::connect(self.port)?;
        }
        self.end_sessions(&variables)?;
        outputs
    }

    /// Leaves nothing behind.
    pub fn finish(&mut self) -> Result<()> {
        for db in std::mem::take(&mut self.dirty) {
            self.empty(&db)?;
        }
        Ok(())
    }

    /// Drops a database. Its collections first: mongod takes 100 ms for a database that holds something and 1 ms for
    /// one that does not.
    fn empty(&mut self, db: &str) -> Result<()> {
        let listed = self.client.run(db, &doc! { "listCollections": 1, "nameOnly": true })?;
        let collections = listed.get_document("cursor").ok().and_then(|cursor| cursor.get_array("firstBatch").ok());
        for collection in collections.into_iter().flatten() {
            // What cannot be dropped alone (a time series' buckets) goes with its owner or with the database.
            if let Some(Ok(name)) = collection.as_document().map(|collection| collection.get_str("name")) {
                self.client.run(db, &doc! { "drop": name })?;
            }
        }
        self.client.must(db, &doc! { "dropDatabase": 1 }).context("emptying the databases")?;
        Ok(())
    }

    fn prepare(&mut self, case: &Case) -> Result<()> {
        let used: BTreeSet<String> = case
            .commands
            .iter()
            .map(|command| command.db.clone())
            .filter(|db| {
                !SYSTEM_DATABASES.contains(&db.as_str())
                    && !db.contains(['/', '\\', '.', ' ', '"', '$'])
                    && !db.is_empty()
            })
            .collect();
        let unknown: Vec<String> = used.difference(&self.clean).cloned().collect();
        self.dirty.extend(unknown);
        for db in std::mem::take(&mut self.dirty) {
            self.empty(&db)?;
            self.clean.insert(db);
        }
        for db in used {
            self.clean.remove(&db);
            self.dirty.insert(db);
        }
        Ok(())
    }

    fn run_commands(&mut self, case: &Case, variables: &Variables) -> Result<Vec<Bson>> {
        let mut outputs = Vec::new();
        for command in &case.commands {
            let context = || format!("`{}`", command.text.lines().next().unwrap_or(""));
            let document = parse_command(command, variables).context(context())?;
            let reply = self.client.run(&command.db, &document).context(context())?;
            variables.replies.borrow_mut().push(reply.clone());
            if command.silent {
                if !is_ok(&reply) || reply.contains_key("writeErrors") {
                    return Err(err!("the set-up command {} failed: {reply}", context()));
                }
                continue;
            }
            let output = self.output(command, &document, reply, &case.directives).context(context())?;
            outputs.push(output);
        }
        Ok(outputs)
    }

    fn output(
        &mut self,
        command: &Command,
        document: &Document,
        reply: Document,
        directives: &Directives,
    ) -> Result<Bson> {
        let whole = match reply.get_document("cursor") {
            Ok(cursor) if !directives.raw_cursor && is_ok(&reply) && cursor.contains_key("firstBatch") => {
                self.drain(&command.db, document, cursor)?
            }
            _ => Bson::Document(reply),
        };
        Ok(normalize(whole, document, directives))
    }

    /// All documents of a cursor, or the reply of the `getMore` that failed.
    fn drain(&mut self, db: &str, command: &Document, cursor: &Document) -> Result<Bson> {
        let mut documents = cursor.get_array("firstBatch")?.clone();
        let mut id = cursor.get_i64("id")?;
        let namespace = cursor.get_str("ns")?;
        let (_, collection) = namespace.split_once('.').unwrap_or((db, namespace));
        while id != 0 {
            let mut more = doc! { "getMore": id, "collection": collection };
            if cursor.contains_key("postBatchResumeToken") {
                // A change stream has no end: what has happened is there at once.
                more.insert("maxTimeMS", 100);
            }
            for name in ["lsid", "txnNumber", "autocommit"] {
                if let Some(value) = command.get(name) {
                    more.insert(name, value.clone());
                }
            }
            let reply = self.client.run(db, &more)?;
            if !is_ok(&reply) {
                return Ok(Bson::Document(reply));
            }
            let cursor = reply.get_document("cursor")?;
            let batch = cursor.get_array("nextBatch")?;
            id = cursor.get_i64("id")?;
            if batch.is_empty() && id != 0 {
                // A tailable cursor has no end; what it had is the answer.
                self.client.run(db, &doc! { "killCursors": collection, "cursors": [id] })?;
                break;
            }
            documents.extend(batch.iter().cloned());
        }
        Ok(Bson::Array(documents))
    }

    /// An open transaction would keep the next case from dropping the databases.
    fn end_sessions(&mut self, variables: &Variables) -> Result<()> {
        let sessions: Vec<Bson> = variables.sessions.borrow().values().cloned().collect();
        if !sessions.is_empty() {
            self.client.must("admin", &doc! { "killSessions": sessions }).context("ending the sessions")?;
        }
        Ok(())
    }
}

fn parse_command(command: &Command, variables: &Variables) -> Result<Document> {
    let mut parser = Parser::new(&command.text, variables);
    let value = parser.value()?;
    parser.end()?;
    match value {
        Bson::Document(document) => Ok(document),
        _ => Err(err!("a command is a document")),
    }
}

/// What `reply(n)` and `session(n)` mean in the commands of the running case.
#[derive(Default)]
struct Variables {
    replies: RefCell<Vec<Document>>,
    sessions: RefCell<BTreeMap<usize, Bson>>,
}

impl Environment for Variables {
    fn reply(&self, number: usize) -> Option<Bson> {
        self.replies.borrow().get(number.checked_sub(1)?).cloned().map(Bson::Document)
    }

    fn session(&self, number: usize) -> Option<Bson> {
        let mut sessions = self.sessions.borrow_mut();
        Some(sessions.entry(number).or_insert_with(|| doc! { "id": bson::Uuid::new() }.into()).clone())
    }
}
