//! `renameCollection`: another name, in the same database or another one.

use espalier_store::Namespace;

use super::asked::asks_for;
use super::prelude::*;
use crate::fields;
use crate::write_batch::wait_for_writes_allowed;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "renameCollection",
    doc: "Renames a collection.",
    privilege: Privilege::Asked {
        doc: "`renameCollectionSameDB` on the database; between databases `find`, `dropCollection` there, `insert`, `createIndex` here",
        may,
    },
    place: Place::Admin,
    writes: true,
    run: rename_collection,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let parse = |value: Option<ValueRef<'_>>| value.and_then(ValueRef::as_str).and_then(Namespace::parse);
    let (Some(from), Some(to)) = (parse(Some(request.argument)), parse(request.body.get("to"))) else {
        return rights.is_authenticated();
    };
    if from.db() == to.db() && rights.on_database(from.db(), Action::RenameCollectionSameDb) {
        return true;
    }
    let on = |ns: &Namespace, action| rights.on_namespace(ns.db(), ns.collection(), action);
    on(&from, Action::Find)
        && on(&from, Action::DropCollection)
        && on(&to, Action::Insert)
        && on(&to, Action::CreateIndex)
        && (!asks_for(request, "dropTarget") || on(&to, Action::DropCollection))
}

fn rename_collection(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut to, mut drop_target) = (None, false);
    for field in request.fields("renameCollection") {
        match field.name() {
            "to" => to = field.str()?,
            "dropTarget" => drop_target = field.bool_or_number()?.unwrap_or(false),
            // No collection is temporary.
            "stayTemp" => {}
            "collectionUUID" => return Err(field.unsupported()),
            _ => return Err(field.unknown()),
        }
    }
    let ValueRef::String(from) = request.argument else {
        let found = request.argument.ty().name();
        return Err(Error::bad_value(format!("collection name has invalid type {found}")));
    };
    let to = to.ok_or_else(|| fields::missing("renameCollection", "to"))?;
    let (from, to) = (namespace(from)?, namespace(to)?);
    if let Err(error) = Namespace::checked(to.db(), to.collection()) {
        let message = format!("error with target namespace: {}", error.message());
        return Err(Error::new(Code::IllegalOperation, message));
    }
    if from == to {
        return Err(Error::new(Code::IllegalOperation, "Can't rename a collection to itself"));
    }
    for (what, ns) in [("source", &from), ("target", &to)] {
        if ns.is_system() {
            let message = format!("error with {what} namespace: Invalid system namespace: {ns}");
            return Err(Error::new(Code::IllegalOperation, message));
        }
    }
    let concern = WriteConcern::of(request)?;
    wait_for_writes_allowed(call)?;
    let mut transaction = call.begin_plain()?;
    transaction.rename(&from, &to, drop_target)?;
    let commit = call.commit(transaction)?;
    call.server.cursors.end_collection(&from, "collection renamed");
    call.server.cursors.end_collection(&to, "collection dropped");
    call.server.wake_all();
    concern.fulfil(call, commit)
}

fn namespace(text: &str) -> Result<Namespace> {
    Namespace::parse(text)
        .ok_or_else(|| Error::new(Code::InvalidNamespace, format!("Invalid namespace specified '{text}'")))
}
