//! Reading: plan and open a find, count, distinct, explain.

use std::sync::Arc;

use espalier_query::stream::Buffered;
use espalier_query::{Context, Stream};
use espalier_store::{Cursor, Find, Hint, Namespace, Verbosity};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value};

use super::Txn;
use crate::catalog::Collection;
use crate::exec::FindCursor;
use crate::exec::tail::TailCursor;
use crate::plan::choose::{Request, hinted_index};
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
        return Ok(Box::new(TailCursor::open(txn.core().clone(), &txn.view(), collection, find)?));
    }
    if let Some(count) = known_count(txn, &collection, find)? {
        return Ok(Box::new(Counted { left: count }));
    }
    Ok(Box::new(open(txn, &collection, find)?))
}

/// How many documents there are, where all are asked for and nothing of them is needed.
pub fn known_count(txn: &Txn, collection: &Collection, find: &Find) -> Result<Option<u64>> {
    if !find.is_count() || !find.filter.is_empty() || find.hint.is_some() || find.min.is_some() || find.max.is_some() {
        return Ok(None);
    }
    find.context.work.planned(&Arc::new(FAST_COUNT));
    let all = stats::counts(&txn.view(), collection)?.plus(txn.own_counts(collection)).documents.max(0) as u64;
    let rest = all.saturating_sub(find.skip);
    Ok(Some(find.limit.map_or(rest, |limit| rest.min(limit))))
}

/// MongoDB's name for a count that is known.
pub const FAST_COUNT: &str = "RECORD_STORE_FAST_COUNT";

pub fn open(txn: &Txn, collection: &Arc<Collection>, find: &Find) -> Result<FindCursor> {
    let plan = plan_for(txn, collection, find)?;
    exec::open(&txn.view(), collection, &plan, find, txn.core().sort_run(find))
}

/// Refuses what was parsed with the default collation of a collection that has another by now: it was dropped, and one of its
/// name created, between the parsing of a command and its transaction, or between two attempts of a write.
fn check_collation(collection: &Collection, context: &Context) -> Result<()> {
    let Some(of) = &context.collation_of else { return Ok(()) };
    let is_of = of.strip_prefix(collection.ns.db()).and_then(|rest| rest.strip_prefix('.'));
    if is_of != Some(collection.ns.collection()) || context.collation == collection.options.collation {
        return Ok(());
    }
    let message = format!("collection dropped: {of} was created anew with another default collation; send it again");
    Err(Error::new(Code::QueryPlanKilled, message))
}

pub fn plan_for(txn: &Txn, collection: &Collection, find: &Find) -> Result<Plan> {
    check_collation(collection, &find.context)?;
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
        collator: find.context.collator(),
        distinct: find.distinct.as_ref().filter(|_| find.skip == 0 && find.limit.is_none()),
    };
    if find.min.is_some() || find.max.is_some() {
        return bounded(collection, find);
    }
    plan::plan(&request, &txn.view())
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
    // Nothing of the documents is needed but their number.
    let counted = Find { needs: Some(Vec::new()), projection: None, sort: None, ..find.clone() };
    if let Some(count) = known_count(txn, &collection, &counted)? {
        return Ok(count);
    }
    let mut cursor = open(txn, &collection, &counted)?;
    let mut count = 0;
    while cursor.advance()? {
        count += 1;
    }
    Ok(count)
}

pub fn distinct(txn: &Txn, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
    let Some(collection) = txn.existing(ns) else { return Ok(Vec::new()) };
    let wanted = find.distinct_at(path);
    let path = espalier_value::Path::new(path);
    espalier_query::distinct::collect(&mut open(txn, &collection, &wanted)?, &path, find.context.collator())
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

/// Documents of which nothing is needed but their number.
struct Counted {
    left: u64,
}

impl Stream for Counted {
    fn advance(&mut self) -> Result<bool> {
        let more = self.left > 0;
        self.left -= u64::from(more);
        Ok(more)
    }
    fn doc(&self) -> RawDoc<'_> {
        RawDoc::EMPTY
    }
}

impl Cursor for Counted {
    fn keys_examined(&self) -> u64 {
        0
    }
    fn docs_examined(&self) -> u64 {
        0
    }
    fn plan_summary(&self) -> String {
        FAST_COUNT.to_string()
    }
}
