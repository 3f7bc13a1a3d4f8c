//! Changing the catalog: collections and indexes come and go.

use std::sync::Arc;
use std::time::Duration;

use espalier_kv::Batch;
use espalier_store::{CollectionOptions, Follow, IndexKind, IndexSpec, Namespace};
use espalier_value::{Code, DocBuf, Error, Result};

use super::{Txn, create};
use crate::build;
use crate::catalog::persist::{self, parse_validator};
use crate::catalog::{Catalog, Collection, Counts, Index, Live};
use crate::core::{Core, EngineOptions};
use crate::error::write_conflict;
use crate::history::{self, Teller};

/// How often a client that asks for an index looks whether another's build of it has ended.
const BUILD_POLL: Duration = Duration::from_millis(5);

pub fn is_a_view(ns: &Namespace) -> Error {
    Error::new(Code::CommandNotSupportedOnView, format!("Namespace {ns} is a view, not a collection"))
}

/// The collection, created if it is not there.
pub fn get_or_create(txn: &mut Txn, ns: &Namespace) -> Result<Arc<Collection>> {
    if let Some(collection) = txn.existing(ns) {
        txn.refuse_view(ns)?;
        return Ok(collection);
    }
    if !txn.is_auto() {
        return create::create(txn, ns, &CollectionOptions::default());
    }
    let (core, teller, raw) = (txn.core.clone(), txn.teller(), txn.begin.raw);
    create::wait_for_name(txn, ns)?;
    let (_, token) = core.change_catalog(|catalog, batch| {
        if catalog.get(ns).is_none() {
            if !raw && catalog.layer(ns).is_some() {
                // A layer answers for the name, and must be asked first.
                return Err(write_conflict());
            }
            add_collection(&core, catalog, batch, ns, &CollectionOptions::default(), teller)?;
        }
        Ok(())
    })?;
    txn.last = txn.last.max(token);
    txn.refresh();
    if !txn.begin.raw && txn.existing(ns).is_some_and(|collection| collection.options.layer.is_some()) {
        // Somebody else created it meanwhile, with a layer that must be asked first.
        return Err(write_conflict());
    }
    txn.existing(ns)
        .ok_or_else(|| Error::new(Code::NamespaceNotFound, format!("Collection [{ns}] was dropped meanwhile")))
}

pub fn create(txn: &mut Txn, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
    if !txn.is_auto() {
        return match txn.existing(ns) {
            Some(there) => same_options(&there, options),
            None => create::create(txn, ns, options).map(drop),
        };
    }
    let (core, teller) = (txn.core.clone(), txn.teller());
    create::wait_for_name(txn, ns)?;
    change(txn, |catalog, batch| match catalog.get(ns) {
        Some(there) => same_options(there, options),
        None => add_collection(&core, catalog, batch, ns, options, teller),
    })
}

fn same_options(there: &Collection, options: &CollectionOptions) -> Result<()> {
    if there.options.listed == options.listed {
        return Ok(());
    }
    let (ns, listed) = (&there.ns, there.options.listed.as_raw());
    Err(Error::new(Code::NamespaceExists, format!("Collection {ns} already exists with different options: {listed}")))
}

fn add_collection(
    core: &Core,
    catalog: &mut Catalog,
    batch: &mut Batch,
    ns: &Namespace,
    options: &CollectionOptions,
    teller: Teller,
) -> Result<()> {
    let collection = new_collection(core, catalog, ns, options)?;
    history::created(teller, batch, &collection);
    put(catalog, batch, collection);
    Ok(())
}

/// Refuses an index on too many fields.
pub fn check_fields(options: &EngineOptions, spec: &IndexSpec) -> Result<()> {
    let (fields, max) = (spec.parts.len(), options.index_fields_max);
    if fields <= max {
        return Ok(());
    }
    let message = format!("an index has at most {max} fields (--max-index-fields), {} has {fields}", spec.name);
    Err(Error::new(Code(13103), message))
}

/// Refuses names that are too long for this server.
fn check_name(core: &Core, ns: &Namespace) -> Result<()> {
    let (db_max, ns_max) = (core.options.database_name_bytes_max, core.options.namespace_bytes_max);
    let too_long = |what: &str, len: usize, max: usize, flag: &str| {
        let message = format!("{what} is {len} bytes long, longer than the limit of {max} bytes ({flag})");
        Err(Error::new(Code::InvalidNamespace, message))
    };
    if ns.db().len() > db_max {
        let what = format!("the database name '{}'", ns.db());
        return too_long(&what, ns.db().len(), db_max, "--max-database-name-bytes");
    }
    let len = ns.db().len() + 1 + ns.collection().len();
    if len > ns_max {
        return too_long(&format!("the name '{ns}'"), len, ns_max, "--max-namespace-bytes");
    }
    Ok(())
}

