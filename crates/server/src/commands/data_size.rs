//! `dataSize`: how many documents a collection has, and their bytes.

use espalier_store::Namespace;

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "dataSize",
    aliases: &["datasize"],
    doc: "Returns the number and size of the documents of a collection.",
    privilege: Privilege::Asked { doc: "`find` on the collection", may },
    run: data_size,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    match request.argument.as_str().and_then(Namespace::parse) {
        Some(ns) => rights.on_namespace(ns.db(), ns.collection(), Action::Find),
        None => rights.on_database(request.db, Action::Find),
    }
}

fn data_size(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    for field in request.fields("dataSize") {
        match field.name() {
            "keyPattern" | "min" | "max" => {
                let message = format!("the range of dataSize ('{}') is not supported yet", field.name());
                return Err(Error::new(Code::CommandNotSupported, message));
            }
            "estimate" => {
                field.bool_or_number()?;
            }
            _ => {}
        }
    }
    let ns = match request.argument {
        ValueRef::String(text) => Namespace::parse(text)
            .ok_or_else(|| Error::new(Code::InvalidNamespace, format!("Invalid namespace specified '{text}'")))?,
        other => return Err(Error::bad_value(format!("collection name has invalid type {}", other.ty().name()))),
    };
    let ns = Namespace::checked(ns.db(), ns.collection())?;
    let transaction = call.begin_plain()?;
    let exists = transaction.collection(&ns)?.is_some();
    let stats = if exists { transaction.coll_stats(&ns)? } else { Default::default() };
    if exists {
        call.reply.append("estimate", false);
    }
    call.reply.append_count("size", stats.size).append_count("numObjects", stats.count);
    let ms = call.started.elapsed().as_millis() as u64;
    call.reply.append_count("millis", ms);
    Ok(())
}
