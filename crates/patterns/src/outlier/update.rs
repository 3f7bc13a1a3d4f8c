//! Updating one logical document: the cheap ways first.
//!
//! An update that does not look at the array is applied to the main document. One that only appends is applied to the
//! main document with an empty array, which then holds what is to be appended. Everything else is applied to the whole
//! logical document, and the difference is stored.

use espalier_query::Context;
use espalier_query::update::{Apply, Description, Kind};
use espalier_store::{Namespace, Transaction, Update, Want};
use espalier_value::{ArrayBuf, Code, DocBuf, Elem, Error, RawDoc, Result, ValueRef, compare};

use super::Outlier;
use super::encode::number;
use super::segments::{array, bytes};
use crate::bson::{array_at, id_of, value_at, whole, with_value};
use crate::layout::Written;
use crate::stored::{get, replace};
use crate::validator::Validator;

impl Outlier {
    pub(super) fn update(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        self.refuse_owned(update)?;
        let Some(main) = get(tx, ns, id)? else { return Ok(None) };
        let main = main.as_raw();
        // A document the pattern has not seen yet is brought into shape by the whole way.
        let in_shape = main.get(&self.batches).is_some();
        let aside = in_shape
            && !self.is_read(&update.filter.dependencies())
            && Validator::of(tx, ns)?.is_none_or(|validator| !self.is_read(&validator.dependencies()));
        if aside {
            if !update.filter.matches(main, &update.context)? {
                return Ok(None);
            }
            let touched = update.update.touched_paths();
            if touched.is_some_and(|paths| !paths.iter().any(|path| self.overlaps(path))) {
                return self.update_main(tx, ns, main, update).map(Some);
            }
            let kept = matches!(array_value(main, self), None | Some(ValueRef::Array(_)));
            if kept && update.update.appends_to(&self.array) {
                return self.append(tx, ns, main, update).map(Some);
            }
        }
        self.update_whole(tx, ns, main, update)
    }

    /// An update that leaves the array alone.
    fn update_main(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        main: RawDoc<'_>,
        update: &Update,
    ) -> Result<Written> {
        let (after, did) = update.update.apply_described(main, &Apply::new(&update.context))?.unzip();
        if let Some(after) = &after {
            self.check_valid(tx, ns, after.as_raw(), Some(main), update)?;
            replace(tx, ns, after.clone())?;
        }
        let image = self.image(tx, ns, main, after.as_ref().map(DocBuf::as_raw), update.want)?;
        Ok(Written { modified: after.is_some(), image, did })
    }

    /// An update that appends to the array, and whatever it does to other fields.
    fn append(&self, tx: &mut dyn Transaction, ns: &Namespace, main: RawDoc<'_>, update: &Update) -> Result<Written> {
        let head = array_at(main, self.array.parts());
        let emptied = match head {
            Some(_) => with_value(main, self.array.parts(), ValueRef::Array(ArrayBuf::new().as_raw())),
            None => DocBuf::from_raw(main),
        };
        let Some((after, did)) = update.update.apply_described(emptied.as_raw(), &Apply::new(&update.context))? else {
            let image = self.image(tx, ns, main, None, update.want)?;
            return Ok(Written { modified: false, image, did: None });
        };
        // The before image is read before anything is written.
        let before = if update.want == Want::Before { self.image(tx, ns, main, None, Want::Before)? } else { None };
        let appended: Vec<Elem<'_>> = self.head(after.as_raw()).elems().collect();
        let mut head: Vec<Elem<'_>> = self.head(main).elems().collect();
        let count = whole(main.get(&self.count)).unwrap_or(head.len() as i64).max(0) as usize;
        let mut batches = self.batch_count(main) as usize;
        let batches_before = batches;
        let mut rest = appended.as_slice();
        if batches == 0 {
            let room = self.room(&head, self.threshold, rest);
            head.extend_from_slice(&rest[..room]);
            rest = &rest[room..];
        }
        batches += self.append_to_batches(tx, ns, id_of(main), batches > 0, rest, &update.context)?;
        let stored = with_value(after.as_raw(), self.array.parts(), ValueRef::Array(array(&head).as_raw()));
        let stored = self.with_counts(stored.as_raw(), count + appended.len(), batches);
        self.check_valid(tx, ns, stored.as_raw(), Some(main), update)?;
        replace(tx, ns, stored.clone())?;
        let image = match update.want {
            Want::After => self.image(tx, ns, main, Some(stored.as_raw()), Want::After)?,
            _ => before,
        };
        let did = match did {
            Description::Updated(description) => {
                let moved = self.moved(description.as_raw(), count);
                self.with_owned(moved.as_raw(), count + appended.len(), (batches != batches_before).then_some(batches))
            }
            Description::Replaced => Description::Replaced,
        };
        Ok(Written { modified: true, image, did: Some(did) })
    }

