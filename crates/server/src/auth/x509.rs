//! MONGODB-X509: the certificate that a client showed when it connected says who it is.
//!
//! TLS has checked the certificate by then: signed by an authority of `--tls-ca`, not expired, and its key in the
//! client's hands. What is left is to find the user that bears its subject's name, in `$external`.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, doc};

use super::credentials::Mechanism;
use super::directory::Directory;
use super::identity::Known;
use super::names::UserName;
use crate::call::Call;
use crate::fields::{self, Field};
use crate::request::{EXTERNAL, Request};

pub const MECHANISM: &str = "MONGODB-X509";

/// The fields of `authenticate`.
pub struct Authenticate {
    mechanism: String,
    /// Whom the client takes itself for; without it the certificate alone says so.
    user: Option<String>,
}

impl Authenticate {
    pub fn of(request: &Request<'_>) -> Result<Authenticate> {
        Authenticate::parse(request.fields("authenticate"))
    }

    /// As it stands in `hello`; the database is one of its fields.
    pub fn speculative(doc: RawDoc<'_>) -> Result<(Authenticate, String)> {
        let db = doc.get_str("db").ok_or_else(|| fields::missing("authenticate", "db"))?;
        let fields = fields::fields(doc, "authenticate")?.skip(1).filter(|field| field.name() != "db");
        Ok((Authenticate::parse(fields)?, db.to_string()))
    }

    fn parse<'a, 'p>(fields: impl Iterator<Item = Field<'a, 'p>>) -> Result<Authenticate> {
        let (mut mechanism, mut user) = (None, None);
        for field in fields {
            match field.name() {
                "mechanism" => mechanism = field.str()?.map(str::to_string),
                "user" => user = field.str()?.filter(|user| !user.is_empty()).map(str::to_string),
                _ => return Err(field.unknown()),
            }
        }
        let mechanism = mechanism.ok_or_else(|| fields::missing("authenticate", "mechanism"))?;
        Ok(Authenticate { mechanism, user })
    }
}

/// Makes the client the user of its certificate.
pub fn authenticate(wanted: &Authenticate, db: &str, call: &Call<'_>) -> Result<DocBuf> {
    if wanted.mechanism != MECHANISM {
        return Err(match Mechanism::parse(&wanted.mechanism) {
            Some(_) => Error::bad_value(format!("Unsupported mechanism: {}", wanted.mechanism)),
            None => super::login::not_enabled(&wanted.mechanism),
        });
    }
    let auth = &call.server.auth;
    // Read before the user is: a change in between then makes the next command look again.
    let generation = auth.generation();
    let name = match name(wanted, db, call) {
        Ok(name) => name,
        Err(error) => {
            let user = wanted.user.as_ref().map(|user| UserName::new(user, db));
            auth.log_failure(call, user.as_ref(), MECHANISM, error.message());
            return Err(error);
        }
    };
    let directory = Directory::open(call.server)?;
    let Some(known) = Known::load(&directory, &name, call.client)? else {
        auth.log_failure(call, Some(&name), MECHANISM, "there is no such user, or it may not come from this address");
        if directory.user(&name)?.is_some() {
            return Err(super::login::failed());
        }
        let message = format!("Could not find user \"{}\" for db \"{EXTERNAL}\"", name.user);
        return Err(Error::new(Code::UserNotFound, message));
    };
    let mut identity = call.client.identity();
    identity.conversation = None;
    identity.add(Arc::new(known), generation);
    Ok(doc! { "dbname": EXTERNAL, "user": &name.user })
}

/// Who the client is by its certificate, if that is whom it says it is.
fn name(wanted: &Authenticate, db: &str, call: &Call<'_>) -> Result<UserName> {
    let failed = |message: &str| Err(Error::new(Code::AuthenticationFailed, message));
    let Some(subject) = call.client.subject() else {
        return failed("No verified subject name available from client");
    };
    if wanted.user.as_ref().is_some_and(|user| user != subject) {
        return failed("There is no x.509 client certificate matching the user.");
    }
    if db != EXTERNAL {
        let message = "X.509 authentication must always use the $external database.";
        return Err(Error::new(Code::ProtocolError, message));
    }
    Ok(UserName::new(subject, EXTERNAL))
}
