//! How `explain` shows the reading of an index.

use espalier_query::filter::Interval;
use espalier_value::{ArrayBuf, DocBuf, ValueRef, collation};

use super::Run;
use super::tree::stage;
use crate::plan::IndexScan;

/// `IXSCAN`, or `DISTINCT_SCAN` where one entry of each value is read. `given` is how many entries it gave.
pub fn index_scan(scan: &IndexScan, run: Option<&Run>, given: u64) -> DocBuf {
    let name = if scan.distinct.is_some() { "DISTINCT_SCAN" } else { "IXSCAN" };
    stage(name, run, given, |doc| {
        append_index(scan, doc);
        doc.append("direction", if scan.reverse { "backward" } else { "forward" });
        doc.append_doc("indexBounds", |bounds| append_bounds(scan, bounds));
        if let Some(run) = run {
            doc.append("keysExamined", run.keys as i32);
        }
    })
}

/// `COUNT_SCAN`: one run of entries of which nothing is needed but their number.
pub fn count_scan(scan: &IndexScan, run: Option<&Run>, given: u64) -> DocBuf {
    stage("COUNT_SCAN", run, given, |doc| {
        if let Some(run) = run {
            doc.append("keysExamined", run.keys as i32);
        }
        append_index(scan, doc);
        let names: Vec<&str> = scan.index.spec.parts.iter().map(|part| part.path.as_str()).collect();
        let open = |i: &Interval, descending: bool| {
            let (low, high) = ((i.low.clone(), i.low_inclusive), (i.high.clone(), i.high_inclusive));
            if descending { (high, low) } else { (low, high) }
        };
        doc.append_doc("indexBounds", |bounds| {
            let (mut start, mut end) = (DocBuf::new(), DocBuf::new());
            let (mut start_inclusive, mut end_inclusive) = (true, true);
            for (name, part) in names.iter().zip(&scan.parts) {
                let Some(interval) = part.source.first() else { continue };
                let (first, last) = open(interval, part.descending);
                // What lies past an excluded value lies past all that begins with it, and before it before all.
                let (first, last) = match (start_inclusive, end_inclusive) {
                    (true, true) => (first, last),
                    (begun, ended) => {
                        let beyond = open(&Interval::everything(), part.descending);
                        (if begun { first } else { beyond.1.clone() }, if ended { last } else { beyond.0 })
                    }
                };
                start.append(name, first.0.or_null());
                end.append(name, last.0.or_null());
                start_inclusive &= first.1;
                end_inclusive &= last.1;
            }
            bounds.append("startKey", &start).append("startKeyInclusive", start_inclusive);
            bounds.append("endKey", &end).append("endKeyInclusive", end_inclusive);
        });
    })
}

fn append_index(scan: &IndexScan, doc: &mut DocBuf) {
    let spec = &scan.index.spec;
    let multikey = scan.index.multikey();
    match wildcard_path(scan) {
        // The index as it is for the one path that is asked for.
        Some(path) => doc.append_doc("keyPattern", |key| {
            key.append("$_path", 1).append(&path, 1);
        }),
        None => doc.append("keyPattern", spec.key()),
    };
    doc.append("indexName", &spec.name);
    if let Some(collation) = &spec.collation {
        doc.append("collation", &collation.listed());
    }
    doc.append("isMultiKey", multikey != 0);
    doc.append_doc("multiKeyPaths", |paths| {
        if let Some(path) = wildcard_path(scan) {
            paths.append("$_path", &ArrayBuf::new());
            paths.append_array(&path, |list| {
                if multikey != 0 {
                    list.push(path.as_str());
                }
            });
            return;
        }
        for (i, part) in spec.parts.iter().enumerate() {
            paths.append_array(part.path.as_str(), |list| {
                if multikey & (1 << i) != 0 {
                    list.push(part.path.as_str());
                }
            });
        }
    });
    doc.append("isUnique", spec.unique)
        .append("isSparse", spec.sparse)
        .append("isPartial", spec.partial.is_some())
        .append("indexVersion", 2);
}

/// The path that a wildcard index is read for.
fn wildcard_path(scan: &IndexScan) -> Option<String> {
    let first = scan.parts.first()?.source.first().map(|interval| interval.low.or_null());
    let path = first.and_then(ValueRef::as_str).unwrap_or_default();
    scan.index.spec.is_wildcard().then(|| path.to_string())
}

fn append_bounds(scan: &IndexScan, bounds: &mut DocBuf) {
    let spec = &scan.index.spec;
    let names: Vec<String> = match wildcard_path(scan) {
        Some(path) => vec!["$_path".into(), path],
        None => spec.parts.iter().map(|p| p.path.as_str().to_string()).collect(),
    };
    for (name, part) in names.iter().zip(&scan.parts) {
        let collated = spec.collation.is_some() && name != "$_path";
        bounds.append_array(name, |list| {
            let intervals: Vec<_> = if part.descending != scan.reverse {
                part.source.iter().rev().map(|i| text(i, true, collated)).collect()
            } else {
                part.source.iter().map(|i| text(i, false, collated)).collect()
            };
            intervals.iter().for_each(|t| {
                list.push(t);
            });
        });
    }
}

/// `[1, 5)`, from the end it is read from.
fn text(interval: &Interval, backward: bool, collated: bool) -> String {
    let shown = |value: ValueRef<'_>| match value {
        ValueRef::String(key) if collated => format!("CollationKey(0x{})", collation::hex(key)),
        value => value.to_string(),
    };
    let (low, high) = (shown(interval.low.or_null()), shown(interval.high.or_null()));
    if backward {
        let (open, close) =
            (if interval.high_inclusive { '[' } else { '(' }, if interval.low_inclusive { ']' } else { ')' });
        return format!("{open}{high}, {low}{close}");
    }
    let (open, close) =
        (if interval.low_inclusive { '[' } else { '(' }, if interval.high_inclusive { ']' } else { ')' });
    format!("{open}{low}, {high}{close}")
}
