//! `dropIndexes`: by name, by names, by key, or all but the one on `_id`.

use espalier_store::IndexInfo;
use espalier_value::compare;

use super::prelude::*;
use crate::fields;
use crate::write_batch::{check_writable, wait_for_writes_allowed};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "dropIndexes",
    aliases: &["deleteIndexes"],
    doc: "Drops indexes.",
    privilege: Privilege::Collection(&[Action::DropIndex]),
    stable: true,
    writes: true,
    run: drop_indexes,
    ..Command::BASE
};

fn drop_indexes(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut which = None;
    for field in request.fields("dropIndexes") {
        match field.name() {
            "index" => which = Some(field.value()),
            "isTimeseriesNamespace" => field.refuse_unless_false()?,
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace()?;
    check_writable(&ns, call)?;
    let which = which.ok_or_else(|| fields::missing("dropIndexes", "index"))?;
    let concern = WriteConcern::of(request)?;
    wait_for_writes_allowed(call)?;
    let mut transaction = call.begin_plain()?;
    if transaction.collection(&ns)?.is_none() {
        return Err(Error::new(Code::NamespaceNotFound, format!("ns not found {ns}")));
    }
    let indexes = transaction.indexes(&ns)?;
    let (names, all) = choose(&indexes, which)?;
    for name in &names {
        transaction.drop_index(&ns, name)?;
    }
    let commit = call.commit(transaction)?;
    call.reply.append_count("nIndexesWas", indexes.len() as u64);
    if all {
        call.reply.append("msg", "non-_id indexes dropped for collection");
    }
    concern.fulfil(call, commit)
}

/// The names of the indexes to drop, and whether that is all of them.
fn choose(indexes: &[IndexInfo], which: ValueRef<'_>) -> Result<(Vec<String>, bool)> {
    let is_id = |index: &IndexInfo| index.spec.name == "_id_";
    let by_name = |name: &str| match indexes.iter().find(|index| index.spec.name == name) {
        Some(index) if is_id(index) => Err(Error::new(Code::InvalidOptions, "cannot drop _id index")),
        Some(index) => Ok(index.spec.name.clone()),
        None => Err(Error::new(Code::IndexNotFound, format!("index not found with name [{name}]"))),
    };
    let everything = || indexes.iter().filter(|index| !is_id(index)).map(|index| index.spec.name.clone()).collect();
    match which {
        ValueRef::String("*") => Ok((everything(), true)),
        ValueRef::String(name) => Ok((vec![by_name(name)?], false)),
        ValueRef::Array(names) => {
            let names = names.iter().map(|name| {
                name.as_str().ok_or_else(|| {
                    let message = "BSON field 'dropIndexes.index' is the wrong type 'array', expected types '[string']";
                    Error::type_mismatch(message)
                })
            });
            let names = names.collect::<Result<Vec<&str>>>()?;
            if names == ["*"] {
                return Ok((everything(), true));
            }
            Ok((names.into_iter().map(by_name).collect::<Result<_>>()?, false))
        }
        ValueRef::Document(key) => {
            let same = |index: &&IndexInfo| compare::compare_docs(index.spec.key(), key).is_eq();
            let found: Vec<&IndexInfo> = indexes.iter().filter(same).collect();
            match found[..] {
                [] => {
                    let message = format!("can't find index with key: {key}");
                    Err(Error::new(Code::IndexNotFound, message))
                }
                [index] => Ok((vec![by_name(&index.spec.name)?], false)),
                [first, second, ..] => {
                    let message = format!(
                        "{} indexes found for key: {}, identify by name instead. Conflicting indexes: {}, {}",
                        found.len(),
                        key,
                        first.spec.name,
                        second.spec.name
                    );
                    Err(Error::new(Code::AmbiguousIndexKeyPattern, message))
                }
            }
        }
        other => Err(Error::type_mismatch(format!(
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, object']",
            other.ty().name()
        ))),
    }
}
