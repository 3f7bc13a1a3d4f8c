//! Logging in: `saslStart` and `saslContinue`, and `speculativeAuthenticate` inside `hello`.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef, doc};

use super::credentials::{Credential, Mechanism, random};
use super::directory::Directory;
use super::identity::{Conversation, Identity, Known, Step};
use super::names::UserName;
use super::scram::{ClientFirst, Exchange};
use super::{base64, pretend};
use crate::call::Call;
use crate::fields;
use crate::request::Request;

/// What a client that has not proved anything is told, whatever went wrong.
pub(super) fn failed() -> Error {
    Error::new(Code::AuthenticationFailed, "Authentication failed.")
}

pub(super) fn not_enabled(mechanism: &str) -> Error {
    let message = format!("Received authentication for mechanism {mechanism} which is not enabled");
    Error::new(Code::MechanismUnavailable, message)
}

/// The fields of `saslStart`.
pub struct Start {
    mechanism: String,
    payload: Vec<u8>,
    skip_empty: bool,
    /// Inside `hello`, before the client knows which mechanisms the user has.
    speculative: bool,
}

/// What is answered to a message of the client.
pub struct Answer {
    conversation: i32,
    done: bool,
    payload: Vec<u8>,
}

impl Answer {
    pub fn to_doc(&self) -> DocBuf {
        doc! {
            "conversationId": self.conversation,
            "done": self.done,
            "payload": ValueRef::Binary(0, &self.payload),
        }
    }
}

impl Start {
    pub fn of(request: &Request<'_>) -> Result<Start> {
        Start::parse(request.fields("saslStart"))
    }

    /// As it stands in `hello`; the database is one of its fields.
    pub fn speculative(doc: RawDoc<'_>) -> Result<(Start, String)> {
        let db = doc.get_str("db").ok_or_else(|| fields::missing("saslStart", "db"))?;
        let fields = fields::fields(doc, "saslStart")?.skip(1).filter(|field| field.name() != "db");
        Ok((Start { speculative: true, ..Start::parse(fields)? }, db.to_string()))
    }

    fn parse<'a, 'p>(fields: impl Iterator<Item = fields::Field<'a, 'p>>) -> Result<Start> {
        let (mut mechanism, mut payload, mut skip_empty) = (None, None, false);
        for field in fields {
            match field.name() {
                "mechanism" => mechanism = field.str()?.map(str::to_string),
                "payload" => payload = Some(parse_payload(field.value())?),
                "autoAuthorize" => {}
                "options" => {
                    let options = field.doc()?.unwrap_or(RawDoc::EMPTY);
                    skip_empty = matches!(options.get("skipEmptyExchange"), Some(ValueRef::Bool(true)));
                }
                _ => return Err(field.unknown()),
            }
        }
        let mechanism = mechanism.ok_or_else(|| fields::missing("saslStart", "mechanism"))?;
        let payload = payload.ok_or_else(|| fields::missing("saslStart", "payload"))?;
        Ok(Start { mechanism, payload, skip_empty, speculative: false })
    }
}

