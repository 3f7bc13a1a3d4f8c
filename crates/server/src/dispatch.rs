//! From a request's bytes to its reply: parse, look the command up, check what holds for every command, run it, and write
//! down how it went. A panic ends the command, not the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_value::{Code, Error, Result, ValueRef, validate};
use espalier_wire::Sequences;

use crate::auth::{self, Rights};
use crate::call::{Call, Told, Wait};
use crate::client::Client;
use crate::clock;
use crate::commands::{self, Command, Place};
use crate::fail_point::Injected;
use crate::net::{Room, Share};
use crate::observe::{self, Finished};
use crate::read_concern;
use crate::reply::DocWriter;
use crate::request::Request;
use crate::server::Server;
use crate::transactions;

pub(crate) struct Incoming<'a> {
    pub body: &'a [u8],
    pub sequences: Sequences<'a>,
    /// Given for OP_QUERY, whose body has no `$db`.
    pub db: Option<&'a str>,
    pub legacy: bool,
    pub waited: bool,
    /// When it is to be answered at the latest, if it has waited for changes.
    pub until: Option<Instant>,
}

/// What the connection has to know beside the reply.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Do not send the reply; execute the request again then.
    pub wait: Option<Wait>,
    /// Send the reply without compression.
    pub plain: bool,
    pub close: bool,
    /// The reply's share of memory, until it is sent.
    pub room: Option<Share>,
}

/// Executes one request and appends the reply document to `out`.
pub(crate) fn execute(
    server: &Arc<Server>,
    client: &Arc<Client>,
    incoming: Incoming<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    server.metrics.requests.add(1);
    let mut reply = DocWriter::begin(out);
    let request = check_size(incoming.body)
        .and_then(|()| validate(incoming.body))
        .map_err(|error| error.context("the command"))
        .and_then(|body| Request::parse(body, incoming.sequences, incoming.db));
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            write_error(server, &error, &mut reply);
            return Outcome::default();
        }
    };
    let found = commands::find(request.name);
    let Some((index, command)) = found else {
        let error = Error::new(Code::CommandNotFound, format!("no such command: '{}'", request.name));
        write_error(server, &error, &mut reply);
        return Outcome::default();
    };
    let _computes = server.crew.enter();
    let mut call = Call {
        server,
        client,
        reply,
        running: client.begin(server.next_operation_id(), clock::now_ms(), request.db, request.body),
        rights: Rights::default(),
        started: Instant::now(),
        now_ms: clock::now_ms(),
        max_time: request.generic.max_time_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
        waited: incoming.waited,
        until: incoming.until,
        legacy: incoming.legacy,
        wait: None,
        close: false,
        lsid: None,
        session: None,
        transaction: None,
        snapshot: read_concern::snapshot(&request),
        write_failed: false,
        raw: request.generic.raw_data,
        told: Told::default(),
        work: Arc::default(),
        work_before: (0, 0),
        room: Room::new(&server.replies),
    };
    call.running.shows(&call.work);
    // Nothing the closure can leave half done outlives the command: the reply is reset, store transactions abort when
    // they are dropped, and locks recover from poisoning.
    let result = catch_unwind(AssertUnwindSafe(|| run(command, &request, &mut call)));
    let result = result.unwrap_or_else(|panic| Err(internal(server, command, panic.as_ref())));
    let label = result.as_ref().err().and_then(|error| label(command, &request, error));
    match &result {
        Ok(()) => {
            call.reply.append("ok", 1.0);
            write_times(server, &mut call.reply);
        }
        Err(error) => {
            call.reply.reset();
            let error = match label {
                Some(label) => &error.clone().with_label(label),
                None => error,
            };
            write_error(server, error, &mut call.reply);
        }
    }
    if call.wait.is_none() {
        let (keys_examined, docs_examined) = call.examined();
        let finished = Finished {
            command,
            request: &request,
            call: &call,
            error: result.as_ref().err(),
            elapsed: call.started.elapsed().saturating_sub(call.told.waited),
            keys_examined,
            docs_examined,
            response_bytes: call.reply.len_bytes() + 1,
        };
        observe::finish(index, &finished);
    }
    let room = call.room.shrink(call.reply.len_bytes());
    Outcome { wait: call.wait, plain: command.plain, close: call.close, room }
}

/// No document of a message may be larger: MongoDB's limit for a document and what goes around it.
pub(crate) const MESSAGE_DOCUMENT_BYTES_MAX: usize = (16 << 20) + (16 << 10);

/// Refuses what is too large to be looked at.
pub(crate) fn check_size(doc: &[u8]) -> Result<()> {
    if doc.len() <= MESSAGE_DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let bytes = doc.len();
    let message = format!("BSONObj size: {bytes} is invalid. Size must be between 0 and {MESSAGE_DOCUMENT_BYTES_MAX}");
    Err(Error::new(Code::BSONObjectTooLarge, message))
}

