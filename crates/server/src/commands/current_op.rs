//! `currentOp`: what clients are doing right now, what they have left open, and what the store does in the background.

use std::sync::Arc;
use std::time::Duration;

use espalier_store::Tailable;
use espalier_value::DocBuf;

use super::asked::asks_for;
use super::prelude::*;
use super::server_status::host_name;
use crate::auth::names::UserName;
use crate::client::Client;
use crate::cursors::OpenCursor;
use crate::log::timestamp;
use crate::observe::{Kind, redact};
use crate::parse;
use crate::reply::{DocWriter, build};

pub(super) static COMMAND: Command = Command {
    name: "currentOp",
    doc: "Lists the commands that are being executed.",
    privilege: Privilege::Asked { doc: "`inprog` on the cluster, or any user with `$ownOps`", may },
    place: Place::Admin,
    run: current_op,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.on_cluster(Action::Inprog) || rights.is_authenticated() && asks_for(request, "$ownOps")
}

/// What to show.
#[derive(Clone, Copy)]
pub(super) struct Which {
    pub idle_connections: bool,
    /// Transactions that no command is using at the moment.
    pub idle_sessions: bool,
    /// Cursors that no command is reading from at the moment.
    pub idle_cursors: bool,
    /// Only what belongs to the client's own users.
    pub own: bool,
    /// Long commands are cut.
    pub truncate: bool,
}

fn current_op(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut which =
        Which { idle_connections: false, idle_sessions: true, idle_cursors: false, own: false, truncate: true };
    let mut filter = DocBuf::new();
    for field in request.fields("currentOp") {
        match field.name() {
            "$all" => which.idle_connections = field.bool_or_number()?.unwrap_or(false),
            "$ownOps" => which.own = field.bool_or_number()?.unwrap_or(false),
            "$truncateOps" => which.truncate = field.bool_or_number()?.unwrap_or(true),
            // Every other field is a condition on the operations.
            _ => {
                filter.append_elem(field.elem());
            }
        }
    }
    let context = Arc::new(call.context());
    let filter = parse::filter(filter.as_raw(), &Default::default())?;
    let operations = operations(call, which);
    let mut list = call.reply.array("inprog");
    for operation in &operations {
        if filter.matches(operation.as_raw(), &context)? {
            list.push(operation);
        }
    }
    Ok(())
}

/// What is going on, one document each.
pub(super) fn operations(call: &Call<'_>, which: Which) -> Vec<DocBuf> {
    let host = host_name(call.server);
    let now = timestamp(call.now_ms);
    let clients = call.server.clients.all();
    let is_shown = |owners: &[UserName]| !which.own || call.rights.shares_user_with(owners);
    let shown = clients.iter().filter(|client| is_shown(&client.users()));
    let mut all: Vec<DocBuf> = shown.filter_map(|client| describe(client, &host, &now, which)).collect();
    if !which.own || call.rights.is_open() {
        all.extend(call.server.store.jobs());
    }
    if which.idle_sessions {
        all.extend(idle_sessions(call, &host, which));
    }
    if which.idle_cursors {
        let describe = |id, cursor: &OpenCursor, idle| {
            is_shown(&cursor.owners).then(|| describe_cursor(id, cursor, idle, &host, call.now_ms, which))
        };
        all.extend(call.server.cursors.idle(describe));
    }
    all
}