/// An empty collection with its `_id` index.
pub fn new_collection(
    core: &Core,
    catalog: &Catalog,
    ns: &Namespace,
    options: &CollectionOptions,
) -> Result<Collection> {
    if catalog.len() >= core.options.collections_max {
        return Err(Error::new(
            Code::OperationFailed,
            format!(
                "there are {} collections already, the limit of this server (--max-collections)",
                core.options.collections_max
            ),
        ));
    }
    check_name(core, ns)?;
    let id = core.take_tree();
    Ok(Collection {
        id,
        ns: ns.clone(),
        uuid: new_uuid(id),
        validator: parse_validator(options)?,
        options: options.clone(),
        indexes: vec![Arc::new(Index::new(core.take_tree(), IndexSpec::id_of(&options.collation), 0, false))],
        live: Arc::new(Live::new(1, Counts::default())),
    })
}

/// Stores a collection's entry and makes it the current one.
pub fn put(catalog: &mut Catalog, batch: &mut Batch, collection: Collection) {
    batch.put(&collection.guard_key(), persist::encode(&collection).as_bytes());
    catalog.put(Arc::new(collection));
}

pub fn drop_collection(txn: &mut Txn, ns: &Namespace) -> Result<bool> {
    let teller = txn.teller();
    change(txn, |catalog, batch| {
        let Some(collection) = catalog.get(ns).cloned() else { return Ok(false) };
        history::dropped_collection(teller, batch, &collection);
        remove(catalog, batch, &collection);
        Ok(true)
    })
}

fn remove(catalog: &mut Catalog, batch: &mut Batch, collection: &Collection) {
    batch.delete(&collection.guard_key());
    batch.delete(&collection.counts_key());
    batch.drop_tree(collection.id);
    collection.indexes.iter().for_each(|index| batch.drop_tree(index.id));
    catalog.remove(&collection.ns);
}

pub fn rename(txn: &mut Txn, from: &Namespace, to: &Namespace, drop_target: bool, follow: &Follow<'_>) -> Result<()> {
    let teller = txn.teller();
    let core = txn.core().clone();
    change(txn, |catalog, batch| {
        let Some(collection) = catalog.get(from).cloned() else {
            return Err(Error::new(Code::NamespaceNotFound, format!("Source collection {from} does not exist")));
        };
        if collection.options.view.is_some() {
            return Err(is_a_view(from));
        }
        check_name(&core, to)?;
        if from == to {
            return Err(Error::new(Code::IllegalOperation, "Can't rename a collection to itself"));
        }
        if let Some(index) = collection.indexes.iter().find(|index| index.building) {
            return Err(Error::new(
                Code::BackgroundOperationInProgressForNamespace,
                format!("cannot rename {from} while its index {} is being built", index.spec.name),
            ));
        }
        let target = catalog.get(to).cloned();
        match &target {
            Some(target) if target.options.view.is_some() => {
                let message = format!("a view already exists with that name: {to}");
                return Err(Error::new(Code::NamespaceExists, message));
            }
            Some(target) if drop_target => remove(catalog, batch, target),
            Some(_) => return Err(Error::new(Code::NamespaceExists, "target namespace exists")),
            None => {}
        }
        history::renamed(teller, batch, &collection, to, target.as_deref());
        catalog.remove(from);
        put(catalog, batch, Collection { ns: to.clone(), ..Collection::clone(&collection) });
        let others: Vec<_> = catalog.iter().filter(|c| c.ns.db() == from.db() && c.ns != *to).cloned().collect();
        for other in others {
            let Some(options) = follow(other.ns.collection(), &other.options)? else { continue };
            let validator = parse_validator(&options)?;
            history::modified(teller, batch, &other, options.listed.as_raw());
            put(catalog, batch, Collection { options, validator, ..Collection::clone(&other) });
        }
        Ok(())
    })
}

pub fn set_options(txn: &mut Txn, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
    let validator = parse_validator(options)?;
    let teller = txn.teller();
    change(txn, |catalog, batch| {
        let collection = named(catalog, ns)?;
        history::modified(teller, batch, &collection, options.listed.as_raw());
        put(catalog, batch, Collection { options: options.clone(), validator, ..Collection::clone(&collection) });
        Ok(())
    })
}

