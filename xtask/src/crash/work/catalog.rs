//! Collections, views and indexes come, go and change their names while somebody else updates their documents.
//!
//! After a crash each of them is as it was before the unanswered command or as it is after it: an index is whole or gone,
//! a renamed collection has exactly one of its names.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Bson, Document, doc};

use super::Work;
use crate::client::{Client, is_ok};
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all, wrong};
use crate::error::Result;
use crate::random::Random;

const DBS: [&str; 2] = ["crash_catalog", "crash_catalog_other"];
const NAMES: [&str; 3] = ["one", "two", "three"];
const DOCUMENTS: i64 = 300;
const VIEW: &str = "view";
const INDEXES: [&str; 3] = ["tag_1", "place_1", "touched_-1"];

type Name = (String, String);
type State = BTreeMap<Name, Shape>;

/// What a collection is.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// All its documents carry this tag; `None` while it is empty.
    Collection { tag: Option<i64>, indexes: BTreeSet<String> },
    /// A view on this collection of the same database.
    View { on: String },
}

/// One connection that changes the catalog of two databases.
pub struct Catalog {
    known: State,
    /// What may also be found, while a command is unanswered.
    possible: Vec<State>,
    next_tag: i64,
    acknowledged: u64,
}

impl Catalog {
    pub fn new() -> Catalog {
        Catalog { known: State::new(), possible: Vec::new(), next_tag: 0, acknowledged: 0 }
    }

    fn change(&mut self, session: &mut Session, db: &str, command: &Document, after: State) -> Step {
        self.possible = vec![after.clone()];
        session.must(db, command)?;
        self.acknowledged += 1;
        self.known = after;
        self.possible.clear();
        Ok(())
    }

    fn collections(&self) -> Vec<(Name, Option<i64>, BTreeSet<String>)> {
        let plain = self.known.iter().filter_map(|(name, shape)| match shape {
            Shape::Collection { tag, indexes } => Some((name.clone(), *tag, indexes.clone())),
            Shape::View { .. } => None,
        });
        plain.collect()
    }

    fn make(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let name = (random.pick(&DBS).to_string(), random.pick(&NAMES).to_string());
        if self.known.contains_key(&name) {
            return Ok(());
        }
        let mut after = self.known.clone();
        after.insert(name.clone(), Shape::Collection { tag: None, indexes: BTreeSet::new() });
        self.change(session, &name.0, &doc! { "create": &name.1 }, after)
    }

    fn fill(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let empty: Vec<_> = self.collections().into_iter().filter(|(_, tag, _)| tag.is_none()).collect();
        let Some((name, _, indexes)) = empty.get(random.below(empty.len() as u64) as usize).cloned() else {
            return self.make(session, random);
        };
        self.next_tag += 1;
        let tag = self.next_tag;
        let documents: Vec<Bson> = (0..DOCUMENTS)
            .map(|id| doc! { "_id": id, "tag": tag, "place": DOCUMENTS - id, "touched": 0 }.into())
            .collect();
        let mut after = self.known.clone();
        after.insert(name.clone(), Shape::Collection { tag: Some(tag), indexes });
        self.change(session, &name.0, &doc! { "insert": &name.1, "documents": documents }, after)
    }

    fn toggle_index(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let all = self.collections();
        let Some((name, tag, mut indexes)) = all.get(random.below(all.len() as u64) as usize).cloned() else {
            return self.make(session, random);
        };
        let index = random.pick(&INDEXES).to_string();
        let command = if indexes.remove(&index) {
            doc! { "dropIndexes": &name.1, "index": &index }
        } else {
            indexes.insert(index.clone());
            let (field, direction) = index.rsplit_once('_').unwrap_or((&index, "1"));
            let key = doc! { field: direction.parse::<i32>().unwrap_or(1) };
            let unique = field == "place";
            doc! { "createIndexes": &name.1, "indexes": [{ "key": key, "name": &index, "unique": unique }] }
        };
        let mut after = self.known.clone();
        after.insert(name.clone(), Shape::Collection { tag, indexes });
        self.change(session, &name.0, &command, after)
    }

    /// In the same database or into the other, where nothing is or over what is there.
    fn rename(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let all = self.collections();
        let Some((from, ..)) = all.get(random.below(all.len() as u64) as usize).cloned() else { return Ok(()) };
        let to = (random.pick(&DBS).to_string(), random.pick(&NAMES).to_string());
        if from == to {
            return Ok(());
        }
        let command = doc! {
            "renameCollection": format!("{}.{}", from.0, from.1), "to": format!("{}.{}", to.0, to.1), "dropTarget": true,
        };
        let mut after = self.known.clone();
        if let Some(shape) = after.remove(&from) {
            after.insert(to, shape);
        }
        self.change(session, "admin", &command, after)
    }

    fn drop(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let names: Vec<Name> = self.known.keys().cloned().collect();
        let Some(name) = names.get(random.below(names.len() as u64) as usize).cloned() else { return Ok(()) };
        let mut after = self.known.clone();
        after.remove(&name);
        self.change(session, &name.0, &doc! { "drop": &name.1 }, after)
    }

    fn make_view(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let all = self.collections();
        let Some((on, ..)) = all.get(random.below(all.len() as u64) as usize).cloned() else { return Ok(()) };
        let name = (on.0.clone(), VIEW.to_owned());
        if self.known.contains_key(&name) {
            return Ok(());
        }
        let mut after = self.known.clone();
        after.insert(name, Shape::View { on: on.1.clone() });
        let pipeline = vec![doc! { "$match": { "place": { "$lte": 100 } } }];
        self.change(session, &on.0, &doc! { "create": VIEW, "viewOn": &on.1, "pipeline": pipeline }, after)
    }