/// The transactions that wait for their next command.
fn idle_sessions(call: &Call<'_>, host: &str, which: Which) -> Vec<DocBuf> {
    let own = call.rights.uid();
    let lifetime = i64::try_from(call.server.parameters.transaction_lifetime().as_millis()).unwrap_or(i64::MAX);
    let mut all = Vec::new();
    for session in call.server.sessions.list() {
        let Some(transaction) = &session.transaction else { continue };
        if which.own && !call.rights.is_open() && session.lsid.uid != own {
            continue;
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let started = call.now_ms.saturating_sub(i64::try_from(transaction.open.as_millis()).unwrap_or(i64::MAX));
        all.push(build(|doc| {
            doc.append("type", "idleSession").append("host", host).append("desc", "inactive transaction");
            if let Some((user, db)) = session.user.rsplit_once('@') {
                doc.array("effectiveUsers").push_doc().append("user", user).append("db", db);
            }
            session.lsid.write(&mut doc.doc("lsid"));
            {
                let mut about = doc.doc("transaction");
                about.doc("parameters").append("txnNumber", transaction.number).append("autocommit", false);
                about.append("startWallClockTime", &timestamp(started));
                about.append_long("timeOpenMicros", micros(transaction.open));
                about.append_long("timeActiveMicros", micros(transaction.active));
                about.append_long("timeInactiveMicros", micros(transaction.open.saturating_sub(transaction.active)));
                about.append("expiryTime", &timestamp(started.saturating_add(lifetime)));
            }
            doc.append("waitingForLock", false).append("active", false);
        }));
    }
    all
}

fn describe_cursor(id: i64, cursor: &OpenCursor, idle: Duration, host: &str, now_ms: i64, which: Which) -> DocBuf {
    build(|doc| {
        doc.append("type", "idleCursor").append("host", host).append("ns", &cursor.ns.to_string());
        if !cursor.owners.is_empty() {
            write_users(&cursor.owners, doc);
        }
        if let Some(lsid) = &cursor.session {
            lsid.write(&mut doc.doc("lsid"));
        }
        if let Some(plan) = cursor.context.work.plan() {
            doc.append("planSummary", &plan);
        }
        let mut about = doc.doc("cursor");
        about.append("cursorId", id).append_date("createdDate", cursor.created_ms);
        let idle_ms = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        about.append_date("lastAccessDate", now_ms.saturating_sub(idle_ms));
        about.append_long("nDocsReturned", cursor.docs_returned);
        about.append_long("nBatchesReturned", cursor.batches_returned);
        about.append("noCursorTimeout", cursor.no_timeout).append("tailable", cursor.tailable.is_some());
        about.append("awaitData", cursor.tailable == Some(Tailable::Await));
        if let Some(origin) = &cursor.origin {
            write_command(&mut about, "originatingCommand", origin.as_raw(), which);
        }
    })
}

fn write_users(users: &[UserName], doc: &mut DocWriter<'_>) {
    let mut list = doc.array("effectiveUsers");
    for user in users {
        list.push_doc().append("user", &user.user).append("db", &user.db);
    }
}

/// A longer command is cut where it is to be.
const COMMAND_BYTES_MAX: usize = 1_000;

fn write_command(doc: &mut DocWriter<'_>, name: &str, command: RawDoc<'_>, which: Which) {
    if which.truncate && command.as_bytes().len() > COMMAND_BYTES_MAX {
        doc.doc(name).append("$truncated", &redact::Shown(command).to_string());
    } else {
        doc.append(name, command);
    }
}

fn describe(client: &Client, host: &str, now: &str, which: Which) -> Option<DocBuf> {
    let operation = client.operation();
    if !operation.active && !which.idle_connections {
        return None;
    }
    Some(build(|doc| {
        doc.append("type", "op").append("host", host);
        doc.append("desc", &format!("conn{}", client.id)).append_long("connectionId", client.id);
        doc.append("client", &client.peer.to_string());
        if let Some(metadata) = client.metadata() {
            if let Some(name) = metadata.get_doc("application").and_then(|app| app.get_str("name")) {
                doc.append("appName", name);
            }
            doc.append("clientMetadata", metadata);
        }
        if !operation.users.is_empty() {
            write_users(&operation.users, doc);
        }
        doc.append("active", operation.active).append("currentOpTime", now).append("threaded", true);
        if !operation.active {
            return;
        }
        let elapsed = operation.elapsed();
        let command = operation.command();
        let name = command.first();
        doc.append_count("opid", operation.id);
        if let Some(session) = &operation.session {
            session.write(&mut doc.doc("lsid"));
        }
        doc.append_long("secs_running", elapsed.as_secs());
        doc.append_long("microsecs_running", elapsed.as_micros().try_into().unwrap_or(u64::MAX));
        let collection = match name.map(|elem| (elem.name(), elem.value())) {
            Some(("getMore", _)) => command.get_str("collection"),
            Some((_, ValueRef::String(collection))) => Some(collection),
            _ => None,
        };
        let op = name.map_or("none", |elem| Kind::of(elem.name()).name());
        let ns = match (name, collection) {
            (None, _) => String::new(),
            (_, Some(collection)) => format!("{}.{collection}", operation.db),
            (_, None) => format!("{}.$cmd", operation.db),
        };
        doc.append("op", op).append("ns", &ns);
        write_command(doc, "command", command, which);
        if let Some(work) = &operation.work {
            let (keys, docs) = work.total();
            if let Some(plan) = work.plan() {
                doc.append("planSummary", &plan).append_long("keysExamined", keys).append_long("docsExamined", docs);
            }
        }
        doc.append("numYields", 0).append("waitingForLock", operation.waits_for.is_some());
        if let Some(what) = operation.waits_for {
            doc.append("msg", what);
        }
    }))
}
