//! The stages that only the server can answer, each standing first in its pipeline: `$collStats`, `$indexStats`,
//! `$currentOp`, `$listLocalSessions`.

use espalier_store::Namespace;
use espalier_value::DocBuf;

use super::current_op::{Which, operations};
use super::list_sessions;
use super::prelude::*;
use super::server_status::host_name;
use crate::fields::fields;
use crate::reply::build;

/// Makes the documents of a stage, given its argument.
pub(super) type Make = fn(ValueRef<'_>, &Namespace, bool, &Call<'_>) -> Result<Vec<DocBuf>>;

static ALL: &[(&str, Make)] = &[
    ("$collStats", coll_stats),
    ("$currentOp", current_op),
    ("$indexStats", index_stats),
    ("$listLocalSessions", list_sessions::local),
    ("$listSessions", list_sessions::all),
];

pub(super) fn find(name: &str) -> Option<Make> {
    ALL.iter().find(|(stage, _)| *stage == name).map(|(_, make)| *make)
}

fn coll_stats(spec: ValueRef<'_>, ns: &Namespace, whole_database: bool, call: &Call<'_>) -> Result<Vec<DocBuf>> {
    needs_collection("$collStats", whole_database)?;
    let ValueRef::Document(spec) = spec else {
        let found = spec.ty().name();
        let message = format!("$collStats must take a nested object but found a {found}");
        return Err(Error::new(Code(5_447_000), message));
    };
    let (mut count, mut storage, mut latency, mut exec) = (false, None, false, false);
    for field in fields(spec, "$collStats")? {
        match field.name() {
            "count" => count = field.doc()?.is_some(),
            "storageStats" => storage = field.doc()?,
            "latencyStats" => latency = field.doc()?.is_some(),
            "queryExecStats" => exec = field.doc()?.is_some(),
            _ => return Err(field.unknown()),
        }
    }
    let transaction = call.begin_plain()?;
    if transaction.collection(ns)?.is_none() {
        let message =
            format!("Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{ns}] not found.");
        return Err(Error::new(Code::NamespaceNotFound, message));
    }
    let stats = transaction.coll_stats(ns)?;
    let usage = call.server.top.get(ns.db(), ns.collection()).unwrap_or_default();
    Ok(vec![build(|doc| {
        doc.append("ns", &ns.to_string()).append("host", &host_name(call.server)).append_date("localTime", call.now_ms);
        if latency {
            let mut latency = doc.doc("latencyStats");
            for (kind, timed) in [("reads", &usage.reads), ("writes", &usage.writes), ("commands", &usage.others)] {
                latency.doc(kind).append_long("latency", timed.micros.get()).append_long("ops", timed.ops.get());
            }
        }
        if let Some(options) = storage {
            let scale = options.get("scale").and_then(espalier_value::number::Number::of);
            let scale = scale.map_or(1, |scale| u64::try_from(scale.to_i64_clamped()).unwrap_or(1).max(1));
            super::coll_stats::write(&stats, scale, &mut doc.doc("storageStats"));
        }
        if count {
            doc.append_count("count", stats.count);
        }
        if exec {
            doc.doc("queryExecStats").doc("collectionScans").append_long("total", usage.scans.get());
        }
    })])
}

fn index_stats(_: ValueRef<'_>, ns: &Namespace, whole_database: bool, call: &Call<'_>) -> Result<Vec<DocBuf>> {
    needs_collection("$indexStats", whole_database)?;
    let transaction = call.begin_plain()?;
    let host = host_name(call.server);
    let indexes = transaction.indexes(ns)?;
    let describe = |index: &espalier_store::IndexInfo| {
        build(|doc| {
            doc.append("name", &index.spec.name).append("key", index.spec.key()).append("host", &host);
            let mut accesses = doc.doc("accesses");
            accesses.append_long("ops", index.accesses).append_date("since", call.server.clock.started_ms());
            drop(accesses);
            if index.building {
                doc.append("building", true);
            }
            doc.append("spec", &index.spec.listed);
        })
    };
    Ok(indexes.iter().map(describe).collect())
}

fn current_op(spec: ValueRef<'_>, ns: &Namespace, whole_database: bool, call: &Call<'_>) -> Result<Vec<DocBuf>> {
    if ns.db() != "admin" || !whole_database {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Error::new(Code::InvalidNamespace, message));
    }
    let ValueRef::Document(spec) = spec else {
        let found = spec.ty().name();
        return Err(Error::type_mismatch(format!(
            "$currentOp options must be specified in an object, but found: {found}"
        )));
    };
    // The sessions and cursors of others are theirs, unless one may see everything and asks for it.
    let mut which =
        Which { idle_connections: false, idle_sessions: true, idle_cursors: false, own: true, truncate: false };
    for field in fields(spec, "$currentOp")? {
        let given = |code: Code| match field.value() {
            ValueRef::Bool(given) => Ok(given),
            other => {
                let (name, found) = (field.name(), other.ty().name());
                let message = format!(
                    "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {found}"
                );
                Err(Error::new(code, message))
            }
        };
        match field.name() {
            "idleConnections" => which.idle_connections = given(Code::FailedToParse)?,
            "idleSessions" => which.idle_sessions = given(Code::FailedToParse)?,
            "idleCursors" => which.idle_cursors = given(Code::FailedToParse)?,
            "allUsers" => which.own = !given(Code::TypeMismatch)?,
            "truncateOps" => which.truncate = given(Code::FailedToParse)?,
            // There are no operations but the local ones.
            "localOps" => drop(given(Code::TypeMismatch)?),
            "backtrace" => {
                if given(Code::FailedToParse)? {
                    let message = "the option 'backtrace' of $currentOp is not supported by Espalier";
                    return Err(Error::new(Code::CommandNotSupported, message));
                }
            }
            other => return Err(Error::failed_to_parse(format!("Unrecognized option '{other}' in $currentOp stage."))),
        }
    }
    Ok(operations(call, which))
}

fn needs_collection(stage: &str, whole_database: bool) -> Result<()> {
    if !whole_database {
        return Ok(());
    }
    let message = format!("{{aggregate: 1}} is not valid for '{stage}'; a collection is required.");
    Err(Error::new(Code::InvalidNamespace, message))
}
