//! Reading a declaration of the approximate pattern.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use espalier_value::{DocBuf, Path, RawDoc, Result};

use super::counters::Counters;
use super::{Approximate, Read};
use crate::duration;
use crate::fields::Fields;
use crate::kind::{Kind, Parsed};

pub static APPROXIMATE: Kind = Kind {
    name: "approximate",
    doc: "Collects increments of counters beside their documents, which are rewritten once for many of them.",
    parse,
};

const COUNT: u64 = 100;
const COUNT_MAX: u64 = 1_000_000;
const WITHIN: &str = "5s";
const WITHIN_MIN: Duration = Duration::from_millis(50);
const WITHIN_MAX: Duration = Duration::from_secs(24 * 3600);
const STAMP: &str = "lastFlushed";

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let paths = fields.paths("fields")?;
    let Some(first) = paths.first() else {
        return Err(fields.error("fields", "is required: the paths of the counters"));
    };
    let flush = Fields::new(fields.path_of("flush"), fields.doc("flush")?.unwrap_or(RawDoc::EMPTY));
    let flush_count = flush.count("count", COUNT, COUNT_MAX)?;
    let within_text = flush.str("within")?.unwrap_or(WITHIN);
    let within = duration::parse(within_text).filter(|time| (WITHIN_MIN..=WITHIN_MAX).contains(time));
    let within = within.ok_or_else(|| {
        flush.error("within", format!("'{within_text}' is no time from 50ms to 1d, such as 500ms, 5s or 1m"))
    })?;
    flush.finish()?;
    let stamp = match fields.str("stamp")? {
        Some(text) => fields.checked_path("stamp", text)?,
        None => beside(first),
    };
    let approximate = Approximate {
        flush_count,
        within,
        within_text: within_text.into(),
        stamp,
        read: fields.choice("read", &[("exact", Read::Exact), ("flushed", Read::Flushed)])?,
        durable: fields.bool("durable")?.unwrap_or(true),
        into: fields.into(|| format!("{collection}Pending"))?,
        counters: Arc::new(Counters(paths)),
        flushes: AtomicU64::new(0),
    };
    approximate.check(fields, collection)?;
    let owned = vec![approximate.stamp.as_str().into()];
    let options = approximate.options();
    Ok(Parsed::layout(Arc::new(approximate), options, owned))
}

/// `approximateMetrics.lastFlushed` for `approximateMetrics.viewCount`.
fn beside(path: &Path) -> Path {
    match path.as_str().rsplit_once('.') {
        Some((parent, _)) => Path::new(&format!("{parent}.{STAMP}")),
        None => Path::new(STAMP),
    }
}

impl Approximate {
    fn check(&self, fields: &Fields<'_>, collection: &str) -> Result<()> {
        if &*self.into == collection {
            return Err(fields.error("into", "the pending documents need a collection of their own"));
        }
        if self.counters.overlap(&self.stamp) {
            return Err(fields.error("stamp", format!("'{}' is in the way of a counter", self.stamp)));
        }
        Ok(())
    }

    /// The declaration with all its defaults.
    fn options(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append_array("fields", |list| {
            self.counters.0.iter().for_each(|path| {
                list.push(path.as_str());
            });
        });
        doc.append_doc("flush", |doc| {
            doc.append("count", self.flush_count as i32).append("within", &*self.within_text);
        })
        .append("stamp", self.stamp.as_str())
        .append("read", if self.read == Read::Exact { "exact" } else { "flushed" })
        .append("durable", self.durable)
        .append("into", &*self.into);
        doc
    }
}
