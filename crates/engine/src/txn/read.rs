//! Reading: plan and open a find, count, distinct, explain.

use std::sync::Arc;

use espalier_query::stream::Buffered;
use espalier_query::{Stream, Summary};
use espalier_store::{Cursor, Find, Hint, Namespace, Verbosity};
use espalier_value::{DocBuf, Error, RawDoc, Result, Value, key};

use super::Txn;
use crate::catalog::{Collection, Index};
use crate::exec::FindCursor;
use crate::exec::tail::TailCursor;
use crate::plan::choose::{Request, hinted_index};
use crate::plan::scan::AFTER;
use crate::plan::{Access, Plan, Wanted};
use crate::{exec, explain, plan, stats};

pub fn find(txn: &Txn, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
    let Some(collection) = txn.existing(ns) else {
        // Nothing is planned for a collection that is not there, so a hint is not looked at either.
        find.context.work.planned(&Arc::new("EOF"));
        return Ok(Box::new(Nothing(Buffered::new(Vec::new()))));
    };
    if find.tailable.is_some() {
        if collection.options.capped.is_none() {
            return Err(Error::bad_value(format!(
                "error processing query: ns={ns}tailable cursor requested on non capped collection"
            )));
        }
        return Ok(Box::new(TailCursor::open(txn.core().clone(), &txn.view, collection, find)?));
    }
    Ok(Box::new(open(txn, &collection, find)?))
}

pub fn open(txn: &Txn, collection: &Arc<Collection>, find: &Find) -> Result<FindCursor> {
    let plan = plan_for(txn, collection, find)?;
    exec::open(&txn.view, collection, &plan, find, txn.core().sort_run(find))
}

pub fn plan_for(txn: &Txn, collection: &Collection, find: &Find) -> Result<Plan> {
    let fields = covered_fields(find);
    let request = Request {
        collection,
        filter: &find.filter,
        wanted: match (&find.sort, &find.hint) {
            (Some(sort), _) => Wanted::Sorted(sort),
            (None, Some(Hint::Natural { reverse })) => Wanted::Natural { reverse: *reverse },
            (None, _) => Wanted::Any,
        },
        hint: find.hint.as_ref(),
        fields: fields.as_deref(),
        limit: find.limit.map(|limit| limit.saturating_add(find.skip)),
    };
    if find.min.is_some() || find.max.is_some() {
        return bounded(collection, find);
    }
    plan::plan(&request, &txn.view)
}

/// The fields a covered plan needs, or `None` if the whole document is needed.
fn covered_fields(find: &Find) -> Option<Vec<String>> {
    if find.return_key || find.show_record_id {
        return None;
    }
    let mut fields = match (&find.needs, &find.projection) {
        (Some(needs), None) => needs.clone(),
        (_, Some(projection)) => projection.fields_needed()?.iter().map(|p| p.as_str().to_string()).collect(),
        (None, None) => return None,
    };
    if let Some(sort) = &find.sort {
        fields.extend(sort.fields().iter().map(|f| f.path.as_str().to_string()));
    }
    Some(fields)
}

/// `min` and `max`: a run of entries of the hinted index.
fn bounded(collection: &Collection, find: &Find) -> Result<Plan> {
    let (min, max) = (find.min.as_ref().map(DocBuf::as_raw), find.max.as_ref().map(DocBuf::as_raw));
    let Some(hint) = &find.hint else {
        return Err(Error::new(
            espalier_value::Code(51173),
            "min/max requires a hint: name the index they are bounds of",
        ));
    };
    let index = hinted_index(collection, hint)?;
    let encode = |bound: RawDoc<'_>| -> Result<Vec<u8>> {
        let names = index.spec.parts.iter().map(|p| p.path.as_str());
        // Where strings are ordered otherwise than the query means, a bound is no place.
        let misplaced = index.spec.collator() != find.context.collator()
            && bound.iter().any(|elem| espalier_value::collation::is_collated(elem.value()));
        if misplaced || bound.count() != index.spec.parts.len() || !bound.iter().map(|e| e.name()).eq(names) {
            return Err(Error::new(
                espalier_value::Code(51174),
                format!(
                    "The index chosen is not compatible with min/max: the fields must be those of {}, and the collation its own",
                    index.spec.key()
                ),
            ));
        }
        let mut out = Vec::new();
        for (part, elem) in index.spec.parts.iter().zip(bound) {
            let descending = part.kind == espalier_store::IndexKind::Descending;
            index.spec.collator().encode_directed(&mut out, elem.value(), descending);
        }
        Ok(out)
    };
    let low = min.map(encode).transpose()?;
    let high = max.map(encode).transpose()?;
    if let (Some(low), Some(high)) = (&low, &high)
        && low >= high
    {
        return Err(Error::new(espalier_value::Code(51175), "The value provided for 'max' must be greater than 'min'"));
    }
    let mut scan = plan::choose::whole(index);
    scan.run = Some((low, high));
    let mut plan =
        Plan { access: Access::Index(scan), residual: !find.filter.is_empty(), sorted: true, covered: false };
    if let (Some(sort), Access::Index(scan)) = (&find.sort, &mut plan.access) {
        match plan::order::provides(scan, sort) {
            plan::order::Provides::Directly { reverse } => scan.reverse = reverse,
            _ => plan.sorted = false,
        }
    }
    Ok(plan)
}

