//! What `createUser` and `updateUser` make of passwords and mechanisms.

use espalier_value::{DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::credentials::{Credential, Mechanism};

/// The `mechanisms` of a command; all of them if it does not say.
pub fn mechanisms(list: Option<RawArray<'_>>) -> Result<Vec<Mechanism>> {
    let Some(list) = list else { return Ok(Mechanism::ALL.to_vec()) };
    let mut found = Vec::new();
    for value in list.iter() {
        let name = value.as_str().unwrap_or_default();
        let mechanism = Mechanism::parse(name);
        let mechanism = mechanism.ok_or_else(|| Error::bad_value(format!("Unknown auth mechanism '{name}'")))?;
        if !found.contains(&mechanism) {
            found.push(mechanism);
        }
    }
    if found.is_empty() {
        return Err(Error::bad_value("mechanisms field must not be empty"));
    }
    found.sort();
    Ok(found)
}

/// The `credentials` of a password. `digest` is false if the client sends a digest in its place.
pub fn credentials(user: &str, password: &str, mechanisms: &[Mechanism], digest: bool) -> Result<DocBuf> {
    if !digest && mechanisms.contains(&Mechanism::ScramSha256) {
        return Err(Error::bad_value("Use of SCRAM-SHA-256 requires undigested passwords"));
    }
    let mut doc = DocBuf::new();
    for mechanism in mechanisms {
        let credential = Credential::new(*mechanism, user, password, !digest)?;
        doc.append(mechanism.name(), &credential.to_doc());
    }
    Ok(doc)
}

/// The mechanisms a stored user has credentials for.
pub fn stored_mechanisms(user: RawDoc<'_>) -> Vec<&str> {
    let credentials = user.get_doc("credentials").unwrap_or(RawDoc::EMPTY);
    let has = |elem: &espalier_value::Elem<'_>| !matches!(elem.value(), ValueRef::Bool(false));
    credentials.iter().filter(has).map(|elem| elem.name()).collect()
}

/// What is left of a user's credentials when only some mechanisms stay.
pub fn keep_mechanisms(user: RawDoc<'_>, mechanisms: &[Mechanism]) -> Result<DocBuf> {
    let credentials = user.get_doc("credentials").unwrap_or(RawDoc::EMPTY);
    if mechanisms.iter().any(|mechanism| credentials.get(mechanism.name()).is_none()) {
        return Err(Error::bad_value("mechanisms field must be a subset of previously set mechanisms"));
    }
    let mut left = DocBuf::new();
    for elem in credentials {
        if mechanisms.iter().any(|mechanism| mechanism.name() == elem.name()) {
            left.append_elem(elem);
        }
    }
    Ok(left)
}