    /// Collections go one after the other: any of them may be gone when there was no answer.
    fn drop_database(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let db = *random.pick(&DBS);
        let names: Vec<Name> = self.known.keys().filter(|name| name.0 == db).cloned().collect();
        self.possible = (0..1u32 << names.len())
            .map(|gone| {
                let mut state = self.known.clone();
                names.iter().enumerate().filter(|(at, _)| gone & (1 << at) != 0).for_each(|(_, name)| {
                    state.remove(name);
                });
                state
            })
            .collect();
        session.must(db, &doc! { "dropDatabase": 1 })?;
        self.acknowledged += 1;
        self.known.retain(|name, _| name.0 != db);
        self.possible.clear();
        Ok(())
    }
}

impl Work for Catalog {
    fn name(&self) -> &'static str {
        "catalog"
    }

    fn prepare(&mut self, _client: &mut Client) -> Result<()> {
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(100) {
            0..18 => self.make(session, random),
            18..43 => self.fill(session, random),
            43..73 => self.toggle_index(session, random),
            73..86 => self.rename(session, random),
            86..91 => self.drop(session, random),
            91..96 => self.make_view(session, random),
            _ => self.drop_database(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = State::new();
        for db in DBS {
            let list = read_all(client, db, &doc! { "listCollections": 1 })?;
            for info in list {
                let name = info.get_str("name")?.to_owned();
                if name.starts_with("system.") {
                    continue;
                }
                let shape = look(client, db, &name, &info, problems)?;
                found.insert((db.to_owned(), name), shape);
            }
        }
        if found != self.known && !self.possible.contains(&found) {
            let (known, possible) = (&self.known, self.possible.last());
            problems.add(format!("the catalog was {known:?}, may be {possible:?}, found {found:?}"));
        }
        self.known = found;
        self.possible.clear();
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

/// What a collection is, its documents and indexes included.
fn look(client: &mut Client, db: &str, name: &str, info: &Document, problems: &mut Problems) -> Result<Shape> {
    let documents = read_all(client, db, &doc! { "find": name, "batchSize": 1_000 })?;
    problems.checked += 1 + documents.len() as u64;
    if info.get_str("type").ok() == Some("view") {
        let on = info.get_document("options")?.get_str("viewOn")?.to_owned();
        let source = doc! { "find": &on, "filter": { "place": { "$lte": 100 } }, "batchSize": 1_000 };
        let source = read_all(client, db, &source)?;
        if source.len() != documents.len() {
            problems.add(format!("the view {db}.{name} shows {} of {}", documents.len(), source.len()));
        }
        return Ok(Shape::View { on });
    }
    let tags: BTreeSet<i64> = documents.iter().filter_map(|document| number(document, "tag")).collect();
    let count = documents.len() as i64;
    if tags.len() > 1 || (count != 0 && count != DOCUMENTS) {
        problems.add(format!("{db}.{name} has {count} documents with the tags {tags:?}"));
    }
    let listed = read_all(client, db, &doc! { "listIndexes": name })?;
    let indexes: BTreeSet<String> =
        listed.iter().filter_map(|index| index.get_str("name").ok()).map(str::to_owned).collect();
    for index in &indexes {
        let by_index = doc! { "find": name, "hint": index, "projection": { "_id": 1 }, "batchSize": 1_000 };
        let by_index = read_all(client, db, &by_index)?;
        if by_index.len() as i64 != count {
            problems.add(format!("{db}.{name} has {count} documents, its index {index} {}", by_index.len()));
        }
    }
    let indexes = indexes.into_iter().filter(|index| index != "_id_").collect();
    Ok(Shape::Collection { tag: tags.first().copied(), indexes })
}

/// Updates documents of those collections all the time, whatever they are called at the moment. Never makes one.
pub struct Disturber {
    acknowledged: u64,
}

impl Disturber {
    pub fn new() -> Disturber {
        Disturber { acknowledged: 0 }
    }
}

/// What a write may meet whose collection is dropped or renamed, or becomes a view, at that moment.
const DISTURBED: [i32; 5] = [26, 112, 166, 175, 276];

impl Work for Disturber {
    fn name(&self) -> &'static str {
        "disturber"
    }

    fn prepare(&mut self, _client: &mut Client) -> Result<()> {
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let (db, name) = (*random.pick(&DBS), *random.pick(&NAMES));
        let id = random.between(0, DOCUMENTS - 1);
        let change = doc! { "$inc": { "touched": 1 }, "$set": { "list": [id, id + 1] } };
        let command = match random.below(10) {
            0 => doc! { "update": name, "updates": [{ "q": { "touched": { "$lt": 3 } }, "u": change, "multi": true }] },
            1..4 => doc! { "findAndModify": name, "query": { "_id": id }, "update": change },
            _ => doc! { "update": name, "updates": [{ "q": { "_id": id }, "u": change }] },
        };
        let reply = session.run(db, &command)?;
        let code = crate::crash::session::code(&reply);
        if code.is_some_and(|code| !DISTURBED.contains(&code)) || (code.is_none() && !is_ok(&reply)) {
            return Err(wrong(&command, &reply));
        }
        self.acknowledged += 1;
        Ok(())
    }

    fn check(&mut self, _client: &mut Client, _problems: &mut Problems) -> Result<()> {
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}
