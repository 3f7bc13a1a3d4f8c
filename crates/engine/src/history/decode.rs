//! Reading annotations back: from a record of the log to the events that somebody watches.

use std::collections::VecDeque;

use espalier_kv::varint::{self, Reader};
use espalier_kv::{Entry, Record};
use espalier_store::{Event, EventKind, Happening, Namespace, TransactionId, Watch};
use espalier_value::{DocBuf, RawDoc, ValueRef};

use super::annotation::{
    ANNOUNCED, CATALOG, COLLECTION, DELETE, INSERTS, REPLACE, SILENT, TRANSACTION, UPDATE, VERSION,
};
use crate::layout::RECORD_KEY_BYTES;
use crate::txn::id_of;

struct Named {
    tree: u64,
    ns: Namespace,
    uuid: [u8; 16],
    watched: bool,
}

/// Appends the record's events that are watched. `None` if the annotation makes no sense.
pub(super) fn decode(record: &Record<'_>, watch: &Watch, out: &mut VecDeque<Event>) -> Option<()> {
    if record.annotation.is_empty() {
        return Some(());
    }
    let mut reader = Reader::new(record.annotation);
    if reader.u8()? != VERSION {
        return None;
    }
    let wall_ms = varint::unzigzag(reader.varint()?);
    let mut writes = Writes { entries: record.entries() };
    let mut named: Vec<Named> = Vec::new();
    let mut transaction = None;
    let mut index = 0;
    while !reader.is_empty() {
        let tag = reader.u8()?;
        let silent = tag & SILENT != 0;
        let shown = watch.raw || !silent;
        let mut event = |uuid: Option<[u8; 16]>, what: Happening, at: u32| {
            let transaction: &Option<TransactionId> = &transaction;
            out.push_back(Event {
                stamp: record.stamp,
                index: at,
                wall_ms,
                transaction: transaction.clone(),
                uuid,
                what,
            });
        };
        match tag & !SILENT {
            TRANSACTION => {
                let doc = document(&mut reader)?;
                let lsid = DocBuf::from_raw(doc.get_doc("lsid")?);
                let Some(ValueRef::Int64(number)) = doc.get("number") else { return None };
                transaction = Some(TransactionId { lsid, number });
            }
            COLLECTION => {
                let tree = reader.varint()?;
                let db = std::str::from_utf8(reader.slice()?).ok()?;
                let ns = Namespace::new(db, std::str::from_utf8(reader.slice()?).ok()?);
                let uuid = reader.take(16)?.try_into().ok()?;
                let watched = watch.scope.holds(&ns);
                named.push(Named { tree, ns, uuid, watched });
            }
            INSERTS => {
                let collection = named.get(usize::try_from(reader.varint()?).ok()?)?;
                for _ in 0..reader.varint()? {
                    let put = writes.next(collection.tree)?;
                    if shown && collection.watched {
                        let doc = RawDoc::new(put?)?;
                        let mut what = Happening::new(collection.ns.clone(), EventKind::Insert);
                        what.key = Some(key_of(doc));
                        what.document = Some(DocBuf::from_raw(doc));
                        event(Some(collection.uuid), what, index);
                    }
                    index += 1;
                }
            }
            kind @ (UPDATE | REPLACE | DELETE) => {
                let collection = named.get(usize::try_from(reader.varint()?).ok()?)?;
                // The description of an update, the key of a deletion.
                let own = if kind == REPLACE { None } else { Some(document(&mut reader)?) };
                let before = reader.slice()?;
                let put = writes.next(collection.tree)?;
                if shown && collection.watched {
                    let what = match kind {
                        UPDATE => EventKind::Update,
                        REPLACE => EventKind::Replace,
                        _ => EventKind::Delete,
                    };
                    let mut what = Happening::new(collection.ns.clone(), what);
                    match (kind, own) {
                        (DELETE, Some(key)) => what.key = Some(DocBuf::from_raw(key)),
                        (_, description) => {
                            let doc = RawDoc::new(put?)?;
                            what.key = Some(key_of(doc));
                            what.document = Some(DocBuf::from_raw(doc));
                            what.description = description.map(DocBuf::from_raw);
                        }
                    }
                    what.before = if before.is_empty() { None } else { Some(DocBuf::from_raw(RawDoc::new(before)?)) };
                    event(Some(collection.uuid), what, index);
                }
                index += 1;
            }
            kind @ (CATALOG | ANNOUNCED) => {
                let (what, uuid) = happening(document(&mut reader)?)?;
                let shown = if kind == ANNOUNCED { !watch.raw } else { shown };
                let concerns = watch.scope.holds(&what.ns) || what.to.as_ref().is_some_and(|to| watch.scope.holds(to));
                if shown && concerns {
                    event(uuid, what, index);
                }
                index += 1;
            }
            _ => return None,
        }
    }
    Some(())
}

/// The record's operations on documents.
struct Writes<I> {
    entries: I,
}

impl<'r, I: Iterator<Item = Entry<'r>>> Writes<I> {
    /// The next write to a collection's tree: the document, or `None` for a deletion.
    fn next(&mut self, tree: u64) -> Option<Option<&'r [u8]>> {
        let tree = tree.to_be_bytes();
        let is_record = |key: &[u8]| key.len() == RECORD_KEY_BYTES && key.starts_with(&tree);
        self.entries.find_map(|entry| match entry {
            Entry::Put { key, value } if is_record(key) => Some(Some(value)),
            Entry::Delete { key } if is_record(key) => Some(None),
            _ => None,
        })
    }
}

fn document<'r>(reader: &mut Reader<'r>) -> Option<RawDoc<'r>> {
    RawDoc::new(reader.slice()?)
}

fn key_of(doc: RawDoc<'_>) -> DocBuf {
    let mut key = DocBuf::new();
    key.append("_id", id_of(doc));
    key
}

fn happening(doc: RawDoc<'_>) -> Option<(Happening, Option<[u8; 16]>)> {
    let kind = doc.get_str("kind")?;
    let kind = EventKind::ALL.into_iter().find(|known| known.name() == kind)?;
    let part = |name: &str| doc.get_doc(name).map(DocBuf::from_raw);
    let what = Happening {
        ns: Namespace::new(doc.get_str("db")?, doc.get_str("collection")?),
        kind,
        key: part("key"),
        document: part("document"),
        before: part("before"),
        description: part("description"),
        state_before: part("stateBefore"),
        to: doc.get_str("toDb").zip(doc.get_str("toCollection")).map(|(db, name)| Namespace::new(db, name)),
    };
    let uuid = match doc.get("uuid") {
        Some(ValueRef::Binary(_, bytes)) => Some(bytes.try_into().ok()?),
        _ => None,
    };
    Some((what, uuid))
}
