//! The check before a command runs: is the client someone, and may they do what the command declares to need.

use espalier_value::{Code, Error, Result, ValueRef};

use super::redact;
use super::rights::Rights;
use crate::commands::{Command, Privilege};
use crate::request::Request;

/// A longer command is cut in the error that refuses it.
const SHOWN_BYTES_MAX: usize = 2_000;

pub fn authorize(command: &Command, request: &Request<'_>, rights: &Rights) -> Result<()> {
    if rights.is_open() || matches!(command.privilege, Privilege::Public) {
        return Ok(());
    }
    if !rights.is_authenticated() && !rights.may_create_first_user() {
        let message = format!("command {} requires authentication", command.name);
        return Err(Error::new(Code::Unauthorized, message));
    }
    if is_allowed(command, request, rights) { Ok(()) } else { Err(refusal(request)) }
}

/// Whether the rights are enough for what the command declares.
pub fn is_allowed(command: &Command, request: &Request<'_>, rights: &Rights) -> bool {
    let all =
        |actions: &[super::Action], may: &dyn Fn(super::Action) -> bool| actions.iter().all(|action| may(*action));
    match command.privilege {
        Privilege::Public => true,
        // Cannot happen: a command without a declaration does not compile.
        Privilege::Undeclared => false,
        Privilege::Authenticated => rights.is_authenticated(),
        Privilege::Cluster(actions) => all(actions, &|action| rights.on_cluster(action)),
        Privilege::Database(actions) => all(actions, &|action| rights.on_database(request.db, action)),
        Privilege::Collection(actions) => match request.argument {
            ValueRef::String(name) | ValueRef::Symbol(name) => {
                all(actions, &|action| rights.on_namespace(request.db, name, action))
            }
            // No name of a collection: the command will say so, to who may do it to any.
            _ => all(actions, &|action| rights.on_database(request.db, action)),
        },
        Privilege::Asked { may, .. } => may(request, rights),
    }
}

/// MongoDB's words: with the command, without its secrets.
fn refusal(request: &Request<'_>) -> Error {
    let redacted = redact(request.body);
    let body = redacted.as_ref().map_or(request.body, |doc| doc.as_raw());
    let mut shown = if body.as_bytes().len() > 4 * SHOWN_BYTES_MAX {
        format!("{{ {}: ... }}", request.name)
    } else {
        body.to_string()
    };
    if shown.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|&at| shown.is_char_boundary(at)).unwrap_or(0);
        shown.truncate(end);
        shown.push('…');
    }
    Error::new(Code::Unauthorized, format!("not authorized on {} to execute command {shown}", request.db))
}
