//! How `explain` shows the stages that read or write other collections: as MongoDB does, with what was left out.

use espalier_query::stage::{Pushdown, Stage};
use espalier_value::number::Number;
use espalier_value::{ArrayBuf, DocBuf};

use super::prelude::*;
use crate::reply::build;

/// What a stage is shown as, given what it was written as. `union` explains the inner pipeline of a `$unionWith`, given
/// its collection and its stages.
pub(super) fn shown(
    stage: &dyn Stage,
    written: &[DocBuf],
    db: &str,
    union: &dyn Fn(&str, ArrayBuf) -> Result<ArrayBuf>,
) -> Result<DocBuf> {
    let mut out = DocBuf::new();
    let first = written.first().and_then(|stage| stage.as_raw().first());
    match stage.pushdown().filter(|_| first.is_none_or(|first| first.name() == stage.name())) {
        Some(Pushdown::Filter(filter)) => {
            out.append(stage.name(), &filter.describe());
            return Ok(out);
        }
        Some(Pushdown::Sort(sort, limit)) => {
            out.append_doc(stage.name(), |doc| {
                doc.append("sortKey", sort.source());
                if let Some(limit) = limit {
                    doc.append("limit", limit as i64);
                }
            });
            return Ok(out);
        }
        _ => {}
    }
    let (Some(first), next) = (first, written.get(1)) else {
        out.append_doc(stage.name(), |_| {});
        return Ok(out);
    };
    match (first.name(), first.value()) {
        ("$sortByCount", key) => {
            out.append_doc("$group", |group| {
                group.append("_id", key);
                group.append_doc("count", |count| {
                    count.append("$sum", 1);
                });
            });
        }
        (name @ "$unwind", ValueRef::String(path)) => {
            out.append_doc(name, |unwind| {
                unwind.append("path", path);
            });
        }
        (name @ "$out", ValueRef::String(collection)) => {
            out.append(name, &namespace(db, collection));
        }
        (name @ "$merge", ValueRef::String(collection)) => {
            out.append(name, &merge(RawDoc::EMPTY, &namespace(db, collection)));
        }
        (name @ "$merge", ValueRef::Document(spec)) => {
            let into = match spec.get("into") {
                Some(ValueRef::Document(into)) => {
                    let db = into.get_str("db").filter(|db| !db.is_empty()).unwrap_or(db);
                    namespace(db, into.get_str("coll").unwrap_or_default())
                }
                into => namespace(db, into.and_then(ValueRef::as_str).unwrap_or_default()),
            };
            out.append(name, &merge(spec, &into));
        }
        (name @ "$lookup", ValueRef::Document(spec)) => {
            let unwinding = next.map(|next| unwinding(next.as_raw()));
            out.append(name, &lookup(spec, unwinding.as_ref()));
        }
        (name @ "$graphLookup", ValueRef::Document(spec)) => {
            let order = ["from", "as", "connectToField", "connectFromField", "startWith"];
            let rest = ["depthField", "maxDepth", "restrictSearchWithMatch"];
            let shown = build(|doc| {
                order.iter().chain(&rest).filter_map(|name| spec.elem(name)).for_each(|elem| {
                    match Number::of(elem.value()).filter(|_| elem.name() == "maxDepth") {
                        Some(depth) => doc.append("maxDepth", depth.to_i64_clamped()),
                        None => doc.append_elem(elem),
                    };
                });
            });
            out.append(name, &shown);
        }
        (name @ "$unionWith", ValueRef::String(collection)) => {
            out.append(name, &union_with(collection, union(collection, ArrayBuf::new())?));
        }
        (name @ "$unionWith", ValueRef::Document(spec)) if spec.get_str("coll").is_some() => {
            let collection = spec.get_str("coll").unwrap_or_default();
            let stages = spec.get("pipeline").and_then(ValueRef::as_array);
            let stages = stages.map(|stages| stages.iter().collect()).unwrap_or_default();
            out.append(name, &union_with(collection, union(collection, stages)?));
        }
        _ => {
            out.append_elem(first);
        }
    }
    Ok(out)
}

/// A `$group` whose input has one document for each group.
pub(super) fn group_by_distinct_scan(group: RawDoc<'_>) -> DocBuf {
    build(|out| {
        let mut stage = out.doc("$groupByDistinctScan");
        let mut root = stage.doc("newRoot");
        for elem in group.get_doc("$group").unwrap_or(RawDoc::EMPTY) {
            match elem.value() {
                ValueRef::Document(first) if elem.name() != "_id" => {
                    root.append(elem.name(), first.get("$first").unwrap_or(ValueRef::Null));
                }
                value => {
                    root.append(elem.name(), value);
                }
            }
        }
    })
}

fn namespace(db: &str, collection: &str) -> DocBuf {
    build(|doc| {
        doc.append("db", db).append("coll", collection);
    })
}

fn union_with(collection: &str, pipeline: ArrayBuf) -> DocBuf {
    build(|doc| {
        doc.append("coll", collection).append("pipeline", &pipeline);
    })
}

fn merge(spec: RawDoc<'_>, into: &DocBuf) -> DocBuf {
    build(|doc| {
        doc.append("into", into);
        let on = match spec.get("on") {
            Some(ValueRef::Array(paths)) if paths.len() == 1 => paths.get(0),
            other => other,
        };
        doc.append("on", on.unwrap_or(ValueRef::String("_id")));
        let matched = spec.get("whenMatched").unwrap_or(ValueRef::String("merge"));
        if matched.as_array().is_some() {
            let given = spec.get_doc("let").unwrap_or(RawDoc::EMPTY);
            let mut lets = doc.doc("let");
            if given.get("new").is_none() {
                lets.append("new", "$$ROOT");
            }
            lets.append_fields(given);
        }
        doc.append("whenMatched", matched);
        doc.append("whenNotMatched", spec.get("whenNotMatched").unwrap_or(ValueRef::String("insert")));
    })
}

fn lookup(spec: RawDoc<'_>, unwinding: Option<&DocBuf>) -> DocBuf {
    build(|doc| {
        ["from", "as", "localField", "foreignField"].iter().filter_map(|name| spec.elem(name)).for_each(|elem| {
            doc.append_elem(elem);
        });
        if let Some(pipeline) = spec.get("pipeline") {
            doc.append("let", spec.get_doc("let").unwrap_or(RawDoc::EMPTY)).append("pipeline", pipeline);
        }
        if let Some(unwinding) = unwinding {
            doc.append("unwinding", unwinding);
        }
    })
}

/// What a `$unwind` of the array that a `$lookup` adds says beside its path.
fn unwinding(unwind: RawDoc<'_>) -> DocBuf {
    let spec = unwind.get_doc("$unwind").unwrap_or(RawDoc::EMPTY);
    build(|doc| {
        let preserve = matches!(spec.get("preserveNullAndEmptyArrays"), Some(ValueRef::Bool(true)));
        doc.append("preserveNullAndEmptyArrays", preserve);
        if let Some(index) = spec.elem("includeArrayIndex") {
            doc.append_elem(index);
        }
    })
}
