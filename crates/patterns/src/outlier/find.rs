//! Reading logical documents.
//!
//! What does not look at the array is asked of the store: filter, sort, skip, limit. A condition on elements is met in
//! the head or in a batch, so with an index on the array the documents that can match are those whose head meets it and
//! the parents of the batches that do; the whole filter then decides on the logical document.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_store::{Cursor, Find, Hint, Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, Elem, Error, Path, RawDoc, Result, Value, ValueRef, key};

use super::needs::{Needs, Page};
use super::segments::in_order;
use super::{NUMBER, Outlier, SIZE};
use crate::bson::{id_of, whole, with_value};
use crate::cursor::{Assemble, Rest, logical, refuse_physical};
use crate::stored::{by, query};

/// What the client may get as one document.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// Parents of matching batches beyond which the main collection is scanned instead.
const PARENTS_MAX: usize = 100_000;

/// How a find on logical documents is done.
pub struct Plan {
    /// What is asked of the main collection.
    pub stored: Find,
    pub needs: Needs,
    pub rest: Rest,
    /// The condition that batches were searched with.
    pub candidates: Option<DocBuf>,
}

impl Outlier {
    pub(super) fn find_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        let plan = self.plan_find(at, ns, find)?;
        let cursor = at.find(ns, &plan.stored)?;
        if matches!(plan.needs, Needs::Stored) && plan.rest.filter.is_none() && plan.rest.sort.is_none() {
            return Ok(cursor);
        }
        let assembly = Assembly {
            at: at.reader(),
            ns: ns.clone(),
            outlier: Arc::new(self.clone()),
            needs: plan.needs,
            examined: (0, 0),
        };
        Ok(Box::new(logical(cursor, Box::new(assembly), plan.rest)))
    }

    pub(super) fn plan_find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Plan> {
        refuse_physical(
            find,
            "outlier",
            "whose documents are put together; pass rawData: true to read the stored documents",
        )?;
        let mut needs = self.needs(find);
        let filter_reads = self.is_read(&find.filter.dependencies());
        let sort_reads =
            find.sort.as_ref().is_some_and(|sort| sort.fields().iter().any(|field| self.overlaps(&field.path)));
        let mut stored = Find { hint: self.usable_hint(at, ns, find)?, ..find.clone() };
        let mut rest = Rest::nothing(&find.context, at.sort_run(find));
        let mut candidates = None;
        if !filter_reads && !sort_reads && matches!(needs, Needs::Stored) {
            return Ok(Plan { stored, needs, rest, candidates });
        }
        stored.needs = None;
        rest.projection = stored.projection.take();
        if let Needs::Page { projection, .. } = &needs {
            rest.projection = projection.clone();
        }
        if filter_reads || sort_reads {
            // The filter and the sort need all of it, whatever is shown in the end.
            if matches!(needs, Needs::Page { .. } | Needs::Stored) {
                rest.projection = find.projection.clone();
            }
            needs = Needs::Whole { bounded: false };
            if filter_reads {
                let (filter, searched) = self.candidates(at, ns, find)?;
                stored.filter = filter;
                candidates = searched;
                rest.filter = Some(find.filter.clone());
            }
            if sort_reads {
                rest.sort = stored.sort.take();
            }
            (rest.skip, rest.limit) = (stored.skip, stored.limit);
            (stored.skip, stored.limit) = (0, None);
        }
        Ok(Plan { stored, needs, rest, candidates })
    }

    /// An index on the array leads to the main documents by their heads only, so it is not what was meant.
    fn usable_hint(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Option<Hint>> {
        let Some(hint) = &find.hint else { return Ok(None) };
        let named = at.indexes(ns)?.into_iter().find(|index| match hint {
            Hint::Name(name) => index.spec.name == *name,
            Hint::Key(key) => index.spec.key().as_bytes() == key.as_bytes(),
            Hint::Natural { .. } => false,
        });
        let on_array = named.is_some_and(|index| index.spec.parts.iter().any(|part| self.overlaps(&part.path)));
        Ok((!on_array).then(|| hint.clone()))
    }

    /// The filter for the main documents that can match, and the condition batches were searched with.
    fn candidates(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<(Arc<Filter>, Option<DocBuf>)> {
        let scope = Scope::of(&find.context);
        let mut all = ArrayBuf::new();
        let mut searched = None;
        for elem in find.filter.source() {
            let mut one = DocBuf::new();
            one.append_elem(elem);
            let part = Filter::parse(one.as_raw(), &scope)?;
            if !self.is_read(&part.dependencies()) {
                all.push(one.as_raw());
            } else if let Some(size) = self.exact_size(elem) {
                let mut by_count = DocBuf::new();
                by_count.append(&self.count, size);
                // A document that the pattern has not seen yet has no count.
                let mut unseen = DocBuf::new();
                unseen.append(&self.count, ValueRef::Null);
                all.push(or([by_count, unseen]).as_raw());
            } else if searched.is_none()
                // Indexes may order text in another way than the command.
                && find.context.collation.is_none()
                && let Some(condition) = self.element_condition(elem)
                && self.has_index(at, ns, elem.name())?
                && let Some(parents) = self.parents(at, ns, &condition)?
            {
                let mut by_parent = DocBuf::new();
                by_parent.append_doc("_id", |doc| {
                    doc.append("$in", &parents);
                });
                all.push(or([condition.clone(), by_parent]).as_raw());
                searched = Some(condition);
            }
        }
        if all.is_empty() {
            return Ok((Arc::new(Filter::empty()), searched));
        }
        let mut filter = DocBuf::new();
        filter.append("$and", &all);
        Ok((Arc::new(Filter::parse(filter.as_raw(), &scope)?), searched))
    }

    /// `{array: {$size: n}}`.
    fn exact_size<'a>(&self, elem: Elem<'a>) -> Option<ValueRef<'a>> {
        let condition = elem.value().as_doc().filter(|_| elem.name() == self.array.as_str())?;
        let only = condition.first().filter(|first| first.name() == "$size" && condition.count() == 1)?;
        whole(Some(only.value())).map(|_| only.value())
    }

    /// A condition that some element, in the head or in a batch, must meet for the whole condition to hold.
    fn element_condition(&self, elem: Elem<'_>) -> Option<DocBuf> {
        let path = Path::new(elem.name());
        let below = path.parts().get(self.array.parts().len()..)?;
        if !self.array.is_prefix_of(&path) || below.iter().any(|part| part.index().is_some()) {
            return None;
        }
        let simple = |value: ValueRef<'_>| !matches!(value, ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_));
        let mut out = DocBuf::new();
        match elem.value() {
            ValueRef::Document(condition) if condition.first().is_some_and(|e| e.name().starts_with('$')) => {
                let operator = condition.first()?;
                let value = operator.value();
                let usable = match (operator.name(), value) {
                    ("$eq" | "$gt" | "$gte" | "$lt" | "$lte", value) => simple(value),
                    ("$in", ValueRef::Array(list)) => list.iter().all(simple),
                    ("$elemMatch", ValueRef::Document(_)) => below.is_empty(),
                    ("$all", ValueRef::Array(list)) => {
                        let first = list.get(0).filter(|v| simple(*v) && v.as_doc().is_none())?;
                        out.append(elem.name(), first);
                        return Some(out);
                    }
                    _ => false,
                };
                // One operator is enough: each may be met by another element.
                usable.then(|| {
                    out.append_doc(elem.name(), |doc| {
                        doc.append_elem(operator);
                    });
                    out
                })
            }
            value if simple(value) => {
                out.append_elem(elem);
                Some(out)
            }
            _ => None,
        }
    }

    fn has_index(&self, at: &dyn Transaction, ns: &Namespace, path: &str) -> Result<bool> {
        let leads = |parts: &[espalier_store::KeyPart]| parts.first().is_some_and(|part| part.path.as_str() == path);
        let usable = |ns: &Namespace| -> Result<bool> {
            let indexes = at.indexes(ns)?;
            Ok(indexes
                .iter()
                .any(|i| !i.building && !i.spec.hidden && i.spec.partial.is_none() && leads(&i.spec.parts)))
        };
        Ok(usable(ns)? && usable(&self.overflow(ns))?)
    }

    /// The parents of the batches that meet a condition; `None` if they are too many to be worth it.
    fn parents(&self, at: &dyn Transaction, ns: &Namespace, condition: &DocBuf) -> Result<Option<ArrayBuf>> {
        let filter = Arc::new(Filter::parse(condition.as_raw(), &Scope::default())?);
        let mut cursor = at.find(&self.overflow(ns), &query(filter))?;
        let mut seen = std::collections::HashSet::new();
        let mut parents = ArrayBuf::new();
        while cursor.advance()? {
            let Some(parent) = cursor.doc().get(&self.parent) else { continue };
            if seen.insert(key::of(parent)) {
                parents.push(parent);
            }
            if parents.len() > PARENTS_MAX {
                return Ok(None);
            }
        }
        Ok(Some(parents))
    }

    pub(super) fn count_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        if !self.is_read(&find.filter.dependencies()) {
            let find = Find { hint: self.usable_hint(at, ns, find)?, ..find.clone() };
            return at.count(ns, &find);
        }
        let wanted = Find { needs: Some(Vec::new()), projection: None, sort: None, ..find.clone() };
        let mut cursor = self.find_logical(at, ns, &wanted)?;
        let mut count = 0;
        while cursor.advance()? {
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn distinct_logical(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        path: &str,
        find: &Find,
    ) -> Result<Vec<Value<'static>>> {
        let parsed = Path::new(path);
        if !self.is_read(&find.filter.dependencies()) && !self.overlaps(&parsed) {
            let find = Find { hint: self.usable_hint(at, ns, find)?, ..find.clone() };
            return at.distinct(ns, path, &find);
        }
        let wanted = Find { needs: Some(vec![parsed.first().to_string()]), ..find.clone() };
        let mut cursor = self.find_logical(at, ns, &wanted)?;
        espalier_query::distinct::collect(&mut *cursor, &parsed, find.context.collator())
    }
}

