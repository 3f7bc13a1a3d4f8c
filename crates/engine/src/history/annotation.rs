//! Writing annotations: what the log record of a commit says to change streams beside its operations.
//!
//! ```text
//! version u8, wall time in milliseconds (varint), then items:
//! 1  document {lsid, number}                     the client's transaction
//! 2  tree varint, db, collection, uuid           a collection; items refer to it by its number in the record
//! 3  collection, count                           inserts: the next `count` writes to the collection's tree
//! 4  collection, description, before             an update: the next write
//! 5  collection, before                          a replacement: the next write
//! 6  collection, documentKey, before             a deletion: the next write
//! 7  document                                    a change of the catalog
//! 8  document                                    an event that a layer above the store announced
//! ```
//!
//! Texts and documents have a varint length before them; `before` is empty unless the collection keeps pre-images. An
//! item with the high bit set is silent: it tells what was stored, and only to those who ask for that. Inserted and
//! updated documents are not repeated: they are in the record's operations, in the same order.

use espalier_kv::{Batch, varint};
use espalier_query::update::Description;
use espalier_store::{EventKind, Happening, TransactionId};
use espalier_value::{DocBuf, RawDoc, ValueRef};

use crate::catalog::Collection;
use crate::txn::id_of;

pub(super) const VERSION: u8 = 1;
pub(super) const TRANSACTION: u8 = 1;
pub(super) const COLLECTION: u8 = 2;
pub(super) const INSERTS: u8 = 3;
pub(super) const UPDATE: u8 = 4;
pub(super) const REPLACE: u8 = 5;
pub(super) const DELETE: u8 = 6;
pub(super) const CATALOG: u8 = 7;
pub(super) const ANNOUNCED: u8 = 8;
pub(super) const SILENT: u8 = 0x80;

/// The annotation of a batch in the making.
#[derive(Default)]
pub(crate) struct Notes {
    pub wall_ms: i64,
    pub silent: bool,
    pub identity: Option<TransactionId>,
    /// The trees of the collections that were named, by their numbers.
    named: Vec<u64>,
    /// Inserts that are not written yet, so that many in a row take no more room than one.
    inserts: Option<Inserts>,
}

#[derive(Clone, Copy)]
struct Inserts {
    collection: u64,
    count: u64,
    silent: bool,
}

impl Notes {
    pub fn inserted(&mut self, batch: &mut Batch, collection: &Collection) {
        let (number, silent) = (self.number(batch, collection), self.silent);
        match &mut self.inserts {
            Some(run) if run.collection == number && run.silent == silent => run.count += 1,
            _ => {
                self.finish(batch);
                self.inserts = Some(Inserts { collection: number, count: 1, silent });
            }
        }
    }

    pub fn updated(&mut self, batch: &mut Batch, collection: &Collection, what: &Description, before: RawDoc<'_>) {
        let number = self.number(batch, collection);
        self.finish(batch);
        let out = batch.annotation();
        match what {
            Description::Updated(description) => {
                self.item(out, UPDATE, number);
                varint::put_slice(out, description.as_bytes());
            }
            Description::Replaced => self.item(out, REPLACE, number),
        }
        varint::put_slice(out, kept(collection, before));
    }

    pub fn deleted(&mut self, batch: &mut Batch, collection: &Collection, before: RawDoc<'_>) {
        let number = self.number(batch, collection);
        self.finish(batch);
        let out = batch.annotation();
        self.item(out, DELETE, number);
        let mut key = DocBuf::new();
        key.append("_id", id_of(before));
        varint::put_slice(out, key.as_bytes());
        varint::put_slice(out, kept(collection, before));
    }

    pub fn announced(&mut self, batch: &mut Batch, event: &Happening, uuid: Option<[u8; 16]>) {
        self.prepare(batch);
        let out = batch.annotation();
        out.push(ANNOUNCED);
        varint::put_slice(out, document(event, uuid).as_bytes());
    }

    /// For an item that is written without the help of these notes.
    pub fn prepare(&mut self, batch: &mut Batch) {
        self.begin(batch);
        self.finish(batch);
    }

    /// Writes what is held back; called before the batch is committed.
    pub fn finish(&mut self, batch: &mut Batch) {
        if let Some(run) = self.inserts.take() {
            let out = batch.annotation();
            out.push(INSERTS | if run.silent { SILENT } else { 0 });
            varint::put(out, run.collection);
            varint::put(out, run.count);
        }
    }

    fn item(&self, out: &mut Vec<u8>, tag: u8, collection: u64) {
        out.push(tag | if self.silent { SILENT } else { 0 });
        varint::put(out, collection);
    }

    fn begin(&self, batch: &mut Batch) {
        let out = batch.annotation();
        if !out.is_empty() {
            return;
        }
        begin(out, self.wall_ms);
        if let Some(identity) = &self.identity {
            let mut doc = DocBuf::new();
            doc.append("lsid", &identity.lsid).append("number", identity.number);
            out.push(TRANSACTION);
            varint::put_slice(out, doc.as_bytes());
        }
    }

    /// The collection's number; names it if it has none yet.
    fn number(&mut self, batch: &mut Batch, collection: &Collection) -> u64 {
        if let Some(number) = self.named.iter().position(|id| *id == collection.id) {
            return number as u64;
        }
        self.prepare(batch);
        let out = batch.annotation();
        out.push(COLLECTION);
        varint::put(out, collection.id);
        varint::put_slice(out, collection.ns.db().as_bytes());
        varint::put_slice(out, collection.ns.collection().as_bytes());
        out.extend_from_slice(&collection.uuid);
        self.named.push(collection.id);
        self.named.len() as u64 - 1
    }
}

/// How a change of the catalog is noted.
#[derive(Clone, Copy)]
pub(crate) struct Teller {
    pub wall_ms: i64,
    pub silent: bool,
}

impl Teller {
    /// Notes it in the batch that makes it.
    pub fn tell(self, batch: &mut Batch, collection: &Collection, kind: EventKind, fill: impl FnOnce(&mut Happening)) {
        let mut event = Happening::new(collection.ns.clone(), kind);
        fill(&mut event);
        // A view has none that clients see.
        let uuid = collection.options.view.is_none().then_some(collection.uuid);
        let out = batch.annotation();
        if out.is_empty() {
            begin(out, self.wall_ms);
        }
        out.push(CATALOG | if self.silent { SILENT } else { 0 });
        varint::put_slice(out, document(&event, uuid).as_bytes());
    }
}

fn begin(out: &mut Vec<u8>, wall_ms: i64) {
    out.push(VERSION);
    varint::put(out, varint::zigzag(wall_ms));
}

/// The document as it was, if the collection wants that to be known.
fn kept<'d>(collection: &Collection, before: RawDoc<'d>) -> &'d [u8] {
    if collection.options.pre_images { before.as_bytes() } else { &[] }
}

fn document(event: &Happening, uuid: Option<[u8; 16]>) -> DocBuf {
    let mut doc = DocBuf::with_capacity(256);
    doc.append("kind", event.kind.name()).append("db", event.ns.db()).append("collection", event.ns.collection());
    if let Some(uuid) = &uuid {
        doc.append("uuid", ValueRef::Binary(4, uuid));
    }
    let parts = [
        ("key", &event.key),
        ("document", &event.document),
        ("before", &event.before),
        ("description", &event.description),
        ("stateBefore", &event.state_before),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            doc.append(name, part);
        }
    }
    if let Some(to) = &event.to {
        doc.append("toDb", to.db()).append("toCollection", to.collection());
    }
    doc
}
