//! Collections that are taken into one and folded back while their owners write to them: each is, at any time, whole and in
//! one place.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bson::{Document, doc};

use super::{DB, WRITERS, Work};
use crate::client::{Client, is_ok};
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, code, number, read_all, wrong};
use crate::error::{Result, err};
use crate::random::Random;

const PHYSICAL: &str = "parcels";
const DOCUMENTS_MAX: usize = 200;
/// A migration that was cut off is going on: of the collection, or of one that comes into it.
const NOT_NOW: [i32; 2] = [117, 115];
const TIMEOUT: Duration = Duration::from_secs(120);

/// One owner's parcels.
pub struct Parcels {
    depot: u64,
    name: String,
    parcels: Ledger<i64>,
}

impl Parcels {
    pub fn new(depot: u64) -> Parcels {
        // Every depot has the same `_id`s.
        Parcels { depot, name: format!("depot_{depot}_parcels"), parcels: Ledger::new(0) }
    }
}

/// The collections that there are, with their options.
fn stored(client: &mut Client) -> Result<BTreeMap<String, Document>> {
    let mut all = BTreeMap::new();
    for info in read_all(client, DB, &doc! { "listCollections": 1, "rawData": true })? {
        all.insert(info.get_str("name")?.to_owned(), info.get_document("options")?.clone());
    }
    Ok(all)
}

impl Work for Parcels {
    fn name(&self) -> &'static str {
        "parcels"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        client.must(DB, &doc! { "create": &self.name })?;
        let index = doc! { "key": { "number": 1 }, "name": "number_1", "unique": true };
        client.must(DB, &doc! { "createIndexes": &self.name, "indexes": [index] })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let any = self.parcels.any(random);
        match (random.below(10), any) {
            (0..3, Some((id, _))) if self.parcels.known.len() > DOCUMENTS_MAX / 2 => {
                self.parcels.send(id, None);
                let delete = doc! { "delete": &self.name, "deletes": [{ "q": { "number": id }, "limit": 1 }] };
                session.expect(DB, &delete, "n", 1)?;
            }
            (3..8, Some((id, n))) => {
                self.parcels.send(id, Some(n + 1));
                let update = doc! { "q": { "_id": id }, "u": { "$inc": { "n": 1i64 } } };
                session.expect(DB, &doc! { "update": &self.name, "updates": [update] }, "nModified", 1)?;
            }
            (_, Some((id, _))) if self.parcels.known.len() > DOCUMENTS_MAX => {
                self.parcels.send(id, None);
                let delete = doc! { "delete": &self.name, "deletes": [{ "q": { "_id": id }, "limit": 1 }] };
                session.expect(DB, &delete, "n", 1)?;
            }
            _ => {
                let id = self.parcels.fresh_id();
                self.parcels.send(id, Some(0));
                let parcel = doc! { "_id": id, "number": id, "n": 0i64 };
                session.expect(DB, &doc! { "insert": &self.name, "documents": [parcel] }, "n", 1)?;
            }
        }
        self.parcels.acknowledge();
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let depot = self.depot.to_string();
        for document in read_all(client, DB, &doc! { "find": &self.name, "batchSize": 10_000 })? {
            let (Ok(id), Some(n)) = (document.get_i64("_id"), number(&document, "n")) else {
                problems.add(format!("not a parcel: {document}"));
                continue;
            };
            let is_own = document.get_str("depot").map_or(true, |other| other == depot);
            if !is_own || number(&document, "number") != Some(id) || found.insert(id, n).is_some() {
                problems.add(format!("half, twice or another's: {document}"));
            }
        }
        let all = stored(client)?;
        let own = all.get(&self.name);
        let moving = own.is_some_and(|options| options.contains_key("patterns"));
        let filter = doc! { "depot": &depot };
        let shared =
            read_all(client, DB, &doc! { "find": PHYSICAL, "filter": filter, "batchSize": 10_000, "rawData": true })?;
        let expected = if own.is_some() { 0 } else { found.len() };
        if !moving && shared.len() != expected {
            let (there, here) = (shared.len(), found.len());
            problems.add(format!("{} has {here} parcels, and {there} of them lie in {PHYSICAL}", self.name));
        }
        self.parcels.judge(&self.name, found, problems);
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.parcels.acknowledged
    }
}

/// Takes the collections in and folds them back.
pub struct Mover {
    resumed: u64,
    acknowledged: u64,
}

impl Mover {
    pub fn new() -> Mover {
        Mover { resumed: 0, acknowledged: 0 }
    }

    fn is_moving(client: &mut Client) -> Result<bool> {
        let ours = |name: &String| name == PHYSICAL || name.ends_with("_parcels");
        let all = stored(client)?;
        Ok(all.iter().any(|(name, options)| ours(name) && options.contains_key("patternJob")))
    }
}

impl Work for Mover {
    fn name(&self) -> &'static str {
        "mover"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        client.must(DB, &doc! { "create": PHYSICAL })?;
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let shared = doc! { "shared": { "discriminator": "depot", "name": "depot_{depot}_parcels" } };
        let patterns: Vec<Document> = if random.chance(1, 2) { vec![shared] } else { Vec::new() };
        let command = doc! { "collMod": PHYSICAL, "patterns": patterns };
        let reply = session.run(DB, &command)?;
        match code(&reply) {
            None if is_ok(&reply) => self.acknowledged += 1,
            Some(code) if NOT_NOW.contains(&code) => {}
            _ => return Err(wrong(&command, &reply)),
        }
        std::thread::sleep(Duration::from_millis(random.below(200)));
        Ok(())
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        problems.checked += 1;
        self.resumed += u64::from(Mover::is_moving(client)?);
        Ok(())
    }

    fn settle(&mut self, client: &mut Client, problems: &mut Problems) -> Result<bool> {
        let deadline = Instant::now() + TIMEOUT;
        let mut waited = false;
        while Mover::is_moving(client)? {
            waited = true;
            if Instant::now() > deadline {
                return Err(err!("{PHYSICAL} is still being migrated after {TIMEOUT:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // A copy that was being made belongs to a migration; without one there is none.
        for (name, options) in stored(client)? {
            if name.ends_with("_parcels") && options.contains_key("patterns") {
                problems.add(format!("{name} is on its way, and nothing moves it: {options}"));
            }
        }
        Ok(waited)
    }

    fn resumed(&self) -> u64 {
        self.resumed
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

/// The owners, and who moves what they have.
pub fn all() -> Vec<Box<dyn Work>> {
    let mut all: Vec<Box<dyn Work>> = vec![Box::new(Mover::new())];
    all.extend((0..WRITERS).map(|depot| Box::new(Parcels::new(depot)) as Box<dyn Work>));
    all
}