pub fn count(txn: &Txn, ns: &Namespace, find: &Find) -> Result<u64> {
    let Some(collection) = txn.existing(ns) else { return Ok(0) };
    if find.filter.is_empty() && find.hint.is_none() {
        find.context.work.planned(&Arc::new("RECORD_STORE_FAST_COUNT"));
        let all = stats::counts(&txn.view, &collection)?.plus(txn.own_counts(&collection)).documents.max(0) as u64;
        let rest = all.saturating_sub(find.skip);
        return Ok(find.limit.map_or(rest, |limit| rest.min(limit)));
    }
    // Nothing of the documents is needed but their number.
    let counted = Find { needs: Some(Vec::new()), projection: None, sort: None, ..find.clone() };
    let mut cursor = open(txn, &collection, &counted)?;
    let mut count = 0;
    while cursor.advance()? {
        count += 1;
    }
    Ok(count)
}

pub fn distinct(txn: &Txn, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
    let Some(collection) = txn.existing(ns) else { return Ok(Vec::new()) };
    if let Some(values) = distinct_by_index(txn, &collection, path, find)? {
        return Ok(values);
    }
    let parsed = espalier_value::Path::new(path);
    let wanted = Find { needs: Some(vec![parsed.first().to_string()]), ..find.clone() };
    espalier_query::distinct::collect(&mut open(txn, &collection, &wanted)?, &parsed, find.context.collator())
}

/// Reads one entry for each value.
#[derive(Debug)]
struct DistinctScan(Arc<Index>);

impl Summary for DistinctScan {
    fn summary(&self) -> String {
        format!("DISTINCT_SCAN {}", self.0.spec.key())
    }
}

/// With an index that begins with the path, each value is looked at once, however many documents have it.
fn distinct_by_index(
    txn: &Txn,
    collection: &Collection,
    path: &str,
    find: &Find,
) -> Result<Option<Vec<Value<'static>>>> {
    // Of strings that are equal under a collation one is shown as it is written, which a key does not tell.
    if !find.filter.is_empty() || find.hint.is_some() || find.context.collation.is_some() {
        return Ok(None);
    }
    let usable = |i: &&Arc<Index>| {
        i.is_usable()
            && i.spec.partial.is_none()
            && i.spec.collation.is_none()
            && !i.spec.is_wildcard()
            // An array is indexed by its elements, a missing field as null: the documents know better.
            && i.multikey() == 0
            && i.spec.parts.first().is_some_and(|p| p.path.as_str() == path && p.path.is_single())
    };
    let Some(index) = collection.indexes.iter().find(usable) else { return Ok(None) };
    let descending = index.spec.parts[0].kind == espalier_store::IndexKind::Descending;
    let (low, high) = crate::layout::tree_range(index.id);
    let mut scan = txn.view.scan(&low, &high, false)?;
    let mut found = scan.next()?;
    let mut values = Vec::new();
    find.context.work.planned(&Arc::new(DistinctScan(Arc::clone(index))));
    while found {
        find.context.interrupt.check()?;
        find.context.work.examined(1, 0);
        let (fields, _, types) = crate::index::entry::split(index.spec.unique, scan.key(), scan.value());
        let Some(value) = key::Decoder::new(fields, types).next(descending) else { return Ok(None) };
        if matches!(value, Value::Missing) || value.is_nullish() {
            // Null and missing share a key; only documents with a null count.
            return Ok(None);
        }
        let Some(len) = key::encoded_len(fields, descending) else { return Ok(None) };
        let mut past = scan.key()[..crate::layout::TREE_BYTES + len].to_vec();
        past.extend_from_slice(&AFTER);
        values.push(value);
        found = scan.seek(&past)?;
    }
    if descending {
        values.reverse();
    }
    Ok(Some(values))
}

pub fn explain(txn: &Txn, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
    let collection = txn.existing(ns);
    let plan = collection.as_ref().map(|c| plan_for(txn, c, find)).transpose()?;
    explain::explain(txn, ns, collection.as_ref(), plan.as_ref(), find, verbosity)
}

/// A collection that is not there.
struct Nothing(Buffered);

impl Stream for Nothing {
    fn advance(&mut self) -> Result<bool> {
        self.0.advance()
    }
    fn doc(&self) -> RawDoc<'_> {
        self.0.doc()
    }
}

impl Cursor for Nothing {
    fn keys_examined(&self) -> u64 {
        0
    }
    fn docs_examined(&self) -> u64 {
        0
    }
    fn plan_summary(&self) -> String {
        "EOF".to_string()
    }
}
