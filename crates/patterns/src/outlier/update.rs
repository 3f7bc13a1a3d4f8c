//! Updating one logical document: the cheap ways first.
//!
//! An update that does not look at the array is applied to the main document. One that only appends needs that and the
//! last segment (`append.rs`). Everything else is applied to the whole logical document, and the difference is stored.

use espalier_query::update::{Apply, Description, Kind};
use espalier_store::{Namespace, Transaction, Update, Want};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef, compare};

use super::Outlier;
use super::encode::number;
use crate::bson::{id_of, whole};
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
            let Some(found) = update.filter.matches_at(main, &update.context)? else { return Ok(None) };
            let touched = update.update.touched_paths();
            if touched.is_some_and(|paths| !paths.iter().any(|path| self.overlaps(path))) {
                return self.update_main(tx, ns, main, update, found.position).map(Some);
            }
            if self.takes_appends(main) && update.update.appends_to(&self.array) {
                return self.append(tx, ns, main, update, found.position).map(Some);
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
        position: Option<usize>,
    ) -> Result<Written> {
        let apply = Apply { context: &update.context, position, inserting: false };
        let (after, did) = update.update.apply_described(main, &apply)?.unzip();
        if let Some(after) = &after {
            self.check_valid(tx, ns, after.as_raw(), Some(main), update)?;
            replace(tx, ns, after.clone())?;
        }
        let image = self.image(tx, ns, main, after.as_ref().map(DocBuf::as_raw), update.want)?;
        Ok(Written { modified: after.is_some(), image, did })
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
    pub(super) fn moved(&self, description: RawDoc<'_>, elements: usize) -> DocBuf {
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
    pub(super) fn with_owned(&self, description: RawDoc<'_>, elements: usize, batches: Option<usize>) -> Description {
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
    pub(super) fn image(
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
    pub(super) fn refuse_owned(&self, update: &Update) -> Result<()> {
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
