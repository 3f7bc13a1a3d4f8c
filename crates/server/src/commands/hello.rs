//! `hello`, and `isMaster` as it was called before: who the server is and what it can do. A client may ask to be answered
//! only once something has changed (`topologyVersion` with `maxAwaitTimeMS`); it then waits without holding a thread.

use std::time::Duration;

use espalier_value::number::Number;
use espalier_value::{DocBuf, ObjectId};
use espalier_wire::{Compression, MAX_MESSAGE_BYTES};

use super::prelude::*;
use crate::auth::credentials::Mechanism;
use crate::auth::directory::Directory;
use crate::auth::login;
use crate::auth::names::UserName;
use crate::auth::users::stored_mechanisms;
use crate::auth::x509;
use crate::call::Wait;
use crate::fields::Field;
use crate::reply::strings;
use crate::request::EXTERNAL;
use crate::server::Server;

pub(super) static COMMAND: Command = Command {
    name: "hello",
    doc: "Says who the server is and what it can do.",
    privilege: Privilege::Public,
    stable: true,
    before_handshake: true,
    plain: true,
    own_max_time: true,
    run: hello,
    ..Command::BASE
};

/// The term of the one election this replica set ever had, as an election id.
pub(crate) const ELECTION_ID: ObjectId = ObjectId([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
/// MongoDB 6.0.
const WIRE_VERSION_MAX: i32 = 17;
/// The state of the replica set never changes, so neither does the counter.
const TOPOLOGY_COUNTER: i64 = 6;
const METADATA_BYTES_MAX: usize = 512;

fn hello(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    answer(request, call, "isWritablePrimary")
}

/// Writes the reply; `primary` is what the command calls being the primary.
pub(super) fn answer(request: &Request<'_>, call: &mut Call<'_>, primary: &str) -> Result<()> {
    let mut hello_ok = false;
    let mut compression = None;
    let mut topology = None;
    let mut max_await_ms = None;
    let (mut client, mut mechanisms, mut speculative) = (None, None, None);
    for field in request.fields("hello") {
        match field.name() {
            "helloOk" => hello_ok = field.bool()?.unwrap_or(false),
            "client" => client = Some(field.value()).filter(|value| !value.is_nullish()),
            "compression" => compression = field.array()?,
            "topologyVersion" => topology = field.doc()?,
            "maxAwaitTimeMS" => max_await_ms = field.count()?,
            "saslSupportedMechs" => mechanisms = Some(parse_user(&field)?),
            "speculativeAuthenticate" => speculative = field.doc()?,
            // Clients of other versions and set-ups ask for more; MongoDB ignores what it does not know here.
            _ => {}
        }
    }
    let server = call.server;
    take_metadata(call, client)?;
    if let Some(ms) = wait_ms(server, topology, max_await_ms)?
        && !call.waited
    {
        call.wait = Some(Wait::For(Duration::from_millis(ms)));
        return Ok(());
    }
    let mechanisms = mechanisms.map(|user| supported_mechanisms(&user, call)).transpose()?;
    // The client sends it to save a round trip; if it fails, the client begins anew and is told then.
    let started = speculative.and_then(|doc| speculate(doc, call).ok());
    let me = member_address(call);
    let now = call.now_ms;
    let limits = &server.options.limits;
    let reply = &mut call.reply;
    if hello_ok && primary != "isWritablePrimary" {
        reply.append("helloOk", true);
    }
    reply
        .doc("topologyVersion")
        .append("processId", ValueRef::ObjectId(server.process_id.0))
        .append("counter", TOPOLOGY_COUNTER);
    reply.array("hosts").push(&me);
    reply.append("setName", &server.options.set_name).append("setVersion", 1);
    reply.append(primary, true).append("secondary", false);
    reply.append("primary", &me).append("me", &me);
    reply.append("electionId", ValueRef::ObjectId(ELECTION_ID.0));
    let time = server.clock.time();
    {
        let mut last = reply.doc("lastWrite");
        let wall = ((time >> 32) as i64).saturating_mul(1000);
        last.doc("opTime").append_timestamp("ts", time).append("t", 1i64);
        last.append_date("lastWriteDate", wall);
        last.doc("majorityOpTime").append_timestamp("ts", time).append("t", 1i64);
        last.append_date("majorityWriteDate", wall);
    }
    reply.append("maxBsonObjectSize", limits.document_bytes_max as i32);
    reply.append("maxMessageSizeBytes", MAX_MESSAGE_BYTES as i32);
    reply.append("maxWriteBatchSize", limits.write_batch_max as i32);
    reply.append_date("localTime", now);
    reply.append("logicalSessionTimeoutMinutes", limits.session_timeout_minutes as i32);
    reply.append("connectionId", call.client.id as i32);
    reply.append("minWireVersion", 0).append("maxWireVersion", WIRE_VERSION_MAX);
    reply.append("readOnly", false);
    if let Some(wanted) = compression {
        let common = wanted.iter().filter_map(ValueRef::as_str).filter_map(Compression::from_name);
        let common: Vec<_> = common.filter(|c| server.options.compressors.contains(c)).map(Compression::name).collect();
        if !common.is_empty() {
            strings(&mut reply.array("compression"), common);
        }
    }
    if let Some(mechanisms) = mechanisms {
        strings(&mut reply.array("saslSupportedMechs"), mechanisms);
    }
    if let Some(answer) = started {
        reply.append("speculativeAuthenticate", &answer);
    }
    Ok(())
}

/// Begins, or does at once, an authentication inside `hello`.
fn speculate(doc: RawDoc<'_>, call: &Call<'_>) -> Result<DocBuf> {
    if doc.first().is_some_and(|elem| elem.name() == "authenticate") {
        let (wanted, db) = x509::Authenticate::speculative(doc)?;
        return x509::authenticate(&wanted, &db, call);
    }
    let (start, db) = login::Start::speculative(doc)?;
    Ok(login::start(&start, &db, call)?.to_doc())
}

/// `database.user`, or a document.
fn parse_user(field: &Field<'_, '_>) -> Result<UserName> {
    match field.value() {
        ValueRef::String(text) => match text.split_once('.') {
            Some((db, user)) => Ok(UserName::new(user, db)),
            None => Err(Error::bad_value("UserName must contain a '.' separated database.user pair")),
        },
        ValueRef::Document(_) => UserName::parse(field.value(), ""),
        other => Err(Error::type_mismatch(format!(
            "BSON field '{}' is the wrong type '{}', expected types '[string, object']",
            field.path(),
            other.ty().name()
        ))),
    }
}

/// The mechanisms of a user; for one that does not exist those that a new one would have.
fn supported_mechanisms(user: &UserName, call: &Call<'_>) -> Result<Vec<String>> {
    // A user that is known elsewhere has no password here to prove.
    if user.db == EXTERNAL {
        return Ok(Vec::new());
    }
    let stored = Directory::open(call.server)?.user(user)?;
    Ok(match &stored {
        Some(doc) => stored_mechanisms(doc.as_raw()).into_iter().map(str::to_string).collect(),
        None => Mechanism::ALL.into_iter().map(|mechanism| mechanism.name().to_string()).collect(),
    })
}

/// The address of this member as the client can reach it: the one it came in at, unless the operator knows better.
pub(super) fn member_address(call: &Call<'_>) -> String {
    call.server.options.advertise.clone().unwrap_or_else(|| call.client.local.to_string())
}

/// How long the client wants to wait for a change, if it does.
fn wait_ms(server: &Server, topology: Option<RawDoc<'_>>, max_await_ms: Option<u64>) -> Result<Option<u64>> {
    let (topology, ms) = match (topology, max_await_ms) {
        (None, None) => return Ok(None),
        (Some(topology), Some(ms)) => (topology, ms),
        (Some(_), None) => {
            return Err(Error::new(Code(31368), "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"));
        }
        (None, Some(_)) => {
            return Err(Error::new(Code(31368), "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'"));
        }
    };
    let process = match topology.get("processId") {
        Some(ValueRef::ObjectId(id)) => ObjectId(id),
        _ => return Err(crate::fields::missing("TopologyVersion", "processId")),
    };
    let counter = topology.get("counter").and_then(Number::of).and_then(Number::as_exact_i64);
    let counter = counter.ok_or_else(|| crate::fields::missing("TopologyVersion", "counter"))?;
    if process != server.process_id || counter < TOPOLOGY_COUNTER {
        // It knows an older state: that is the change it waits for.
        return Ok(None);
    }
    if counter > TOPOLOGY_COUNTER {
        let message = "Received a topology version with counter: greater than the server topology version counter";
        return Err(Error::new(Code(31382), message));
    }
    Ok(Some(ms))
}

fn take_metadata(call: &Call<'_>, client: Option<ValueRef<'_>>) -> Result<()> {
    let Some(client) = client else {
        call.client.introduce(None);
        return Ok(());
    };
    if call.waited {
        return Ok(());
    }
    if call.client.is_introduced() {
        let message = "The client metadata document may only be sent in the first hello";
        return Err(Error::new(Code::ClientMetadataCannotBeMutated, message));
    }
    let ValueRef::Document(metadata) = client else {
        let message = "The 'client' field in the hello command must be a document";
        return Err(Error::type_mismatch(message));
    };
    if metadata.as_bytes().len() > METADATA_BYTES_MAX {
        let message = format!("The client metadata document must be less then or equal to {METADATA_BYTES_MAX} bytes");
        return Err(Error::new(Code::ClientMetadataDocumentTooLarge, message));
    }
    for (name, part) in [("driver", "name"), ("os", "type")] {
        if metadata.get_doc(name).is_none_or(|doc| doc.get_str(part).is_none()) {
            let message = format!("Missing required field '{name}.{part}' in the client metadata document");
            return Err(Error::new(Code::ClientMetadataMissingField, message));
        }
    }
    call.client.introduce(Some(DocBuf::from_raw(metadata)));
    Ok(())
}