/// Puts the documents of one find together, at the snapshot the find began with.
struct Assembly {
    at: Box<dyn Transaction>,
    ns: Namespace,
    outlier: Arc<Outlier>,
    needs: Needs,
    examined: (u64, u64),
}

impl Assemble for Assembly {
    fn assemble(&mut self, stored: RawDoc<'_>) -> Result<Option<DocBuf>> {
        let outlier = self.outlier.clone();
        match &self.needs {
            Needs::Stored => Ok(None),
            Needs::Page { page, .. } => self.page(stored, *page).map(Some),
            Needs::Whole { bounded } => {
                if outlier.batch_count(stored) == 0 {
                    return Ok(None);
                }
                let batches = outlier.stored_batches(&*self.at, &self.ns, id_of(stored))?;
                self.examined.0 += batches.len() as u64;
                self.examined.1 += batches.len() as u64;
                let size: usize = batches.iter().map(|b| b.doc.len_bytes()).sum();
                if *bounded && size + stored.as_bytes().len() > DOCUMENT_BYTES_MAX {
                    return Err(self.too_large(stored));
                }
                Ok(Some(outlier.logical(stored, &batches)))
            }
        }
    }

    fn examined(&self) -> (u64, u64) {
        self.examined
    }
}

impl Assembly {
    fn too_large(&self, stored: RawDoc<'_>) -> Error {
        let array = &self.outlier.array;
        Error::new(
            Code::BSONObjectTooLarge,
            format!(
                "the document with _id {} has an array '{array}' (pattern 'outlier') that makes it larger than {} \
                 bytes; read a page of it with the projection {{\"{array}\": {{$slice: [skip, n]}}}}, leave it out, \
                 or declare the pattern with read: \"head\"",
                id_of(stored),
                DOCUMENT_BYTES_MAX
            ),
        )
    }

