//! `currentOp`: what clients are doing right now, and what the store does in the background.

use std::sync::Arc;

use espalier_value::DocBuf;

use super::asked::asks_for;
use super::prelude::*;
use super::server_status::host_name;
use crate::client::Client;
use crate::log::timestamp;
use crate::observe::Kind;
use crate::parse;
use crate::reply::build;

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

/// Which connections to show.
#[derive(Clone, Copy, Default)]
pub(super) struct Which {
    pub idle: bool,
    /// Only those of the client's own users.
    pub own: bool,
}

fn current_op(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut which = Which::default();
    let mut filter = DocBuf::new();
    for field in request.fields("currentOp") {
        match field.name() {
            "$all" => which.idle = field.bool_or_number()?.unwrap_or(false),
            "$ownOps" => which.own = field.bool_or_number()?.unwrap_or(false),
            "$truncateOps" => {}
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
    let jobs = if which.own { Vec::new() } else { call.server.store.jobs() };
    let shown = clients.iter().filter_map(|client| {
        let own = call.rights.shares_user_with(&client.users());
        if which.own && !own { None } else { describe(client, &host, &now, which) }
    });
    shown.chain(jobs).collect()
}

fn describe(client: &Client, host: &str, now: &str, which: Which) -> Option<DocBuf> {
    let operation = client.operation();
    if !operation.active && !which.idle {
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
            let mut users = doc.array("effectiveUsers");
            for user in &operation.users {
                users.push_doc().append("user", &user.user).append("db", &user.db);
            }
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
            doc.doc("lsid").append("id", ValueRef::Binary(4, session));
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
        doc.append("op", op).append("ns", &ns).append("command", command);
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