fn run(command: &Command, request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    check(command, request, call)?;
    call.rights = call.server.auth.rights(call.server, call.client)?;
    call.running.belongs_to(call.rights.names());
    auth::authorize(command, request, &call.rights)?;
    if let Some(session) = &request.generic.session {
        let lsid = call.rights.lsid(session)?;
        call.running.is_part_of(lsid);
        call.server.sessions.touch(&lsid, call.rights.owner())?;
        call.lsid = Some(lsid);
    }
    if call.server.fail_points.are_set() {
        let client = call.client.metadata();
        match call.server.fail_points.inject(command.name, request.argument, request.db, client) {
            Some(Injected { error: Some(error), .. }) => return Err(error),
            Some(Injected { close: true, .. }) => {
                call.client.hang_up();
                call.close = true;
                return Err(Error::new(Code::HostUnreachable, "the fail point closes the connection"));
            }
            Some(Injected { write_concern_error: Some(injected), .. }) => {
                run_unlimited(command, request, call)?;
                call.reply.append("writeConcernError", &injected);
                return Ok(());
            }
            _ => {}
        }
    }
    run_unlimited(command, request, call)
}

fn run_unlimited(command: &Command, request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let server = call.server;
    let at = call.max_time.filter(|_| !command.own_max_time).map(|limit| call.started + limit);
    let _deadline = at.map(|at| server.timer.limit(call.running.interrupt().clone(), at));
    let (Some(lsid), Some(number)) = (call.lsid, request.generic.txn_number) else {
        return (command.run)(request, call);
    };
    call.session = Some(server.sessions.check_out(&lsid, call.rights.owner(), call.running.interrupt())?);
    if transactions::is_part(request) {
        return transactions::run(command, request, number, call);
    }
    (command.run)(request, call)
}

/// What must hold whatever the command does.
fn check(command: &Command, request: &Request<'_>, call: &Call<'_>) -> Result<()> {
    let generic = &request.generic;
    if call.legacy && !command.before_handshake {
        let message = format!(
            "Unsupported OP_QUERY command: {}. The client driver may require an upgrade. For more details see \
             https://dochub.mongodb.org/core/legacy-opcode-removal",
            request.name
        );
        return Err(Error::new(Code::UnsupportedOpQueryCommand, message));
    }
    if command.place == Place::Admin && request.db != "admin" {
        let message = format!("{} may only be run against the admin database.", command.name);
        return Err(Error::new(Code::Unauthorized, message));
    }
    if generic.api_strict && !command.stable {
        let message = format!("Provided apiStrict:true, but the command {} is not in API Version 1.", command.name);
        return Err(Error::new(Code::APIStrictError, message));
    }
    if generic.write_concern.is_some() && !command.writes && !transactions::is_part(request) {
        return Err(Error::new(Code::InvalidOptions, "Command does not support writeConcern"));
    }
    read_concern::check(command, request, call)?;
    if transactions::is_part(request) {
        return transactions::check(command, request);
    }
    if generic.txn_number.is_some() && !command.retryable {
        let message = format!(
            "txnNumber may only be provided for multi-document transactions and retryable write commands. \
             autocommit:false was not provided, and {} is not a retryable write command.",
            command.name
        );
        return Err(Error::new(Code::NotARetryableWriteCommand, message));
    }
    Ok(())
}

fn internal(server: &Server, command: &Command, panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown panic");
    server.log.error("command", "a command panicked: this is a bug", &[("command", &command.name), ("panic", &text)]);
    Error::internal(format!("{} failed because of a bug in the server: {text}", command.name))
}

/// Drivers repeat a retryable write whose error says so.
fn label(command: &Command, request: &Request<'_>, error: &Error) -> Option<&'static str> {
    let retryable = match transactions::is_part(request) {
        true => transactions::ends_one(command),
        false => command.retryable && request.generic.txn_number.is_some(),
    };
    let passing = retryable && transactions::is_passing(error.code());
    passing.then_some("RetryableWriteError").or_else(|| transactions::label(command, request, error))
}

fn write_error(server: &Server, error: &Error, reply: &mut DocWriter<'_>) {
    let internal = error.code() == Code::InternalError;
    let counter = if internal { &server.metrics.internal_errors } else { &server.metrics.user_errors };
    counter.add(1);
    if !error.labels().is_empty() {
        let mut labels = reply.array("errorLabels");
        error.labels().iter().for_each(|label| {
            labels.push(*label);
        });
    }
    reply.append("ok", 0.0);
    reply.append("errmsg", error.message());
    // A few of MongoDB's oldest commands fail without a code.
    if error.code() != Code::OK {
        reply.append("code", error.code().0);
        reply.append("codeName", &error.code().name());
    }
    if let Some(info) = error.info() {
        reply.append_fields(info.as_raw());
    }
    write_times(server, reply);
}

/// An error of the wire protocol, which has no command.
pub(crate) fn write_wire_error(server: &Server, code: i32, message: &str, out: &mut Vec<u8>) {
    write_error(server, &Error::new(Code(code), message), &mut DocWriter::begin(out));
}

/// What a member of a replica set adds to every reply.
fn write_times(server: &Server, reply: &mut DocWriter<'_>) {
    let time = server.clock.time();
    {
        let mut cluster = reply.doc("$clusterTime");
        cluster.append_timestamp("clusterTime", time);
        cluster.doc("signature").append("hash", ValueRef::Binary(0, &[0; 20])).append("keyId", 0i64);
    }
    reply.append_timestamp("operationTime", time);
}
