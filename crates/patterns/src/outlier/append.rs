//! Appending to the array: by one client, or by several whose updates came at the same time, one after the other.
//!
//! An update that only appends is applied to the main document with an empty array, which then holds what is to be
//! appended. How many elements and bytes the last segment has tells where they go, so that nothing is stored before the last
//! update is done; then the main document, the last batch and new ones are written once.

use espalier_query::update::{Apply, Description};
use espalier_store::{Namespace, Transaction, Update, Want};
use espalier_value::{ArrayBuf, Code, DocBuf, Elem, Error, RawArray, RawDoc, Result, ValueRef};

use super::segments::{Batch, bytes};
use super::{Outlier, SIZE};
use crate::bson::{array_at, id_of, value_at, whole, with_value, with_values};
use crate::layout::Written;
use crate::stored::{get, replace};
use crate::validator::Validator;

/// Documents that come near a limit of the store are updated one by one, as the store then says whose update is one too
/// many.
const NEARLY_TOO_LARGE: usize = (16 << 20) - (64 << 10);
const NEARLY_TOO_DEEP: usize = 90;

/// What became of each of several updates.
type Each = Vec<Result<Option<Written>>>;

impl Outlier {
    /// Whether appends to this document need nothing but its counts and its last segment. One that the pattern has not seen
    /// yet has no counts.
    pub(super) fn takes_appends(&self, main: RawDoc<'_>) -> bool {
        let array = value_at(main, self.array.parts());
        main.get(&self.batches).is_some() && matches!(array, None | Some(ValueRef::Array(_)))
    }

    /// Whether an update may be done together with those of others.
    pub(super) fn may_combine(&self, update: &Update) -> bool {
        update.want == Want::Nothing
            && update.update.appends_to(&self.array)
            && self.refuse_owned(update).is_ok()
            && !self.is_read(&update.filter.dependencies())
    }

    /// An update that appends to the array, and whatever it does to other fields.
    pub(super) fn append(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        main: RawDoc<'_>,
        update: &Update,
        position: Option<usize>,
    ) -> Result<Written> {
        let mut appending = Appending::new(self, ns, main, Validator::of(tx, ns)?);
        let mut written = appending.apply(tx, update, position)??;
        // Read before anything is written.
        if update.want == Want::Before || !written.modified {
            written.image = self.image(tx, ns, main, None, update.want)?;
        }
        appending.store(tx, &[update])?;
        if update.want == Want::After && written.modified {
            written.image = self.read_logical(tx, ns, id_of(main))?;
        }
        Ok(written)
    }

    /// Appends of many clients to one document; `None` if they have to be done one by one.
    pub(super) fn append_together(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        updates: &[&Update],
    ) -> Result<Option<Each>> {
        let Some(main) = get(tx, ns, id)? else { return Ok(Some(updates.iter().map(|_| Ok(None)).collect())) };
        let validator = Validator::of(tx, ns)?;
        let looks = validator.as_ref().is_some_and(|validator| self.is_read(&validator.dependencies()));
        if looks || !self.takes_appends(main.as_raw()) || !self.leave_indexes_alone(tx, ns, updates)? {
            return Ok(None);
        }
        let mut appending = Appending::new(self, ns, main.as_raw(), validator);
        let mut done = Each::with_capacity(updates.len());
        for update in updates {
            let found = match update.filter.matches_at(appending.main.as_raw(), &update.context) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    done.push(Ok(None));
                    continue;
                }
                Err(error) => {
                    done.push(Err(error));
                    continue;
                }
            };
            done.push(appending.apply(tx, update, found.position)?.map(Some));
            if appending.is_near_a_limit() {
                return Ok(None);
            }
        }
        appending.store(tx, updates)?;
        Ok(Some(done))
    }

    /// Whether no index, which could refuse a document, has to do with what the updates write beside the array: of several
    /// values one after the other the store sees the last alone. Elements of the array all stay, and are seen.
    fn leave_indexes_alone(&self, at: &dyn Transaction, ns: &Namespace, updates: &[&Update]) -> Result<bool> {
        let mut beside = Vec::new();
        for update in updates {
            let Some(touched) = update.update.touched_paths() else { return Ok(false) };
            beside.extend(touched.iter().filter(|path| !self.array.is_prefix_of(path)));
        }
        if updates.len() < 2 || beside.is_empty() {
            return Ok(true);
        }
        let indexes = at.indexes(ns)?;
        let on = |index: &espalier_store::IndexSpec| {
            let paths = index.parts.iter().map(|part| &part.path);
            let of_filter = index.partial.is_some() || index.is_wildcard();
            of_filter
                || paths
                    .into_iter()
                    .any(|path| beside.iter().any(|other| other.is_prefix_of(path) || path.is_prefix_of(other)))
        };
        Ok(!indexes.iter().any(|index| on(&index.spec)))
    }
}

