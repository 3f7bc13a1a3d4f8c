//! Readings in buckets: each is there once, as it was written last, and the figures are those of the readings.

use std::collections::BTreeMap;

use bson::{DateTime, Document, doc};

use super::{DB, Work, of_writer};
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

pub const COLLECTION: &str = "readings";
const DOCUMENTS_MAX: usize = 500;
const SENSORS: i64 = 3;
const MINUTES: i64 = 600;

/// What is known of a reading.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    sensor: i64,
    minute: i64,
    value: i64,
}

impl Reading {
    fn draw(random: &mut Random) -> Reading {
        Reading {
            sensor: random.between(0, SENSORS - 1),
            minute: random.between(0, MINUTES),
            value: random.between(-50, 50),
        }
    }

    fn document(&self, id: i64) -> Document {
        doc! { "_id": id, "s": self.sensor, "ts": minute(self.minute), "v": self.value }
    }

    fn read(document: &Document) -> Option<(i64, Reading)> {
        let ms = document.get_datetime("ts").ok()?.timestamp_millis();
        let reading = Reading { sensor: number(document, "s")?, minute: ms / 60_000, value: number(document, "v")? };
        Some((document.get_i64("_id").ok()?, reading))
    }
}

fn minute(minute: i64) -> DateTime {
    DateTime::from_millis(minute * 60_000)
}

/// Readings of its own, in buckets that all writers share.
pub struct Readings {
    writer: u64,
    readings: Ledger<Reading>,
}

impl Readings {
    pub fn new(writer: u64) -> Readings {
        Readings { writer, readings: Ledger::new(writer) }
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random, count: u64) -> Step {
        let mut documents = Vec::new();
        for _ in 0..count {
            let (id, reading) = (self.readings.fresh_id(), Reading::draw(random));
            documents.push(reading.document(id));
            self.readings.send(id, Some(reading));
        }
        session.expect(DB, &doc! { "insert": COLLECTION, "documents": documents }, "n", count)?;
        self.readings.acknowledge();
        Ok(())
    }

    /// A new value, or another time: then it moves to another window.
    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, mut reading)) = self.readings.any(random) else { return self.insert(session, random, 1) };
        let change = if random.chance(1, 3) {
            reading.minute = random.between(0, MINUTES);
            doc! { "$set": { "ts": minute(reading.minute) } }
        } else {
            reading.value += 1;
            doc! { "$inc": { "v": 1i64 } }
        };
        self.readings.send(id, Some(reading));
        let update = doc! { "q": { "_id": id }, "u": change };
        session.expect(DB, &doc! { "update": COLLECTION, "updates": [update] }, "n", 1)?;
        self.readings.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.readings.any(random) else { return Ok(()) };
        self.readings.send(id, None);
        session.expect(DB, &doc! { "delete": COLLECTION, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.readings.acknowledge();
        Ok(())
    }

    /// What `$group` says of each sensor is what its readings say.
    fn check_figures(&self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut expected = BTreeMap::<i64, (i64, i64, i64)>::new();
        for document in read_all(client, DB, &doc! { "find": COLLECTION, "batchSize": 10_000 })? {
            let Some((_, reading)) = Reading::read(&document) else { continue };
            let (count, sum, most) = expected.entry(reading.sensor).or_insert((0, 0, i64::MIN));
            *count += 1;
            *sum += reading.value;
            *most = reading.value.max(*most);
        }
        let group = doc! {
            "_id": "$s", "n": { "$sum": 1i64 }, "sum": { "$sum": "$v" }, "max": { "$max": "$v" },
        };
        let group = doc! { "aggregate": COLLECTION, "pipeline": [{ "$group": group }], "cursor": {} };
        let figures = |group: &Document| {
            let of = |name| number(group, name);
            Some((of("_id")?, (of("n")?, of("sum")?, of("max")?)))
        };
        let found: BTreeMap<_, _> = read_all(client, DB, &group)?.iter().filter_map(figures).collect();
        if found != expected {
            problems.add(format!("$group gives {found:?} for readings that give {expected:?}"));
        }
        Ok(())
    }
}

impl Work for Readings {
    fn name(&self) -> &'static str {
        "readings"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer == 0 {
            let index = doc! { "key": { "v": 1 }, "name": "v_1" };
            client.must(DB, &doc! { "createIndexes": COLLECTION, "indexes": [index] })?;
        }
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(20) {
            _ if self.readings.known.len() > DOCUMENTS_MAX => self.delete(session, random),
            0..7 => self.insert(session, random, 1),
            7 => {
                let count = 2 + random.below(20);
                self.insert(session, random, count)
            }
            8..16 => self.update(session, random),
            _ => self.delete(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let find = doc! { "find": COLLECTION, "filter": of_writer(self.writer), "batchSize": 10_000 };
        for document in read_all(client, DB, &find)? {
            let Some((id, reading)) = Reading::read(&document) else {
                problems.add(format!("not a reading: {document}"));
                continue;
            };
            if found.insert(id, reading).is_some() {
                problems.add(format!("the reading {id} is there twice"));
            }
        }
        self.readings.judge(COLLECTION, found, problems);
        if self.writer == 0 {
            self.check_figures(client, problems)?;
        }
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.readings.acknowledged
    }
}
