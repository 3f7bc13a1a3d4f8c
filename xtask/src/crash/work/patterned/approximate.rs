//! Counters that are written together: nothing acknowledged is lost, and nothing is counted twice, whatever was pending.

use std::collections::BTreeMap;

use bson::doc;

use super::{DB, WRITERS, Work, of_writer};
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const COLLECTION: &str = "views";
const DOCUMENTS_MAX: usize = 20;
/// The document that all writers count in, each in a field of its own.
const HOT: i64 = 0;

/// The count of each document of its own with a mark that is set the ordinary way, and its own count in the shared one.
pub struct Views {
    writer: u64,
    own: Ledger<(i64, i64)>,
    hot: Ledger<i64>,
}

impl Views {
    pub fn new(writer: u64) -> Views {
        Views { writer, own: Ledger::new(writer), hot: Ledger::new(writer) }
    }

    fn field(&self) -> String {
        format!("by{}", self.writer)
    }

    fn insert(&mut self, session: &mut Session) -> Step {
        let id = self.own.fresh_id();
        self.own.send(id, Some((0, 0)));
        let view = doc! { "_id": id, "n": 0i64, "mark": 0i64 };
        session.expect(DB, &doc! { "insert": COLLECTION, "documents": [view] }, "n", 1)?;
        self.own.acknowledge();
        Ok(())
    }

    /// Counts, or writes to the document otherwise while counts are pending.
    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, (n, mark))) = self.own.any(random) else { return self.insert(session) };
        let (state, change) = match random.below(8) {
            0 => ((n, mark + 1), doc! { "$inc": { "mark": 1i64 } }),
            1 => ((7, mark), doc! { "$set": { "n": 7i64, "mark": mark }, "$currentDate": { "at": true } }),
            by => ((n + by as i64, mark), doc! { "$inc": { "n": by as i64 } }),
        };
        self.own.send(id, Some(state));
        let update = doc! { "q": { "_id": id }, "u": change };
        session.expect(DB, &doc! { "update": COLLECTION, "updates": [update] }, "n", 1)?;
        self.own.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.own.any(random) else { return Ok(()) };
        self.own.send(id, None);
        session.expect(DB, &doc! { "delete": COLLECTION, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.own.acknowledge();
        Ok(())
    }

    fn count(&mut self, session: &mut Session) -> Step {
        let n = self.hot.known.get(&HOT).copied().unwrap_or(0);
        self.hot.send(HOT, Some(n + 1));
        let update = doc! { "q": { "_id": HOT }, "u": { "$inc": { self.field(): 1i64 } } };
        session.expect(DB, &doc! { "update": COLLECTION, "updates": [update] }, "nModified", 1)?;
        self.hot.acknowledge();
        Ok(())
    }
}

impl Work for Views {
    fn name(&self) -> &'static str {
        "views"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer == 0 {
            let mut fields = vec!["n".to_owned()];
            fields.extend((0..WRITERS).map(|writer| format!("by{writer}")));
            let approximate = doc! { "fields": fields, "flush": { "count": 20, "within": "300ms" } };
            client.must(DB, &doc! { "create": COLLECTION, "patterns": [{ "approximate": approximate }] })?;
            let mut hot = doc! { "_id": HOT };
            (0..WRITERS).for_each(|writer| drop(hot.insert(format!("by{writer}"), 0i64)));
            client.must(DB, &doc! { "insert": COLLECTION, "documents": [hot] })?;
        }
        self.hot.known.insert(HOT, 0);
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(20) {
            _ if self.own.known.len() > DOCUMENTS_MAX => self.delete(session, random),
            0 => self.insert(session),
            1 => self.delete(session, random),
            2..12 => self.update(session, random),
            _ => self.count(session),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let find = doc! { "find": COLLECTION, "filter": of_writer(self.writer), "batchSize": 10_000 };
        for view in read_all(client, DB, &find)? {
            let (Some(n), Some(mark)) = (number(&view, "n"), number(&view, "mark")) else {
                problems.add(format!("not counted in: {view}"));
                continue;
            };
            found.insert(view.get_i64("_id")?, (n, mark));
        }
        self.own.judge(COLLECTION, found, problems);
        let hot = read_all(client, DB, &doc! { "find": COLLECTION, "filter": { "_id": HOT } })?;
        let found = hot.iter().filter_map(|hot| number(hot, &self.field())).map(|n| (HOT, n)).collect();
        self.hot.judge("the shared counter", found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.own.acknowledged + self.hot.acknowledged
    }
}