    /// How many of the elements still fit into a segment that holds `there`.
    fn room(&self, there: &[Elem<'_>], most: usize, elems: &[Elem<'_>]) -> usize {
        let mut size: usize = there.iter().map(bytes).sum();
        elems
            .iter()
            .take(most.saturating_sub(there.len()))
            .take_while(|elem| {
                size += bytes(elem);
                size <= self.batch_bytes
            })
            .count()
    }

    /// Puts elements behind the last batch's; returns how many batches were added.
    fn append_to_batches(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        any: bool,
        mut rest: &[Elem<'_>],
        context: &Context,
    ) -> Result<usize> {
        let mut next = 1;
        if any && !rest.is_empty() {
            let Some(last) = self.last_batch(tx, ns, id)? else {
                return Err(Error::new(
                    Code(354),
                    format!("outlier: a document of {ns} has lost its batches; run validate with repair"),
                ));
            };
            next = last.number + 1;
            let there: Vec<Elem<'_>> = self.elements(last.doc.as_raw()).elems().collect();
            let room = self.room(&there, self.batch_size, rest);
            if room > 0 {
                let mut elements = ArrayBuf::from_raw(self.elements(last.doc.as_raw()));
                rest[..room].iter().for_each(|elem| {
                    elements.push_elem(*elem);
                });
                replace(tx, &self.overflow(ns), self.with_elements(last.doc.as_raw(), &elements))?;
                rest = &rest[room..];
            }
        }
        let mut added = 0;
        while !rest.is_empty() {
            let room = self.room(&[], self.batch_size, rest).max(1);
            self.add_batch(tx, ns, id, next, &array(&rest[..room]), context)?;
            rest = &rest[room..];
            next += 1;
            added += 1;
        }
        Ok(added)
    }

    /// Any update, on the whole logical document.
    fn update_whole(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        main: RawDoc<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        let batches = self.batches_of(tx, ns, main)?;
        let before = self.logical(main, &batches);
        let Some(found) = update.filter.matches_at(before.as_raw(), &update.context)? else { return Ok(None) };
        let apply = Apply { context: &update.context, position: found.position, inserting: false };
        let Some((after, did)) = update.update.apply_described(before.as_raw(), &apply)? else {
            let image = (update.want != Want::Nothing).then_some(before);
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        let after = self.keep_owned(before.as_raw(), after.as_raw())?;
        self.check_valid(tx, ns, after.as_raw(), Some(before.as_raw()), update)?;
        self.store(tx, ns, main, &batches, after.as_raw(), &update.context)?;
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => Some(before),
            Want::After => self.read_logical(tx, ns, id_of(main))?,
        };
        let did = match (did, get(tx, ns, id_of(main))?) {
            (Description::Updated(description), Some(now)) => {
                let elements = whole(now.as_raw().get(&self.count)).unwrap_or(0).max(0) as usize;
                let batches = self.batch_count(now.as_raw()) as usize;
                let changed = (batches as i64 != self.batch_count(main)).then_some(batches);
                self.with_owned(description.as_raw(), elements, changed)
            }
            (did, _) => did,
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    /// What an update of a document with an empty array did, told of one with so many elements.
    fn moved(&self, description: RawDoc<'_>, elements: usize) -> DocBuf {
        let mut out = DocBuf::new();
        for elem in description {
            match (elem.name(), elem.value()) {
                ("updatedFields", ValueRef::Document(fields)) => {
                    out.append_doc("updatedFields", |doc| {
                        for field in fields {
                            match (field.name() == self.array.as_str(), field.value()) {
                                // The first elements of an empty array are told as the array.
                                (true, ValueRef::Array(array)) if elements > 0 => {
                                    for (at, elem) in array.elems().enumerate() {
                                        doc.append_renamed(&format!("{}.{}", self.array, at + elements), elem);
                                    }
                                }
                                _ => {
                                    doc.append_elem(field);
                                }
                            }
                        }
                    });
                }
                _ => {
                    out.append_elem(elem);
                }
            }
        }
        out
    }

    /// What an update did, with the fields that the pattern changed with it.
    fn with_owned(&self, description: RawDoc<'_>, elements: usize, batches: Option<usize>) -> Description {
        let mut out = DocBuf::new();
        for elem in description {
            match (elem.name(), elem.value()) {
                ("updatedFields", ValueRef::Document(fields)) => {
                    let mut all = DocBuf::from_raw(fields);
                    all.append(&self.count, number(elements));
                    if let Some(batches) = batches {
                        all.append(&self.flag, batches > 0).append(&self.batches, number(batches));
                    }
                    out.append("updatedFields", &all);
                }
                _ => {
                    out.append_elem(elem);
                }
            }
        }
        Description::Updated(out)
    }

    /// The image that was asked for of a document whose main part is `main`, or `after` if it was changed.
    fn image(
        &self,
        tx: &dyn Transaction,
        ns: &Namespace,
        main: RawDoc<'_>,
        after: Option<RawDoc<'_>>,
        want: Want,
    ) -> Result<Option<DocBuf>> {
        let main = match want {
            Want::Nothing => return Ok(None),
            Want::Before => main,
            Want::After => after.unwrap_or(main),
        };
        Ok(Some(self.logical(main, &self.batches_of(tx, ns, main)?)))
    }

    pub(super) fn read_logical(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
    ) -> Result<Option<DocBuf>> {
        let Some(main) = get(at, ns, id)? else { return Ok(None) };
        Ok(Some(self.logical(main.as_raw(), &self.batches_of(at, ns, main.as_raw())?)))
    }

    /// Refuses an update that names a field the pattern owns.
    fn refuse_owned(&self, update: &Update) -> Result<()> {
        if update.update.kind() != Kind::Operators {
            return Ok(());
        }
        let touched = update.update.touched_paths().unwrap_or_default();
        match self.owned().into_iter().find(|name| touched.iter().any(|path| path.first() == *name)) {
            Some(name) => Err(self.not_yours(name)),
            None => Ok(()),
        }
    }

    /// A replacement or a pipeline may leave owned fields out or as they are.
    fn keep_owned(&self, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<DocBuf> {
        for name in self.owned() {
            if let Some(new) = after.get(name)
                && !before.get(name).is_some_and(|old| compare(old, new).is_eq())
            {
                return Err(self.not_yours(name));
            }
        }
        Ok(DocBuf::from_raw(after))
    }

    pub(super) fn owned(&self) -> [&str; 3] {
        [&self.count, &self.flag, &self.batches]
    }

    pub(super) fn not_yours(&self, name: &str) -> Error {
        Error::new(
            Code::ImmutableField,
            format!(
                "the field '{name}' belongs to the pattern 'outlier' on '{}', which alone writes it; leave it out",
                self.array
            ),
        )
    }
}

fn array_value<'a>(main: RawDoc<'a>, outlier: &Outlier) -> Option<ValueRef<'a>> {
    value_at(main, outlier.array.parts())
}