pub fn set_options_together(txn: &mut Txn, all: &[(Namespace, CollectionOptions)], emptied: &Namespace) -> Result<()> {
    let validators = all.iter().map(|(_, options)| parse_validator(options)).collect::<Result<Vec<_>>>()?;
    let (core, teller) = (txn.core.clone(), txn.teller());
    change(txn, |catalog, batch| {
        for ((ns, options), validator) in all.iter().zip(validators) {
            let collection = named(catalog, ns)?;
            history::modified(teller, batch, &collection, options.listed.as_raw());
            put(catalog, batch, Collection { options: options.clone(), validator, ..Collection::clone(&collection) });
        }
        let collection = named(catalog, emptied)?;
        remove(catalog, batch, &collection);
        put(catalog, batch, empty(&core, &collection));
        Ok(())
    })
}

/// The same collection without its documents: what is stored from now on lies elsewhere, and whoever writes to the old place
/// at the same time notices.
fn empty(core: &Core, collection: &Collection) -> Collection {
    // Of no documents every index is complete.
    let again = |index: &Arc<Index>| Arc::new(Index::new(core.take_tree(), index.spec.clone(), 0, false));
    Collection {
        id: core.take_tree(),
        indexes: collection.indexes.iter().map(again).collect(),
        live: Arc::new(Live::new(1, Counts::default())),
        ..Collection::clone(collection)
    }
}

pub fn create_indexes(txn: &mut Txn, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
    if !txn.is_auto() {
        return create::create_indexes(txn, ns, specs);
    }
    get_or_create(txn, ns)?;
    let core = txn.core.clone();
    let (before, new) = loop {
        let begun = change(txn, |catalog, batch| begin_indexes(&core, catalog, batch, ns, specs))?;
        match begun {
            Begun::Added { before, new } => break (before, new),
            Begun::InProgress(id) => wait_for_build(txn, ns, id)?,
        }
    };
    let after = before + new.len();
    if !new.is_empty() {
        match build::build(&core, ns, &new, &txn.begin.context, txn.teller()) {
            Ok(opened) => txn.last = txn.last.max(opened),
            Err(error) => {
                take_back(txn, ns, &new)?;
                return Err(error);
            }
        }
    }
    txn.refresh();
    Ok((before, after))
}

/// What became of the request for indexes.
enum Begun {
    /// They are in the catalog, to be filled.
    Added { before: usize, new: Vec<u64> },
    /// Another client is building one of them.
    InProgress(u64),
}

fn begin_indexes(
    core: &Core,
    catalog: &mut Catalog,
    batch: &mut Batch,
    ns: &Namespace,
    specs: &[IndexSpec],
) -> Result<Begun> {
    let mut collection = Collection::clone(&*named(catalog, ns)?);
    let before = collection.indexes.len();
    let mut new = Vec::new();
    for spec in specs {
        let spec = spec.on(&collection.options.collation)?;
        match existing(&collection, &spec)? {
            Some(index) if index.building && !new.contains(&index.id) => return Ok(Begun::InProgress(index.id)),
            Some(_) => continue,
            None => {}
        }
        check_fields(&core.options, &spec)?;
        if collection.indexes.len() >= core.options.indexes_max {
            return Err(Error::new(
                Code::CannotCreateIndex,
                format!("add index fails, too many indexes for {ns} key:{}", spec.key()),
            ));
        }
        let index = Arc::new(Index::new(core.take_tree(), spec.clone(), 0, true));
        new.push(index.id);
        collection.indexes.push(index);
    }
    if !new.is_empty() {
        put(catalog, batch, collection);
    }
    Ok(Begun::Added { before, new })
}

/// Returns when another client's build of this index has ended, one way or the other.
fn wait_for_build(txn: &mut Txn, ns: &Namespace, id: u64) -> Result<()> {
    loop {
        txn.begin.context.interrupt.check()?;
        txn.refresh();
        let index = txn.existing(ns).and_then(|c| c.indexes.iter().find(|i| i.id == id).cloned());
        if !index.is_some_and(|index| index.building) {
            return Ok(());
        }
        std::thread::sleep(BUILD_POLL);
    }
}

/// All or none: takes back indexes that were begun.
fn take_back(txn: &mut Txn, ns: &Namespace, ids: &[u64]) -> Result<()> {
    change(txn, |catalog, batch| {
        let Some(collection) = catalog.get(ns) else { return Ok(()) };
        let mut collection = Collection::clone(collection);
        let begun = collection.indexes.len();
        collection.indexes.retain(|index| !ids.contains(&index.id));
        // Dropped meanwhile, alone or with the collection: their trees are gone already.
        if collection.indexes.len() < begun {
            ids.iter().for_each(|id| batch.drop_tree(*id));
            put(catalog, batch, collection);
        }
        Ok(())
    })
}

