//! `createIndexes`: declares and builds indexes.

use espalier_store::IndexSpec;
use espalier_value::DocBuf;

use super::prelude::*;
use crate::fields;
use crate::write_batch::{check_writable, wait_for_writes_allowed};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "createIndexes",
    doc: "Creates indexes.",
    privilege: Privilege::Collection(&[Action::CreateIndex]),
    stable: true,
    writes: true,
    run: create_indexes,
    ..Command::BASE
};

/// What an index specification may have; anything else is dropped if the client asks to ignore it.
const OPTIONS: &[&str] = &[
    "v",
    "key",
    "name",
    "unique",
    "sparse",
    "hidden",
    "expireAfterSeconds",
    "partialFilterExpression",
    "wildcardProjection",
    "collation",
    "background",
    "storageEngine",
    "ns",
    "dropDups",
    "prepareUnique",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "bucketSize",
    "clustered",
];

fn create_indexes(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut indexes, mut ignore_unknown, mut quorum) = (None, false, None);
    for field in request.fields("createIndexes") {
        match field.name() {
            "indexes" => indexes = field.array()?,
            "ignoreUnknownIndexOptions" => ignore_unknown = field.bool()?.unwrap_or(false),
            "commitQuorum" => quorum = Some(field.value()).filter(|value| !value.is_nullish()),
            "v" => {}
            "isTimeseriesNamespace" => field.refuse_unless_false()?,
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace()?;
    check_writable(&ns, call)?;
    let indexes = indexes.ok_or_else(|| fields::missing("createIndexes", "indexes"))?;
    let quorum = quorum.unwrap_or(ValueRef::String("votingMembers"));
    check_quorum(quorum)?;
    let concern = WriteConcern::of(request)?;
    let mut specs = Vec::new();
    for elem in indexes.elems() {
        let ValueRef::Document(doc) = elem.value() else {
            return Err(Error::type_mismatch(format!(
                "BSON field 'createIndexes.indexes.{}' is the wrong type '{}', expected type 'object'",
                elem.name(),
                elem.ty().name()
            )));
        };
        specs.push(parse_spec(doc, ignore_unknown)?);
    }
    if specs.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    wait_for_writes_allowed(call)?;
    let mut transaction = call.begin_plain()?;
    let existed = transaction.collection(&ns)?.is_some();
    let max = call.server.options.limits.indexes_max as usize;
    if transaction.indexes(&ns)?.len() + specs.len() > max {
        let names: Vec<String> = transaction.indexes(&ns)?.into_iter().map(|index| index.spec.name).collect();
        let new = specs.iter().filter(|spec| !names.contains(&spec.name)).count();
        if names.len() + new > max {
            let message = format!("add index fails, too many indexes for {ns}: the limit is {max}");
            return Err(Error::new(Code::CannotCreateIndex, message));
        }
    }
    let (before, after) = transaction.create_indexes(&ns, &specs)?;
    let commit = call.commit(transaction)?;
    let reply = &mut call.reply;
    reply.append_count("numIndexesBefore", before as u64).append_count("numIndexesAfter", after as u64);
    if before != after || !existed {
        reply.append("createdCollectionAutomatically", !existed).append("commitQuorum", quorum);
    }
    if before == after {
        reply.append("note", "all indexes already exist");
    } else if after < before + specs.len() {
        reply.append("note", "index already exists");
    }
    concern.fulfil(call, commit)
}

fn parse_spec(doc: RawDoc<'_>, ignore_unknown: bool) -> Result<IndexSpec> {
    let known = ignore_unknown.then(|| {
        let mut known = DocBuf::new();
        for elem in doc.iter().filter(|elem| OPTIONS.contains(&elem.name())) {
            known.append_elem(elem);
        }
        known
    });
    let doc = known.as_ref().map_or(doc, DocBuf::as_raw);
    IndexSpec::parse(doc)
}

fn check_quorum(quorum: ValueRef<'_>) -> Result<()> {
    match quorum {
        ValueRef::String("votingMembers" | "majority") => Ok(()),
        ValueRef::String(other) => Err(Error::new(
            Code::UnknownReplWriteConcern,
            format!("No write concern mode named '{other}' found in replica set configuration"),
        )),
        number if number.is_number() => Ok(()),
        _ => Err(Error::failed_to_parse("commitQuorum has to be a number or a string")),
    }
}
