//! What change streams tell of changes of the catalog (`showExpandedEvents`), and of dropped and renamed collections.

use espalier_kv::Batch;
use espalier_store::{EventKind, IndexSpec, Namespace};
use espalier_value::{DocBuf, RawDoc, ValueRef};

use super::annotation::Teller;
use crate::catalog::Collection;

pub(crate) fn created(teller: Teller, batch: &mut Batch, collection: &Collection) {
    teller.tell(batch, collection, EventKind::Create, |event| {
        let mut description = DocBuf::from_raw(collection.options.listed.as_raw());
        if collection.options.view.is_none() {
            description.append("idIndex", &IndexSpec::id().listed);
        }
        event.description = Some(description);
    });
}

pub(crate) fn dropped_collection(teller: Teller, batch: &mut Batch, collection: &Collection) {
    teller.tell(batch, collection, EventKind::Drop, |_| {});
}

pub(crate) fn renamed(
    teller: Teller,
    batch: &mut Batch,
    collection: &Collection,
    to: &Namespace,
    dropped: Option<&Collection>,
) {
    teller.tell(batch, collection, EventKind::Rename, |event| {
        let mut description = DocBuf::new();
        description.append_doc("to", |doc| {
            doc.append("db", to.db()).append("coll", to.collection());
        });
        if let Some(dropped) = dropped {
            description.append("dropTarget", ValueRef::Binary(4, &dropped.uuid));
        }
        event.description = Some(description);
        event.to = Some(to.clone());
    });
}

/// Indexes on a collection without documents are told one by one, as MongoDB makes them.
pub(crate) fn indexes_created(teller: Teller, batch: &mut Batch, collection: &Collection, ids: &[u64], is_empty: bool) {
    let specs: Vec<&IndexSpec> =
        collection.indexes.iter().filter(|index| ids.contains(&index.id)).map(|index| &index.spec).collect();
    for specs in specs.chunks(if is_empty { 1 } else { specs.len().max(1) }) {
        let told = list(specs.iter().copied());
        teller.tell(batch, collection, EventKind::CreateIndexes, |event| event.description = Some(told));
    }
}

pub(crate) fn dropped_index(teller: Teller, batch: &mut Batch, collection: &Collection, spec: &IndexSpec) {
    teller.tell(batch, collection, EventKind::DropIndexes, |event| event.description = Some(list([spec])));
}

fn list<'s>(specs: impl IntoIterator<Item = &'s IndexSpec>) -> DocBuf {
    let mut description = DocBuf::new();
    description.append_array("indexes", |indexes| {
        for spec in specs {
            // MongoDB's order: whether it is unique comes before the key.
            let listed = spec.listed.as_raw();
            let rank = |name: &str| match name {
                "v" => 0,
                "unique" => 1,
                _ => 2,
            };
            let mut elems: Vec<_> = listed.iter().collect();
            elems.sort_by_key(|elem| rank(elem.name()));
            indexes.push_doc(|doc| {
                for elem in elems {
                    doc.append_elem(elem);
                }
            });
        }
    });
    description
}

/// The options of `collection` became `options`.
pub(crate) fn modified(teller: Teller, batch: &mut Batch, collection: &Collection, options: RawDoc<'_>) {
    let before = collection.options.listed.as_raw();
    teller.tell(batch, collection, EventKind::Modify, |event| {
        let mut description = DocBuf::new();
        for elem in options {
            // The level and action that hold without being named are listed once there is a validator.
            let is_implied = matches!(
                (elem.name(), elem.value().as_str()),
                ("validationLevel", Some("strict")) | ("validationAction", Some("error"))
            );
            if is_implied && before.elem(elem.name()).is_none() {
                continue;
            }
            if before.elem(elem.name()).is_none_or(|old| old.raw() != elem.raw()) {
                description.append_elem(elem);
            }
        }
        event.description = Some(description);
        event.state_before = Some(state(collection, None));
    });
}

/// An index that was `old` became `new`.
pub(crate) fn modified_index(
    teller: Teller,
    batch: &mut Batch,
    collection: &Collection,
    old: &IndexSpec,
    new: &IndexSpec,
) {
    teller.tell(batch, collection, EventKind::Modify, |event| {
        let (mut index, mut was) = (DocBuf::new(), DocBuf::new());
        index.append("name", &new.name);
        if old.hidden != new.hidden {
            index.append("hidden", new.hidden);
            was.append("hidden", old.hidden);
        }
        if old.expire_after_seconds != new.expire_after_seconds {
            let seconds = |spec: &IndexSpec| spec.expire_after_seconds.map(|seconds| seconds as i64);
            if let Some(seconds) = seconds(new) {
                index.append("expireAfterSeconds", seconds);
            }
            if let Some(seconds) = seconds(old) {
                was.append("expireAfterSeconds", seconds);
            }
        }
        let mut description = DocBuf::new();
        description.append("index", &index);
        event.description = Some(description);
        event.state_before = Some(state(collection, Some(&was)));
    });
}

fn state(collection: &Collection, index: Option<&DocBuf>) -> DocBuf {
    let mut state = DocBuf::new();
    state.append_doc("collectionOptions", |doc| {
        doc.append("uuid", ValueRef::Binary(4, &collection.uuid));
        for elem in collection.options.listed.as_raw() {
            doc.append_elem(elem);
        }
    });
    if let Some(index) = index {
        state.append("indexOptions", index);
    }
    state
}
