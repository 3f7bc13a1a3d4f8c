//! `listIndexes`: the indexes of a collection as they were declared.

use espalier_value::DocBuf;

use super::list_collections::{parse_cursor, write_list};
use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "listIndexes",
    doc: "Lists the indexes of a collection.",
    privilege: Privilege::Collection(&[Action::ListIndexes]),
    stable: true,
    run: list_indexes,
    ..Command::BASE
};

fn list_indexes(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut batch_size = None;
    for field in request.fields("listIndexes") {
        match field.name() {
            "cursor" => batch_size = parse_cursor(&field)?,
            "includeBuildUUIDs" | "includeIndexBuildInfo" | "isTimeseriesNamespace" => field.refuse_unless_false()?,
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace()?;
    let transaction = call.begin_plain()?;
    if transaction.collection(&ns)?.is_none() {
        return Err(Error::new(Code::NamespaceNotFound, format!("ns does not exist: {ns}")));
    }
    let listed = transaction.indexes(&ns)?.iter().map(|index| in_order(index.spec.listed.as_raw())).collect();
    write_list(call, ns, listed, batch_size)
}

/// The order in which MongoDB shows the options of an index, whatever the order in which they were given.
const ORDER: &[&str] = &[
    "v",
    "key",
    "name",
    "ns",
    "background",
    "unique",
    "hidden",
    "partialFilterExpression",
    "sparse",
    "expireAfterSeconds",
];

fn in_order(spec: RawDoc<'_>) -> DocBuf {
    let mut ordered = DocBuf::with_capacity(spec.as_bytes().len());
    for elem in ORDER.iter().filter_map(|name| spec.elem(name)) {
        ordered.append_elem(elem);
    }
    for elem in spec.iter().filter(|elem| !ORDER.contains(&elem.name())) {
        ordered.append_elem(elem);
    }
    ordered
}
