//! Reading a declaration of the archive pattern.

use std::sync::Arc;
use std::time::Duration;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_value::{DocBuf, RawDoc, Result, ValueRef, doc};

use super::{Archive, Read, Write, time};
use crate::fields::Fields;
use crate::kind::{Kind, Parsed};

pub static ARCHIVE: Kind = Kind {
    name: "archive",
    doc: "Moves documents that a filter describes to a collection of their own, and back when they are written to.",
    parse,
};

const BATCH: u64 = 1_000;
const BATCH_MAX: u64 = 100_000;
const EVERY: &str = "1h";
const EVERY_MIN: Duration = Duration::from_secs(1);

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let when = fields.doc("when")?.ok_or_else(|| fields.error("when", "is required"))?;
    let into = fields.into(|| format!("{collection}Archive"))?;
    let stamp = match fields.doc("stamp")? {
        Some(stamp) => DocBuf::from_raw(stamp),
        None => doc! { "archivedAt": "$$NOW" },
    };
    let every_text = fields.str("every")?.unwrap_or(EVERY);
    let every = crate::duration::parse(every_text).filter(|every| *every >= EVERY_MIN).ok_or_else(|| {
        fields.error("every", format!("'{every_text}' is no time from 1s on, such as 90s, 15m, 1h or 1d"))
    })?;
    let archive = Archive {
        when: DocBuf::from_raw(when),
        into,
        stamp,
        every,
        every_text: every_text.into(),
        batch: fields.count("batch", BATCH, BATCH_MAX)?,
        read: fields.choice("read", &[("active", Read::Active), ("union", Read::Union)])?,
        write: fields.choice("write", &[("thaw", Write::Thaw), ("refuse", Write::Refuse)])?,
    };
    archive.check(fields, collection)?;
    let owned = archive.stamps().map(Into::into).collect();
    let options = archive.options();
    Ok(Parsed::layout(Arc::new(archive), options, owned))
}

impl Archive {
    fn check(&self, fields: &Fields<'_>, collection: &str) -> Result<()> {
        if &*self.into == collection {
            return Err(fields.error("into", "the archive needs a collection of its own"));
        }
        if self.when.is_empty() {
            return Err(fields.error("when", "must not be empty: every document would be archived"));
        }
        let when = time::resolve(self.when.as_raw(), 0).map_err(|error| fields.error("when", error))?;
        let filter = Filter::parse(when.as_raw(), &Scope::default());
        filter.map_err(|error| fields.error("when", error.message()))?;
        self.check_stamps(fields)
    }

    fn check_stamps(&self, fields: &Fields<'_>) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        for elem in self.stamp.as_raw() {
            let name = elem.name();
            let wrong = |what: String| Err(fields.error(&format!("stamp.{name}"), what));
            if name == "_id" || name.is_empty() || name.starts_with('$') || name.contains('.') {
                return wrong("must be a field at the top of the document, and not _id".to_string());
            }
            if seen.contains(&name) {
                return wrong("is there twice".to_string());
            }
            if let Some(text) = expression(elem.value()) {
                return wrong(format!(
                    "'{text}' is no value; of expressions a stamp has only $$NOW, as in $$NOW + 30d"
                ));
            }
            seen.push(name);
        }
        let resolved = time::resolve(self.stamp.as_raw(), 0);
        resolved.map(drop).map_err(|error| fields.error("stamp", error))
    }

    /// The declaration with all its defaults.
    fn options(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("when", &self.when)
            .append("into", &*self.into)
            .append("stamp", &self.stamp)
            .append("every", &*self.every_text)
            .append("batch", self.batch as i32)
            .append("read", if self.read == Read::Active { "active" } else { "union" })
            .append("write", if self.write == Write::Thaw { "thaw" } else { "refuse" });
        doc
    }

    /// The filter of a run at this time. A document that has a stamp's field of its own stays where it is: it could not
    /// be brought back as it was.
    pub(super) fn due_at(&self, now_ms: i64) -> DocBuf {
        // It was resolved once when it was declared.
        let when = time::resolve(self.when.as_raw(), now_ms).unwrap_or_default();
        let mut out = DocBuf::new();
        out.append_array("$and", |list| {
            list.push(when.as_raw());
            for name in self.stamps() {
                list.push_doc(|doc| {
                    doc.append_doc(name, |doc| {
                        doc.append("$exists", false);
                    });
                });
            }
        });
        out
    }

    /// The document with its stamps.
    pub(super) fn stamped(&self, doc: RawDoc<'_>, now_ms: i64) -> DocBuf {
        with_stamps(doc, self.stamps_at(now_ms).as_raw())
    }

    /// The stamps of documents that are archived at this time.
    pub(super) fn stamps_at(&self, now_ms: i64) -> DocBuf {
        time::resolve(self.stamp.as_raw(), now_ms).unwrap_or_default()
    }
}

/// What in a stamp's value would be an expression elsewhere.
fn expression(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::String(text) => Some(text).filter(|text| text.starts_with('$') && time::moment(text).is_none()),
        ValueRef::Array(list) => list.iter().find_map(expression),
        ValueRef::Document(doc) => doc.iter().find_map(|elem| {
            Some(elem.name()).filter(|name| name.starts_with('$')).or_else(|| expression(elem.value()))
        }),
        _ => None,
    }
}

/// The document with these stamps.
pub(super) fn with_stamps(doc: RawDoc<'_>, stamps: RawDoc<'_>) -> DocBuf {
    let mut out = DocBuf::with_capacity(doc.as_bytes().len() + stamps.as_bytes().len());
    doc.iter().chain(stamps.iter()).for_each(|elem| {
        out.append_elem(elem);
    });
    out
}
