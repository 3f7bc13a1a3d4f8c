//! Reading a declaration of the reference pattern.

use std::sync::Arc;

use espalier_value::{ArrayBuf, DocBuf, Path, Result, ValueRef};

use super::{Mode, OnDelete, Reference};
use crate::derive::{Link, Reads};
use crate::fields::Fields;
use crate::kind::{Kind, Parsed};

pub static REFERENCE: Kind =
    Kind { name: "reference", doc: "Keeps copies of another document's fields in those that refer to it.", parse };

const IN_COMMIT: u64 = 10_000;
const IN_COMMIT_MAX: u64 = 100_000;
const MODES: [(&str, Mode); 2] = [("follow", Mode::Follow), ("snapshot", Mode::Snapshot)];
const ON_DELETE: [(&str, OnDelete); 4] = [
    ("keep", OnDelete::Keep),
    ("unset", OnDelete::Unset),
    ("cascade", OnDelete::Cascade),
    ("restrict", OnDelete::Restrict),
];

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let link = Link::parse(fields, collection)?.turned();
    let into = fields.path("into")?;
    let copied = fields.paths("fields")?;
    if copied.is_empty() {
        return Err(fields.error("fields", "must name at least one field"));
    }
    let mode = fields.choice("mode", &MODES)?;
    let on_delete = fields.choice("onDelete", &ON_DELETE)?;
    let in_commit = fields.count("inCommit", IN_COMMIT, IN_COMMIT_MAX)?;
    let owns: Vec<Path> = copied.iter().map(|path| Path::new(&format!("{into}.{path}"))).collect();
    link.check_apart(fields, &owns)?;
    let mut reads = Reads::of(link.reads());
    copied.iter().for_each(|path| reads.add_name(path.first()));
    let mut options = DocBuf::new();
    options
        .append("from", &*link.from)
        .append("on", &link.clone().turned().on())
        .append("into", into.as_str())
        .append("fields", &copied.iter().map(|path| ValueRef::String(path.as_str())).collect::<ArrayBuf>())
        .append("mode", word(&MODES, mode))
        .append("onDelete", word(&ON_DELETE, on_delete))
        .append("inCommit", in_commit as i32);
    let fields: Vec<(Path, Path)> = copied.into_iter().zip(owns.iter().cloned()).collect();
    let owned = owns.iter().map(|own| own.as_str().into()).collect();
    let reference = Reference { link, fields, owns, reads, mode, on_delete, in_commit };
    Ok(Parsed::derivation(Arc::new(reference), options, owned))
}

fn word<T: PartialEq>(choices: &[(&'static str, T)], choice: T) -> &'static str {
    choices.iter().find(|(_, value)| *value == choice).map_or("", |(word, _)| word)
}