/// The end of the last segment.
#[derive(Clone, Copy)]
struct Fill {
    /// It is the head.
    head: bool,
    len: usize,
    bytes: usize,
}

impl Fill {
    fn of(array: RawArray<'_>, head: bool) -> Fill {
        array.elems().fold(Fill { head, len: 0, bytes: 0 }, |fill, elem| Fill {
            head,
            len: fill.len + 1,
            bytes: fill.bytes + bytes(&elem),
        })
    }

    /// Takes one more element; true if a new batch begins with it.
    fn take(&mut self, outlier: &Outlier, elem: &Elem<'_>) -> bool {
        let most = if self.head { outlier.threshold } else { outlier.batch_size };
        let more = self.bytes + bytes(elem);
        let fits = self.len < most && more <= outlier.batch_bytes;
        *self = match fits {
            true => Fill { len: self.len + 1, bytes: more, ..*self },
            false => Fill { head: false, len: 1, bytes: bytes(elem) },
        };
        !fits
    }
}

/// A new batch.
struct Start {
    /// How many of the appended elements lie before it.
    at: usize,
    /// The update that made it.
    by: usize,
}

/// A document while one update after the other appends to it.
struct Appending<'a> {
    outlier: &'a Outlier,
    ns: &'a Namespace,
    validator: Option<Validator>,
    /// As it is stored.
    stored: RawDoc<'a>,
    /// With an empty array, and with the counts as of now.
    main: DocBuf,
    /// Elements and batches as of now.
    count: usize,
    batches: usize,
    batches_before: usize,
    last_batch: Option<Batch>,
    /// Where the last segment ends now, and ended; `None` before anything was appended.
    fill: Option<Fill>,
    len_before: usize,
    /// Documents whose array has elements to append.
    appended: Vec<DocBuf>,
    appended_len: usize,
    appended_bytes: usize,
    starts: Vec<Start>,
    /// Updates that were looked at, and whether one of them changed anything.
    seen: usize,
    modified: bool,
}