/// The same index if it is there already; an error if one with the same name or the same entries is another.
pub fn existing<'c>(collection: &'c Collection, spec: &IndexSpec) -> Result<Option<&'c Arc<Index>>> {
    for index in &collection.indexes {
        let there = &index.spec;
        let same = signature(there) == signature(spec);
        if there.name == spec.name {
            if same && there.expire_after_seconds == spec.expire_after_seconds {
                return Ok(Some(index));
            }
            let (code, what) = match same {
                true => (
                    Code::IndexOptionsConflict,
                    "An equivalent index already exists with the same name but different options.",
                ),
                false => (
                    Code::IndexKeySpecsConflict,
                    "An existing index has the same name as the requested index. When index names are not specified, \
                     they are auto generated and can cause conflicts. Please refer to our documentation.",
                ),
            };
            let (requested, existing) = (spec.listed.as_raw(), there.listed.as_raw());
            return Err(Error::new(code, format!("{what} Requested index: {requested}, existing index: {existing}")));
        }
        if same {
            return Err(Error::new(
                Code::IndexOptionsConflict,
                format!("Index already exists with a different name: {}", there.name),
            ));
        }
    }
    Ok(None)
}

/// What tells two indexes apart: the key with its directions, and which documents they hold how.
fn signature(spec: &IndexSpec) -> Vec<u8> {
    let mut doc = DocBuf::new();
    for part in &spec.parts {
        let direction = match part.kind {
            IndexKind::Ascending => 1,
            IndexKind::Descending => -1,
            IndexKind::Wildcard => 0,
        };
        doc.append(part.path.as_str(), direction);
    }
    doc.append("unique", spec.unique).append("sparse", spec.sparse);
    for name in ["partialFilterExpression", "wildcardProjection", "collation"] {
        if let Some(elem) = spec.listed.as_raw().elem(name) {
            doc.append_elem(elem);
        }
    }
    doc.into_bytes()
}

pub fn drop_index(txn: &mut Txn, ns: &Namespace, name: &str) -> Result<()> {
    let teller = txn.teller();
    change(txn, |catalog, batch| {
        let mut collection = Collection::clone(&*named(catalog, ns)?);
        if name == "_id_" {
            return Err(Error::new(Code::InvalidOptions, "cannot drop _id index"));
        }
        let Some(index) = collection.index(name).cloned() else {
            return Err(Error::new(Code::IndexNotFound, format!("index not found with name [{name}]")));
        };
        collection.indexes.retain(|i| i.id != index.id);
        batch.drop_tree(index.id);
        history::dropped_index(teller, batch, &collection, &index.spec);
        put(catalog, batch, collection);
        Ok(())
    })
}

pub fn set_index(txn: &mut Txn, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
    let teller = txn.teller();
    change(txn, |catalog, batch| {
        let mut collection = Collection::clone(&*named(catalog, ns)?);
        let Some(at) = collection.indexes.iter().position(|i| i.spec.name == name) else {
            return Err(Error::new(Code::IndexNotFound, format!("cannot find index {name} for ns {ns}")));
        };
        let index = &collection.indexes[at];
        history::modified_index(teller, batch, &collection, &index.spec, spec);
        collection.indexes[at] = Arc::new(index.with(spec.clone(), index.building));
        put(catalog, batch, collection);
        Ok(())
    })
}

pub fn named(catalog: &Catalog, ns: &Namespace) -> Result<Arc<Collection>> {
    catalog.get(ns).cloned().ok_or_else(|| Error::new(Code::NamespaceNotFound, format!("ns does not exist: {ns}")))
}

/// Changes the catalog and goes on with the new one.
fn change<T>(txn: &mut Txn, change: impl FnOnce(&mut Catalog, &mut Batch) -> Result<T>) -> Result<T> {
    if !txn.is_auto() {
        let message = "a transaction can create collections and indexes, and change no others";
        return Err(Error::new(Code::OperationNotSupportedInTransaction, message));
    }
    let core = txn.core.clone();
    let (value, token) = core.change_catalog(change)?;
    txn.last = txn.last.max(token);
    txn.refresh();
    Ok(value)
}

/// A version 4 UUID from the process's random hash keys and the collection's id.
fn new_uuid(id: u64) -> [u8; 16] {
    use std::hash::{BuildHasher, RandomState};
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&RandomState::new().hash_one(id).to_le_bytes());
    uuid[8..].copy_from_slice(&RandomState::new().hash_one(!id).to_le_bytes());
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    uuid
}
