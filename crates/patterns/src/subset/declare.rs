//! Reading a declaration of the subset pattern.

use std::sync::Arc;

use espalier_value::{ArrayBuf, DocBuf, Result, ValueRef};

use super::Subset;
use crate::derive::{Link, Reads, Summed};
use crate::fields::Fields;
use crate::freshness::Freshness;
use crate::kind::{Kind, Parsed};
use crate::order;

pub static SUBSET: Kind = Kind {
    name: "subset",
    doc: "Keeps the first few documents of another collection, in a declared order, in the document they belong to.",
    parse,
};

const LIMIT: u64 = 10;
const LIMIT_MAX: u64 = 1_000;

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let link = Link::parse(fields, collection)?;
    let into = fields.path("into")?;
    let declared = fields.doc("sort")?.ok_or_else(|| fields.error("sort", "is required"))?;
    let (sort, sorted_by) = order::parse(fields, "sort", declared, false)?;
    let limit = fields.count("limit", LIMIT, LIMIT_MAX)?;
    let shown = fields.paths("fields")?;
    let freshness = Freshness::parse(fields)?;
    let mut reads = Reads::of(link.reads());
    match shown.is_empty() {
        true => reads.add_all(),
        false => shown.iter().for_each(|path| reads.add_name(path.first())),
    }
    sorted_by.iter().for_each(|(path, _)| reads.add_name(path.first()));
    link.check_apart(fields, std::slice::from_ref(&into))?;
    let mut options = DocBuf::new();
    options
        .append("from", &*link.from)
        .append("on", &link.on())
        .append("into", into.as_str())
        .append("sort", declared)
        .append("limit", limit as i32);
    if !shown.is_empty() {
        options.append("fields", &shown.iter().map(|path| ValueRef::String(path.as_str())).collect::<ArrayBuf>());
    }
    options.append("freshness", freshness.text());
    let owned = vec![into.as_str().into()];
    let subset =
        Subset { link, into: vec![into], sort, sorted_by, limit: limit as usize, fields: shown, reads, freshness };
    Ok(Parsed::derivation(Arc::new(Summed(subset)), options, owned))
}
