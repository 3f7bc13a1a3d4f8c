//! One more increment of counters, as one write: the pending document is rewritten, and with it the document itself if enough
//! of them have come.

use std::sync::atomic::Ordering;

use espalier_query::update::{Apply, Description};
use espalier_store::{Amended, EventKind, Happening, Namespace, Transaction, Update};
use espalier_value::{DocBuf, Path, RawDoc, Result, ValueRef};

use super::Approximate;
use super::append::is_named_by;
use super::counters::{only, overlaid};
use super::row::{INCREMENTS, Row, TO, is_spare, spare};
use crate::bson::{id_of, value_at, whole};
use crate::write::key_of;

impl Approximate {
    /// False if it is not that simple: there is no pending document, or one without these counters, or the increment
    /// leaves the counters as they are, or fails.
    pub(super) fn one_more(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<bool> {
        if !is_named_by(update, id) {
            return Ok(false);
        }
        let mut is_flushed = false;
        let done = tx.amend(&self.pending(ns), id, &mut |row, beside| {
            let Some(paths) = update.update.increments() else { return Ok(None) };
            let more = match is_spare(row) {
                true => self.first_again(row, paths, update, &mut || beside(ns))?,
                false => self.with_one_more(row, paths, update, &mut || beside(ns))?,
            };
            let Some(more) = more else { return Ok(None) };
            is_flushed = more.doc.is_some();
            let mut event = Happening::new(ns.clone(), EventKind::Update);
            event.key = Some(key_of(id));
            event.description = Some(more.description);
            Ok(Some(Amended { doc: more.row, beside: more.doc, event, statement: update.statement }))
        })?;
        if done && is_flushed {
            self.flushes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(done)
    }

    /// The pending document with an increment, and what that did.
    fn with_one_more(
        &self,
        row: RawDoc<'_>,
        paths: &[Path],
        update: &Update,
        base: &mut Base<'_>,
    ) -> Result<Option<More>> {
        let Some(increments) = whole(row.get(INCREMENTS)).filter(|count| *count > 0).map(|count| count + 1) else {
            return Ok(None);
        };
        let Some(to) = row.get_doc(TO) else { return Ok(None) };
        if !paths.iter().all(|path| value_at(to, path.parts()).is_some()) {
            return Ok(None);
        }
        let Some((to, description)) = applied(update, to) else { return Ok(None) };
        if increments as u64 >= self.flush_count {
            return match base()? {
                Some(base) => Ok(Some(self.flushed(row, base.as_raw(), to.as_raw(), description, update))),
                None => Ok(None),
            };
        }
        let mut doc = DocBuf::with_capacity(row.as_bytes().len() + 8);
        for elem in row {
            match elem.name() {
                INCREMENTS => doc.append(INCREMENTS, increments),
                TO => doc.append(TO, &to),
                _ => doc.append_elem(elem),
            };
        }
        Ok(Some(More { row: doc, doc: None, description }))
    }

    /// The first increment after a flush, which left a spare pending document.
    fn first_again(
        &self,
        row: RawDoc<'_>,
        paths: &[Path],
        update: &Update,
        base: &mut Base<'_>,
    ) -> Result<Option<More>> {
        let Some(base) = base()?.filter(|base| self.can_wait(base.as_raw()) && self.flush_count > 1) else {
            return Ok(None);
        };
        let touched: Vec<&Path> =
            self.counters.0.iter().filter(|path| paths.iter().any(|other| other.as_str() == path.as_str())).collect();
        let from = only(base.as_raw(), &touched);
        // A counter that the document does not have yet has its place in it found where the whole document is looked at.
        if !touched.iter().all(|path| value_at(from.as_raw(), path.parts()).is_some()) {
            return Ok(None);
        }
        let Some((to, description)) = applied(update, from.as_raw()) else { return Ok(None) };
        let new = Row { increments: 1, since_ms: update.context.now_ms, from, to };
        Ok(Some(More { row: new.write(id_of(row)), doc: None, description }))
    }

    /// The increment with which the document is rewritten.
    fn flushed(&self, row: RawDoc<'_>, base: RawDoc<'_>, to: RawDoc<'_>, description: DocBuf, update: &Update) -> More {
        let now_ms = update.context.now_ms;
        let after = self.stamped(overlaid(base, to).as_raw(), now_ms);
        let is_stamped = value_at(after.as_raw(), self.stamp.parts()).is_some();
        let description = if is_stamped { self.with_stamp_told(description.as_raw(), now_ms) } else { description };
        More { row: spare(id_of(row), now_ms), doc: Some(after), description }
    }
}

/// Reads the document itself; nobody else writes it then.
type Base<'b> = dyn FnMut() -> Result<Option<DocBuf>> + 'b;

/// What an increment makes of the pending document, and of the document itself.
struct More {
    row: DocBuf,
    doc: Option<DocBuf>,
    description: DocBuf,
}

/// The counters after an increment, and what it did. An error is told by those who look at the whole document.
fn applied(update: &Update, counters: RawDoc<'_>) -> Option<(DocBuf, DocBuf)> {
    let (to, did) = update.update.apply_described(counters, &Apply::new(&update.context)).ok()??;
    let Description::Updated(description) = did else { return None };
    Some((to, description))
}