/// Begins an authentication against a database; whatever one was under way on the connection is given up.
pub fn start(start: &Start, db: &str, call: &Call<'_>) -> Result<Answer> {
    let mut identity = call.client.identity();
    identity.conversation = None;
    let Some(mechanism) = Mechanism::parse(&start.mechanism) else {
        return Err(not_enabled(&start.mechanism));
    };
    let first = match ClientFirst::parse(&start.payload) {
        Ok(first) => first,
        Err(why) => {
            call.server.auth.log_failure(call, None, mechanism.name(), why.0);
            return Err(failed());
        }
    };
    let user = UserName::new(&first.user, db);
    let stored = Directory::open(call.server)?.user(&user)?;
    let credential = stored.as_ref().and_then(|doc| {
        let credentials = doc.as_raw().get_doc("credentials")?;
        Credential::parse(credentials.get_doc(mechanism.name())?)
    });
    let pretended = credential.is_none();
    // The reply lists the user's mechanisms, and a driver that chooses another one would take this answer for its own.
    if start.speculative && pretended && stored.is_some() {
        return Err(failed());
    }
    let credential = credential.unwrap_or_else(|| pretend::credential(&call.server.auth.secret, mechanism, &user));
    let mut nonce = [0; 24];
    random(&mut nonce)?;
    let (exchange, payload) = Exchange::begin(mechanism, first, credential, pretended, &nonce);
    // There is one at a time on a connection, so that every one can have the number that MongoDB gives them.
    let id = 1;
    let step = Step::Proof(Box::new(exchange));
    identity.conversation = Some(Conversation { id, user, step, skip_empty: start.skip_empty });
    Ok(Answer { conversation: id, done: false, payload })
}

/// `saslContinue`.
pub fn go_on(request: &Request<'_>, call: &Call<'_>) -> Result<Answer> {
    let (mut id, mut payload) = (None, None);
    for field in request.fields("saslContinue") {
        match field.name() {
            "conversationId" => id = field.long()?,
            "payload" => payload = Some(parse_payload(field.value())?),
            _ => return Err(field.unknown()),
        }
    }
    let id = id.ok_or_else(|| fields::missing("saslContinue", "conversationId"))?;
    let payload = payload.ok_or_else(|| fields::missing("saslContinue", "payload"))?;
    let mut identity = call.client.identity();
    let Some(conversation) = identity.conversation.take() else {
        return Err(Error::new(Code::ProtocolError, "No SASL session state found"));
    };
    if i64::from(conversation.id) != id {
        return Err(Error::new(Code::ProtocolError, "sasl: Mismatched conversation id"));
    }
    advance(conversation, &payload, &mut identity, call)
}

fn advance(conversation: Conversation, payload: &[u8], identity: &mut Identity, call: &Call<'_>) -> Result<Answer> {
    let Conversation { id, user, step, skip_empty } = conversation;
    let auth = &call.server.auth;
    let address = call.client.peer.ip();
    // Read before the user is: a change in between then makes the next command look again.
    let generation = auth.generation();
    match step {
        Step::Empty(known) => {
            if !payload.is_empty() {
                return Err(failed());
            }
            identity.add(known, generation);
            Ok(Answer { conversation: id, done: true, payload: Vec::new() })
        }
        Step::Proof(exchange) => {
            let fail = |why: &str| {
                auth.backoff.failed(address, &user);
                auth.log_failure(call, Some(&user), exchange.mechanism().name(), why);
                Err(failed())
            };
            if auth.backoff.is_too_soon(address, &user) {
                return fail("too many failed logins, this one was not looked at");
            }
            let answer = match exchange.finish(payload) {
                Ok(answer) => answer,
                Err(why) => return fail(why.0),
            };
            let Some(known) = Known::load(&Directory::open(call.server)?, &user, call.client)? else {
                return fail("the user is gone or may not come from this address");
            };
            auth.backoff.succeeded(address, &user);
            let known = Arc::new(known);
            if skip_empty {
                identity.add(known, generation);
            } else {
                let step = Step::Empty(known);
                identity.conversation = Some(Conversation { id, user, step, skip_empty });
            }
            Ok(Answer { conversation: id, done: skip_empty, payload: answer })
        }
    }
}

fn parse_payload(value: ValueRef<'_>) -> Result<Vec<u8>> {
    match value {
        ValueRef::Binary(_, bytes) => Ok(bytes.to_vec()),
        ValueRef::String(text) => {
            base64::decode(text).ok_or_else(|| Error::bad_value("the SASL payload is not valid base 64"))
        }
        other => {
            let found = other.ty().name();
            Err(Error::bad_value(format!("Invalid SASLPayload type. Expected Base64 or BinData, got: {found}")))
        }
    }
}