    /// The document with one page of its array.
    fn page(&mut self, stored: RawDoc<'_>, page: Page) -> Result<DocBuf> {
        let outlier = self.outlier.clone();
        let parts = outlier.array.parts();
        if crate::bson::array_at(stored, parts).is_none() {
            return Ok(DocBuf::from_raw(stored));
        }
        let head = outlier.head(stored);
        let in_head = head.len() as u64;
        let len = match outlier.batch_count(stored) {
            0 => in_head,
            _ => whole(stored.get(&outlier.count)).unwrap_or(0).max(0) as u64,
        };
        let range = page.range(len);
        let mut out = ArrayBuf::new();
        let mut take = |elems: espalier_value::Elems<'_>, at: u64, size: u64| {
            let (from, to) = (range.start.max(at), range.end.min(at + size));
            if from < to {
                elems.skip((from - at) as usize).take((to - from) as usize).for_each(|elem| {
                    out.push_elem(elem);
                });
            }
        };
        take(head.elems(), 0, in_head);
        if range.end > in_head {
            for (number, at, size) in self.sizes(id_of(stored), in_head, &range)? {
                let mut find = query(self.batch(id_of(stored), number)?);
                find.limit = Some(1);
                let mut cursor = self.at.find(&outlier.overflow(&self.ns), &find)?;
                self.examined = (self.examined.0 + 1, self.examined.1 + 1);
                if cursor.advance()? {
                    take(outlier.elements(cursor.doc()).elems(), at, size);
                }
            }
        }
        Ok(with_value(stored, parts, ValueRef::Array(out.as_raw())))
    }

    /// Number, first position and size of the batches that a range of positions lies in, from the index alone.
    fn sizes(&mut self, id: ValueRef<'_>, in_head: u64, range: &std::ops::Range<u64>) -> Result<Vec<(i64, u64, u64)>> {
        let mut find = query(by(&self.outlier.parent, id)?);
        find.sort = in_order(1)?;
        find.needs = Some(vec![self.outlier.parent.to_string(), NUMBER.to_string(), SIZE.to_string()]);
        let mut cursor = self.at.find(&self.outlier.overflow(&self.ns), &find)?;
        let mut at = in_head;
        let mut hit = Vec::new();
        while at < range.end && cursor.advance()? {
            self.examined.0 += 1;
            let number = whole(cursor.doc().get(NUMBER)).unwrap_or(0);
            let size = whole(cursor.doc().get(SIZE)).unwrap_or(0).max(0) as u64;
            if at + size > range.start {
                hit.push((number, at, size));
            }
            at += size;
        }
        Ok(hit)
    }

    fn batch(&self, id: ValueRef<'_>, number: i64) -> Result<Arc<Filter>> {
        let mut filter = DocBuf::new();
        filter.append_doc(&self.outlier.parent, |doc| {
            doc.append("$eq", id);
        });
        filter.append(NUMBER, number);
        Ok(Arc::new(Filter::parse(filter.as_raw(), &Scope::default())?))
    }
}

fn or(conditions: [DocBuf; 2]) -> DocBuf {
    let mut out = DocBuf::new();
    out.append_array("$or", |list| {
        conditions.iter().for_each(|condition| {
            list.push(condition.as_raw());
        });
    });
    out
}
