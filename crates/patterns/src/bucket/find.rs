//! Reading: the buckets that can have a match, their readings one by one, and beside them the plain documents of a
//! migration that is under way.
//!
//! Without a sort, readings come by group, window, part and time. A sort by time, within one group or all of them in
//! that order, needs to hold the readings of one window only.

use std::sync::Arc;

use espalier_query::sort::Sort;
use espalier_query::{Filter, Stream};
use espalier_store::{Cursor, Find, Namespace, Transaction};
use espalier_value::{DocBuf, Elems, Path, RawDoc, Result, Value, ValueRef};

use super::Bucket;
use super::group::Grouped;
use super::stored::marks;
use crate::bson::whole;
use crate::cursor::{Assemble, Rest, logical, refuse_physical};
use crate::roles::Roles;
use crate::stored::{query, sort};

/// How a find on readings is done.
pub struct Plan {
    /// What is asked of the buckets.
    pub buckets: Find,
    /// What is asked of the plain documents; `None` if there are none.
    pub plain: Option<Find>,
    /// Windows come in the order of the sort.
    pub by_window: bool,
}

impl Bucket {
    pub(super) fn find_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        if let Some(grouped) = self.find_grouped(at, ns, find)? {
            return Ok(Box::new(grouped));
        }
        let plan = self.plan_find(at, ns, find)?;
        let readings = self.readings(at, ns, &plan)?;
        let mut rest = Rest {
            filter: (!find.filter.is_empty()).then(|| find.filter.clone()),
            sort: find.sort.clone(),
            skip: find.skip,
            limit: find.limit,
            projection: find.projection.clone(),
            context: find.context.clone(),
            run: at.sort_run(find),
        };
        let stored: Box<dyn Cursor> = match &find.sort {
            Some(sort) if plan.by_window => {
                rest.sort = None;
                Box::new(super::windows::Windows::new(readings, sort.clone(), rest.filter.take(), find.context.clone()))
            }
            _ => Box::new(readings),
        };
        Ok(Box::new(logical(stored, Box::new(AsItIs), rest)))
    }

    /// As [`Bucket::find_logical`], for a group that the figures of buckets tell something about.
    pub(super) fn find_grouped(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Option<Grouped>> {
        let Some(lending) = self.lending(find) else { return Ok(None) };
        let plan = self.plan_find(at, ns, find)?;
        Ok(Some(Grouped::new(self.readings(at, ns, &plan)?, find, lending)))
    }

    fn readings(&self, at: &dyn Transaction, ns: &Namespace, plan: &Plan) -> Result<Readings> {
        let plain = plan.plain.as_ref().map(|find| at.find(ns, find)).transpose()?;
        let buckets = at.find(&self.buckets(ns), &plan.buckets)?;
        Ok(Readings {
            bucket: Arc::new(self.clone()),
            plain,
            buckets,
            left: 0,
            position: 0,
            whole: Vec::new(),
            reading: DocBuf::new(),
            plain_now: false,
            opened: 0,
        })
    }

    pub(super) fn plan_find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Plan> {
        refuse_physical(
            find,
            "bucket",
            "whose documents are stored many to a bucket; pass rawData: true to read the stored documents",
        )?;
        let mut plain = Find { sort: None, projection: None, skip: 0, limit: None, needs: None, ..find.clone() };
        plain.filter = find.filter.clone();
        let any_plain = self.may_have_plain(at, ns)?;
        // A hint is checked by asking, also where there is nothing to find.
        let plain = (any_plain || find.hint.is_some()).then_some(plain);
        let mut buckets = Find::new(self.narrow(at, ns, find)?, find.context.clone());
        let direction = find.sort.as_ref().and_then(|sort| self.window_order(sort, &buckets.filter));
        let by_window = !any_plain && direction.is_some();
        buckets.sort = sort(&self.order(if by_window { direction.unwrap_or(1) } else { 1 }))?;
        Ok(Plan { buckets, plain, by_window })
    }

    /// Whether there may be documents that are in no bucket: while they are moved in or out, and if somebody put them there with
    /// `rawData`. Looking for the first would walk over all that have been moved.
    pub(super) fn may_have_plain(&self, at: &dyn Transaction, ns: &Namespace) -> Result<bool> {
        if Roles::of(at, ns)?.is_some_and(|roles| roles.entering || roles.leaving) {
            return Ok(true);
        }
        Ok(at.count(ns, &query(Arc::new(Filter::empty())))? > 0)
    }

    /// The direction of a sort that the order of the windows follows.
    fn window_order(&self, sort: &Sort, buckets: &Filter) -> Option<i32> {
        let time = self.time.as_ref()?;
        // Under a collation the order of groups is another than that of the index.
        let mut fields = sort.fields().iter();
        let mut descending = None;
        for path in &self.by {
            if super::narrow::is_fixed(buckets, path) && fields.as_slice().first().is_none_or(|f| f.path != *path) {
                continue;
            }
            let field = fields.next()?;
            if field.path != *path || descending.is_some_and(|d| d != field.descending) {
                return None;
            }
            if sort.collator() != espalier_value::Collator::of(&None) {
                return None;
            }
            descending = Some(field.descending);
        }
        let field = fields.next()?;
        let fits = field.path == time.path && descending.is_none_or(|d| d == field.descending);
        fits.then_some(if field.descending { -1 } else { 1 })
    }

    pub(super) fn count_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        if find.filter.is_empty() && find.hint.is_none() && find.skip == 0 && find.limit.is_none() {
            return self.count_all(at, ns);
        }
        let wanted = Find { projection: None, sort: None, ..find.clone() };
        let mut cursor = self.find_logical(at, ns, &wanted)?;
        let mut count = 0;
        while cursor.advance()? {
            count += 1;
        }
        Ok(count)
    }

    /// The number of readings, by the buckets' own counts.
    pub(super) fn count_all(&self, at: &dyn Transaction, ns: &Namespace) -> Result<u64> {
        let everything = query(Arc::new(Filter::empty()));
        let mut count = at.count(ns, &everything)?;
        let mut buckets = at.find(&self.buckets(ns), &everything)?;
        while buckets.advance()? {
            let stats = buckets.doc().get_doc(super::STATS);
            let counted = stats.and_then(|stats| whole(stats.get("count"))).and_then(|n| u64::try_from(n).ok());
            count += counted.unwrap_or_else(|| self.items_of(buckets.doc()).len() as u64);
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
        let mut cursor = self.find_logical(at, ns, &Find { projection: None, ..find.clone() })?;
        espalier_query::distinct::collect(&mut *cursor, &Path::new(path), find.context.collator())
    }

    /// The readings of every bucket, for a migration back to plain documents.
    pub(super) fn all_in_buckets(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Box<dyn Cursor>> {
        let plan = Plan { buckets: query(Arc::new(Filter::empty())), plain: None, by_window: false };
        Ok(Box::new(self.readings(at, ns, &plan)?))
    }
}

/// Plain documents, then the readings of one bucket after the other.
pub struct Readings {
    bucket: Arc<Bucket>,
    plain: Option<Box<dyn Cursor>>,
    buckets: Box<dyn Cursor>,
    /// Encoded bytes of the bucket's items that are still to come.
    left: usize,
    position: usize,
    /// Positions of items that are whole.
    whole: Vec<usize>,
    reading: DocBuf,
    plain_now: bool,
    opened: u64,
}

impl Readings {
    /// The bucket that the reading is from.
    pub fn stored(&self) -> RawDoc<'_> {
        self.buckets.doc()
    }

    /// How many buckets were opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    fn next_item(&mut self) -> bool {
        let stored = self.buckets.doc();
        let bytes = self.bucket.items_of(stored).elems().rest();
        let Some(rest) = bytes.len().checked_sub(self.left).and_then(|from| bytes.get(from..)) else { return false };
        let mut elems = Elems::new(rest);
        let Some(elem) = elems.next() else { return false };
        self.left = elems.rest().len();
        let is_whole = self.whole.binary_search(&self.position).is_ok();
        self.position += 1;
        match elem.value() {
            ValueRef::Document(item) => self.bucket.put_together(stored, item, is_whole, &mut self.reading),
            // Not ours; `validate` tells.
            _ => self.reading.clear(),
        }
        true
    }
}