impl<'a> Appending<'a> {
    fn new(outlier: &'a Outlier, ns: &'a Namespace, stored: RawDoc<'a>, validator: Option<Validator>) -> Appending<'a> {
        let parts = outlier.array.parts();
        let main = match array_at(stored, parts) {
            Some(_) => with_value(stored, parts, ValueRef::Array(RawArray::EMPTY)),
            None => DocBuf::from_raw(stored),
        };
        let count = match whole(stored.get(&outlier.count)) {
            Some(count) => count.max(0) as usize,
            None => outlier.head(stored).len(),
        };
        let batches = outlier.batch_count(stored) as usize;
        Appending {
            outlier,
            ns,
            validator,
            stored,
            main,
            count,
            batches,
            batches_before: batches,
            last_batch: None,
            fill: None,
            len_before: 0,
            appended: Vec::new(),
            appended_len: 0,
            appended_bytes: 0,
            starts: Vec::new(),
            seen: 0,
            modified: false,
        }
    }

    /// The inner error is the update's, which then has changed nothing.
    fn apply(&mut self, tx: &dyn Transaction, update: &Update, position: Option<usize>) -> Result<Result<Written>> {
        let by = self.seen;
        self.seen += 1;
        let apply = Apply { context: &update.context, position, inserting: false };
        let (after, did) = match update.update.apply_described(self.main.as_raw(), &apply) {
            Ok(Some(changed)) => changed,
            Ok(None) => return Ok(Ok(Written { modified: false, image: None, did: None })),
            Err(error) => return Ok(Err(error)),
        };
        let outlier = self.outlier;
        let elems = outlier.head(after.as_raw());
        if self.fill.is_none() && !elems.is_empty() {
            self.look(tx)?;
        }
        let (mut starts, mut len, mut fill) = (Vec::new(), 0, self.fill);
        for elem in elems.elems() {
            if fill.as_mut().is_some_and(|fill| fill.take(outlier, &elem)) {
                starts.push(Start { at: self.appended_len + len, by });
            }
            len += 1;
        }
        let (count, batches) = (self.count + len, self.batches + starts.len());
        let owned = outlier.counts(count, batches);
        let main = with_values(after.as_raw(), outlier.array.parts(), ValueRef::Array(RawArray::EMPTY), &owned);
        if let Some(validator) = self.validator.as_ref().filter(|_| !update.bypass_validation)
            && let Err(error) = validator.check(main.as_raw(), Some(self.main.as_raw()), &update.context)
        {
            return Ok(Err(error));
        }
        let did = match did {
            Description::Updated(description) => {
                let moved = outlier.moved(description.as_raw(), self.count);
                outlier.with_owned(moved.as_raw(), count, (batches != self.batches).then_some(batches))
            }
            Description::Replaced => Description::Replaced,
        };
        (self.main, self.count, self.batches, self.fill) = (main, count, batches, fill);
        self.starts.extend(starts);
        self.appended_len += len;
        if len > 0 {
            self.appended_bytes += after.len_bytes();
            self.appended.push(after);
        }
        self.modified = true;
        Ok(Ok(Written { modified: true, image: None, did: Some(did) }))
    }

    /// Looks where the last segment ends.
    fn look(&mut self, tx: &dyn Transaction) -> Result<()> {
        let fill = if self.batches_before == 0 {
            Fill::of(self.outlier.head(self.stored), true)
        } else {
            let Some(last) = self.outlier.last_batch(tx, self.ns, id_of(self.stored))? else {
                let message =
                    format!("outlier: a document of {} has lost its batches; run validate with repair", self.ns);
                return Err(Error::new(Code(354), message));
            };
            let last = self.last_batch.insert(last);
            let elements = self.outlier.elements(last.doc.as_raw());
            match whole(last.doc.as_raw().get(SIZE)).and_then(|len| usize::try_from(len).ok()) {
                Some(len) => Fill { head: false, len, bytes: bytes_of(elements, len) },
                None => Fill::of(elements, false),
            }
        };
        self.len_before = fill.len;
        self.fill = Some(fill);
        Ok(())
    }

    fn is_near_a_limit(&self) -> bool {
        self.stored.as_bytes().len() + self.main.len_bytes() + self.appended_bytes > NEARLY_TOO_LARGE
            || self.main.as_raw().is_deeper_than(NEARLY_TOO_DEEP)
    }

    /// Stores what has become of the document.
    fn store(self, tx: &mut dyn Transaction, updates: &[&Update]) -> Result<()> {
        if !self.modified {
            return Ok(());
        }
        let outlier = self.outlier;
        let elems = self.appended.iter().flat_map(|doc| outlier.head(doc.as_raw()).elems());
        let kept = self.starts.first().map_or(self.appended_len, |start| start.at);
        let mut head = ValueRef::Array(outlier.head(self.stored));
        let longer;
        if kept > 0 {
            match &self.last_batch {
                Some(last) => {
                    let there = outlier.elements(last.doc.as_raw());
                    let elements = extended(there, self.len_before, elems.clone().take(kept));
                    let batch = outlier.with_elements(
                        last.doc.as_raw(),
                        RawArray::of(elements.as_raw()),
                        self.len_before + kept,
                    );
                    replace(tx, &outlier.overflow(self.ns), batch)?;
                }
                None => {
                    longer = extended(outlier.head(self.stored), self.len_before, elems.clone().take(kept));
                    head = ValueRef::Array(RawArray::of(longer.as_raw()));
                }
            }
        }
        let mut rest = elems.skip(kept);
        let ends = self.starts.iter().skip(1).map(|next| next.at).chain([self.appended_len]);
        let first = self.last_batch.as_ref().map_or(1, |last| last.number + 1);
        for (at, (start, end)) in (first..).zip(self.starts.iter().zip(ends)) {
            let mut elements = ArrayBuf::new();
            rest.by_ref().take(end - start.at).for_each(|elem| {
                elements.push_elem(elem);
            });
            let context = &updates[start.by].context;
            outlier.add_batch(tx, self.ns, id_of(self.stored), at, &elements, context)?;
        }
        replace(tx, self.ns, with_value(self.main.as_raw(), outlier.array.parts(), head))
    }
}

/// As [`bytes`], of all elements of an array that has so many. Their names are their places.
fn bytes_of(array: RawArray<'_>, len: usize) -> usize {
    let mut digits = len;
    let mut longer = 10;
    while longer < len {
        digits += len - longer;
        longer *= 10;
    }
    // Each has a type, a name and a NUL; the array has a length and a NUL.
    (array.as_bytes().len() + len * 8).saturating_sub(5 + len * 2 + digits)
}

/// An array of so many elements with more behind them.
fn extended<'e>(there: RawArray<'_>, len: usize, more: impl Iterator<Item = Elem<'e>> + Clone) -> DocBuf {
    let room: usize = more.clone().map(|elem| bytes(&elem) + 16).sum();
    let mut out = DocBuf::with_capacity(there.as_bytes().len() + room);
    let mut name = espalier_value::IndexName::new();
    if let [_, _, _, _, elems @ .., _] = there.as_bytes() {
        out.append_raw(elems);
    }
    for (at, elem) in (len..).zip(more) {
        out.append_renamed(name.of(at), elem);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_by_the_length_as_by_the_elements() {
        let mut array = ArrayBuf::new();
        for len in 0..1_101 {
            assert_eq!(bytes_of(array.as_raw(), len), Fill::of(array.as_raw(), false).bytes, "{len}");
            match len % 3 {
                0 => array.push(ValueRef::Int32(1)),
                1 => array.push("text"),
                _ => array.push(ValueRef::Null),
            };
        }
    }
}
