//! `killAllSessions` and `killAllSessionsByPattern`: end sessions of any user, chosen by users, ids or their hashes.

use super::kill_sessions::kill;
use super::prelude::*;
use crate::auth::directory::Directory;
use crate::auth::names::UserName;
use crate::fields::{fields, missing};
use crate::generic::{parse_session, parse_uid};
use crate::sessions::{Lsid, Uid, uid};

pub(super) static COMMAND: Command = Command {
    name: "killAllSessions",
    aliases: &["killAllSessionsByPattern"],
    doc: "Ends the logical sessions of all users.",
    privilege: Privilege::Cluster(&[Action::KillAnySession]),
    run: kill_all_sessions,
    ..Command::BASE
};

fn kill_all_sessions(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("killAllSessions")?;
    let name = request.name;
    let ValueRef::Array(list) = request.argument else {
        let found = request.argument.ty().name();
        let message = format!("BSON field '{name}.{name}' is the wrong type '{found}', expected type 'array'");
        return Err(Error::type_mismatch(message));
    };
    let parent = format!("{name}.{name}");
    let mut patterns = Vec::new();
    for elem in list.elems() {
        let ValueRef::Document(pattern) = elem.value() else {
            let (at, found) = (elem.name(), elem.ty().name());
            let message = format!("BSON field '{parent}.{at}' is the wrong type '{found}', expected type 'object'");
            return Err(Error::type_mismatch(message));
        };
        patterns.push(match name {
            "killAllSessions" => parse_user(pattern, &parent, call)?,
            _ => parse_pattern(pattern, &parent)?,
        });
    }
    // As in MongoDB, an empty list means everybody's.
    kill(call, |lsid| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(lsid)));
    Ok(())
}

/// Which sessions are meant.
enum Pattern {
    All,
    One(Lsid),
    Of(Uid),
}

impl Pattern {
    fn matches(&self, lsid: &Lsid) -> bool {
        match self {
            Pattern::All => true,
            Pattern::One(one) => one == lsid,
            Pattern::Of(uid) => *uid == lsid.uid,
        }
    }
}

/// `{user, db}`.
fn parse_user(doc: RawDoc<'_>, parent: &str, call: &Call<'_>) -> Result<Pattern> {
    let name = UserName::parse_strict(doc, parent)?;
    if Directory::open(call.server)?.user(&name)?.is_none() {
        let UserName { user, db } = &name;
        return Err(Error::new(Code::UserNotFound, format!("Could not find user \"{user}\" for db \"{db}\"")));
    }
    Ok(Pattern::Of(uid(&name.to_string())))
}

/// `{lsid}` or `{uid}`.
fn parse_pattern(doc: RawDoc<'_>, parent: &str) -> Result<Pattern> {
    let mut pattern = Pattern::All;
    for field in fields(doc, parent)? {
        pattern = match field.name() {
            "lsid" => {
                let asked = parse_session(field.doc_required()?, &field.path())?;
                let uid = asked.uid.ok_or_else(|| missing(&field.path(), "uid"))?;
                Pattern::One(Lsid { id: asked.id, uid })
            }
            "uid" => Pattern::Of(parse_uid(&field)?),
            "users" | "roles" => {
                let message = format!("{}: acting for other users is not supported by Espalier", field.path());
                return Err(Error::new(Code::InvalidOptions, message));
            }
            _ => return Err(field.unknown()),
        };
    }
    if doc.iter().count() > 1 {
        return Err(Error::bad_value("a pattern names sessions by lsid or by uid, not by both"));
    }
    Ok(pattern)
}
