//! The stages `$listLocalSessions` and `$listSessions`: the sessions that this server knows. All of them are local.

use espalier_store::Namespace;
use espalier_value::DocBuf;

use super::prelude::*;
use crate::auth::names::UserName;
use crate::fields::fields;
use crate::reply::build;
use crate::sessions::{Listed, Uid, uid};

/// Whose sessions to show.
enum Whose {
    Everybodys,
    Of(Vec<Uid>),
}

pub(super) fn local(spec: ValueRef<'_>, _: &Namespace, whole_database: bool, call: &Call<'_>) -> Result<Vec<DocBuf>> {
    if !whole_database {
        let message = "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection";
        return Err(Error::new(Code::InvalidNamespace, message));
    }
    let whose = parse(spec, "$listLocalSessions", call)?;
    Ok(list(&whose, call, |doc, user| {
        doc.append("user", user);
    }))
}

pub(super) fn all(spec: ValueRef<'_>, ns: &Namespace, whole_database: bool, call: &Call<'_>) -> Result<Vec<DocBuf>> {
    if whole_database || ns.db() != "config" || ns.collection() != "system.sessions" {
        let message = "$listSessions may only be run against config.system.sessions";
        return Err(Error::new(Code::InvalidNamespace, message));
    }
    let whose = parse(spec, "$listSessions", call)?;
    Ok(list(&whose, call, |doc, user| {
        doc.doc("user").append("name", user);
    }))
}

fn parse(spec: ValueRef<'_>, stage: &str, call: &Call<'_>) -> Result<Whose> {
    let ValueRef::Document(spec) = spec else {
        let found = spec.ty().name();
        let message = format!("{stage} options must be specified in an object, but found: {found}");
        return Err(Error::type_mismatch(message));
    };
    let (mut everybody, mut users) = (false, Vec::new());
    for field in fields(spec, stage)? {
        match field.name() {
            "allUsers" => everybody = field.bool()?.unwrap_or(false),
            "users" => {
                let parent = field.path();
                for value in field.array()?.into_iter().flat_map(|users| users.iter()) {
                    users.push(parse_user(value, &parent)?);
                }
            }
            _ => return Err(field.unknown()),
        }
    }
    match (everybody, users.is_empty()) {
        (true, false) => {
            let message = format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time");
            Err(Error::new(Code::UnsupportedFormat, message))
        }
        (true, true) => Ok(Whose::Everybodys),
        (false, true) => Ok(Whose::Of(vec![call.rights.uid()])),
        (false, false) => Ok(Whose::Of(users)),
    }
}

fn parse_user(value: ValueRef<'_>, parent: &str) -> Result<Uid> {
    let ValueRef::Document(doc) = value else {
        let found = value.ty().name();
        let message = format!("BSON field '{parent}' is the wrong type '{found}', expected type 'object'");
        return Err(Error::type_mismatch(message));
    };
    Ok(uid(&UserName::parse_strict(doc, parent)?.to_string()))
}

fn list(whose: &Whose, call: &Call<'_>, write_user: impl Fn(&mut crate::reply::DocWriter<'_>, &str)) -> Vec<DocBuf> {
    let describe = |session: &Listed| {
        build(|doc| {
            session.lsid.write(&mut doc.doc("_id"));
            let idle_ms = i64::try_from(session.idle.as_millis()).unwrap_or(i64::MAX);
            doc.append_date("lastUse", call.now_ms.saturating_sub(idle_ms));
            if !session.user.is_empty() {
                write_user(doc, &session.user);
            }
        })
    };
    let is_shown = |session: &&Listed| match whose {
        Whose::Everybodys => true,
        Whose::Of(users) => users.contains(&session.lsid.uid),
    };
    call.server.sessions.list().iter().filter(is_shown).map(describe).collect()
}
