//! Reading a declaration of the bucket pattern.

use std::sync::Arc;

use espalier_value::{ArrayBuf, DocBuf, Path, Result, ValueRef};

use super::stats::{MEASURES, Measure, Stats};
use super::window::Every;
use super::{Bucket, PART, STATS, Time, WHOLE};
use crate::fields::Fields;
use crate::kind::{Kind, Parsed};

pub static BUCKET: Kind = Kind {
    name: "bucket",
    doc: "Stores many small records to a document, by group and window of time, with figures about them.",
    parse,
};

const MAX_COUNT: u64 = 1_000;
const MAX_COUNT_MAX: u64 = 100_000;
const MAX_BYTES: u64 = 1 << 20;
/// Half of what a document may measure.
const MAX_BYTES_MAX: u64 = 8 << 20;
/// An index has at most 32 fields, and beside these there are the window, the part and the key.
const PATHS_MAX: usize = 10;

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let by = fields.paths("by")?;
    let time = parse_time(fields)?;
    let items = if time.is_some() { "measurements" } else { "items" };
    let bucket = Bucket {
        max_count: fields.count("maxCount", MAX_COUNT, MAX_COUNT_MAX)? as usize,
        max_bytes: fields.count("maxBytes", MAX_BYTES, MAX_BYTES_MAX)? as usize,
        into: fields.into(|| format!("{collection}Buckets"))?,
        items: fields.field_name("items", || items.to_string())?,
        stats: Arc::new(parse_stats(fields)?),
        key: fields.paths("key")?,
        by,
        time,
    };
    bucket.check(fields, collection)?;
    let options = bucket.options();
    Ok(Parsed::layout(Arc::new(bucket), options, Vec::new()))
}

fn parse_time(fields: &Fields<'_>) -> Result<Option<Time>> {
    let start = fields.field_name("start", || "bucketDate".to_string())?;
    let end = fields.field_name("end", || "bucketEndDate".to_string())?;
    match (fields.str("time")?, fields.str("every")?) {
        (None, None) => match ["start", "end"].iter().find(|name| fields.has(name)) {
            Some(name) => Err(fields.error(name, "is only for buckets with 'time'")),
            None => Ok(None),
        },
        (Some(_), None) => Err(fields.error("every", "is required with 'time'")),
        (None, Some(_)) => Err(fields.error("time", "is required with 'every'")),
        (Some(_), Some(text)) => {
            let wrong = || {
                fields.error(
                    "every",
                    format!("'{text}' is no width such as '10s', '15m', '1h', '1d', '1w', '1mo' or '1y'"),
                )
            };
            Ok(Some(Time { path: fields.path("time")?, every: Every::parse(text).ok_or_else(wrong)?, start, end }))
        }
    }
}

fn parse_stats(fields: &Fields<'_>) -> Result<Stats> {
    let mut stats = Stats::default();
    let Some(doc) = fields.doc("stats")? else { return Ok(stats) };
    for elem in doc {
        let at = format!("stats.{}", elem.name());
        let path = fields.checked_path(&at, elem.name())?;
        let ValueRef::Array(list) = elem.value() else {
            return Err(fields.error(&at, format!("must be an array, not {}", elem.ty().name())));
        };
        let mut measures: Vec<Measure> = Vec::new();
        for (position, value) in list.iter().enumerate() {
            let found = MEASURES.iter().find(|(word, _)| value.as_str() == Some(word));
            let Some((_, measure)) = found else {
                let words: Vec<&str> = MEASURES.iter().map(|(word, _)| *word).collect();
                return Err(fields
                    .error(&format!("{at}.{position}"), format!("must be one of {}, not {value}", words.join(", "))));
            };
            measures.push(*measure);
        }
        if measures.is_empty() {
            return Err(fields.error(&at, "must not be empty"));
        }
        stats.add(path, measures)?;
    }
    match stats.clash() {
        Some(name) => {
            Err(fields.error("stats", format!("two fields have figures with names that begin with '{name}'")))
        }
        None => Ok(stats),
    }
}

impl Bucket {
    fn check(&self, fields: &Fields<'_>, collection: &str) -> Result<()> {
        if &*self.into == collection {
            return Err(fields.error("into", "the buckets need a collection of their own"));
        }
        for (option, paths) in [("by", &self.by), ("key", &self.key)] {
            if paths.len() > PATHS_MAX {
                return Err(fields.error(option, format!("must name at most {PATHS_MAX} fields")));
            }
        }
        let mut names: Vec<(&str, &str)> = vec![("items", &self.items)];
        if let Some(time) = &self.time {
            names.extend([("start", &*time.start), ("end", &*time.end)]);
            if let Some(path) = self.by.iter().find(|path| overlap(path, &time.path)) {
                return Err(fields.error("by", format!("'{path}' is the time")));
            }
        }
        for (at, (option, name)) in names.iter().enumerate() {
            if [PART, WHOLE, STATS].contains(name) || names[..at].iter().any(|(_, other)| other == name) {
                return Err(fields.error(option, format!("'{name}' is another field of a bucket")));
            }
        }
        for path in &self.by {
            let first = path.first();
            if [PART, WHOLE, STATS].contains(&first) || names.iter().any(|(_, name)| *name == first) {
                return Err(fields.error("by", format!("'{first}' is another field of a bucket")));
            }
        }
        for path in &self.key {
            if self.by.iter().any(|by| overlap(by, path)) {
                return Err(fields.error("key", format!("'{path}' is the same for all readings of a bucket already")));
            }
        }
        for field in self.stats.fields() {
            if self.by.iter().any(|by| overlap(by, &field.path)) {
                let option = format!("stats.{}", field.path);
                return Err(fields.error(&option, "is the same for all readings of a bucket"));
            }
        }
        Ok(())
    }

    /// The declaration with all its defaults.
    fn options(&self) -> DocBuf {
        let list = |paths: &[Path]| -> ArrayBuf { paths.iter().map(|path| ValueRef::String(path.as_str())).collect() };
        let mut doc = DocBuf::new();
        doc.append("by", &list(&self.by));
        if let Some(time) = &self.time {
            doc.append("time", time.path.as_str())
                .append("every", &time.every.to_string())
                .append("start", &*time.start)
                .append("end", &*time.end);
        }
        doc.append("maxCount", self.max_count as i32)
            .append("maxBytes", self.max_bytes as i32)
            .append("into", &*self.into)
            .append("items", &*self.items);
        doc.append_doc("stats", |stats| {
            for field in self.stats.fields() {
                let words = field.figures.iter().map(|figure| ValueRef::String(figure.measure.word()));
                stats.append(field.path.as_str(), &words.collect::<ArrayBuf>());
            }
        });
        doc.append("key", &list(&self.key));
        doc
    }
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.is_prefix_of(b) || b.is_prefix_of(a)
}