impl Readings {
    /// The next plain document, or reading of the bucket that is open; false if there is no more of those.
    pub fn next(&mut self) -> Result<bool> {
        if let Some(plain) = &mut self.plain {
            if plain.advance()? {
                self.plain_now = true;
                return Ok(true);
            }
            self.plain_now = false;
            self.plain = None;
        }
        Ok(self.left > 0 && self.next_item())
    }

    /// Opens the next bucket; false if there is none.
    pub fn open(&mut self) -> Result<bool> {
        if !self.buckets.advance()? {
            return Ok(false);
        }
        self.opened += 1;
        self.whole = marks(self.buckets.doc());
        self.left = self.bucket.items_of(self.buckets.doc()).elems().rest().len();
        self.position = 0;
        Ok(true)
    }

    /// Leaves the readings of the open bucket out.
    pub fn skip(&mut self) {
        self.left = 0;
    }
}

impl Stream for Readings {
    fn advance(&mut self) -> Result<bool> {
        while !self.next()? {
            if !self.open()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        match &self.plain {
            Some(plain) if self.plain_now => plain.doc(),
            _ => self.reading.as_raw(),
        }
    }
}

impl Cursor for Readings {
    fn keys_examined(&self) -> u64 {
        self.buckets.keys_examined()
    }

    fn docs_examined(&self) -> u64 {
        self.buckets.docs_examined()
    }

    fn plan_summary(&self) -> String {
        self.buckets.plan_summary()
    }
}

/// Readings come put together already.
struct AsItIs;

impl Assemble for AsItIs {
    fn assemble(&mut self, _stored: RawDoc<'_>) -> Result<Option<DocBuf>> {
        Ok(None)
    }

    fn examined(&self) -> (u64, u64) {
        (0, 0)
    }
}
