//! What an update did to a document, as change streams tell it (`updateDescription`).
//!
//! Operators say it themselves: the walk notes every place that it changed, as MongoDB's own log does, so that `$push`
//! tells of the new element and `$pull` of the whole array. What a pipeline did is found by comparing the documents, and
//! if telling the difference takes more than the document, it counts as replaced.

use espalier_value::{ArrayBuf, DocBuf, Elem, Elems, RawArray, RawDoc, ValueRef};

use super::names;
use super::trail::{Step, Trail};

/// What became of a document.
#[derive(Clone, Debug)]
pub enum Description {
    /// `{updatedFields, removedFields, truncatedArrays}`.
    Updated(DocBuf),
    /// Nothing is left of the old one but its `_id`, or it is not worth telling what.
    Replaced,
}

/// What differs between two documents or arrays, in the order in which it is told.
#[derive(Default)]
pub(super) struct Diff<'d> {
    pub removed: Vec<&'d str>,
    pub updated: Vec<Told<'d>>,
    pub inserted: Vec<Told<'d>>,
    pub below: Vec<(&'d str, Diff<'d>)>,
    /// An array was cut to this length.
    pub truncated: Option<usize>,
    /// Elements of an array, by index; the lists above are then empty.
    pub elements: Vec<(usize, Change<'d>)>,
}

pub(super) struct Told<'d> {
    pub name: &'d str,
    /// `None`: null.
    pub elem: Option<Elem<'d>>,
}

pub(super) enum Change<'d> {
    Set(Option<Elem<'d>>),
    Below(Diff<'d>),
}

impl Diff<'_> {
    pub fn describe(&self) -> DocBuf {
        let mut parts = Parts::default();
        self.tell(&mut String::new(), &mut parts);
        let mut doc = DocBuf::with_capacity(parts.updated.len_bytes() + parts.removed.len_bytes() + 80);
        doc.append("updatedFields", &parts.updated)
            .append("removedFields", &parts.removed)
            .append("truncatedArrays", &parts.truncated);
        doc
    }

    fn tell(&self, prefix: &mut String, parts: &mut Parts) {
        let len = prefix.len();
        let with = |prefix: &mut String, name: &str| {
            prefix.truncate(len);
            if len > 0 {
                prefix.push('.');
            }
            prefix.push_str(name);
        };
        if let Some(size) = self.truncated {
            let size = i32::try_from(size).unwrap_or(i32::MAX);
            parts.truncated.push_doc(|doc| {
                doc.append("field", &*prefix).append("newSize", size);
            });
        }
        for name in &self.removed {
            with(prefix, name);
            parts.removed.push(&*prefix);
        }
        for told in self.updated.iter().chain(&self.inserted) {
            with(prefix, told.name);
            parts.set(prefix, told.elem);
        }
        for (name, diff) in &self.below {
            with(prefix, name);
            diff.tell(prefix, parts);
        }
        for (index, change) in &self.elements {
            with(prefix, &index.to_string());
            match change {
                Change::Set(elem) => parts.set(prefix, *elem),
                Change::Below(diff) => diff.tell(prefix, parts),
            }
        }
        prefix.truncate(len);
    }
}

#[derive(Default)]
struct Parts {
    updated: DocBuf,
    removed: ArrayBuf,
    truncated: ArrayBuf,
}

impl Parts {
    fn set(&mut self, path: &str, elem: Option<Elem<'_>>) {
        match elem {
            Some(elem) => self.updated.append_renamed(path, elem),
            None => self.updated.append(path, ValueRef::Null),
        };
    }
}

/// What a walk has changed so far. Paths lie side by side in two buffers: an update of many documents makes one of these
/// for each.
#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    steps: Vec<Part>,
    names: String,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Its path begins here among the steps, and has so many of them.
    path: usize,
    len: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum Part {
    /// From where to where in the names.
    Name(usize, usize),
    Index(usize),
}

#[derive(Clone, Copy)]
pub(super) enum What {
    /// The element that begins here in the new document took the place of another.
    Set(usize),
    /// The same, where nothing was.
    Created(usize),
    /// An element of an array became null.
    Null,
    Removed,
}

impl Log {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    pub fn note(&mut self, trail: &Trail<'_>, what: What) {
        let path = self.steps.len();
        self.add_steps(trail);
        self.entries.push(Entry { path, len: self.steps.len() - path, what });
    }

    fn add_steps(&mut self, trail: &Trail<'_>) {
        trail.each(&mut |step| match step {
            Step::Root => {}
            Step::Name(name) => {
                let start = self.names.len();
                self.names.push_str(name);
                self.steps.push(Part::Name(start, self.names.len()));
            }
            Step::Index(index) => self.steps.push(Part::Index(index)),
        });
    }

    /// New elements at the end of an array that is written at `at`: `from` and those after it.
    pub fn note_appended(&mut self, trail: &Trail<'_>, at: usize, from: usize, new: &[u8]) {
        let Some(outer) = Elems::new(&new[at..]).next() else { return };
        let Some(array) = outer.value().as_array() else { return };
        // Behind the array's own length.
        let mut offset = at + outer.raw().len() - outer.value_bytes().len() + 4;
        for (index, elem) in array.elems().enumerate() {
            if index >= from {
                self.note(&trail.then(Step::Index(index)), What::Created(offset));
            }
            offset += elem.raw().len();
        }
    }

    /// What was noted, with the values from the new document, as change streams tell it.
    pub fn describe(&self, new: &[u8]) -> DocBuf {
        match self.entries.as_slice() {
            [one] => self.describe_one(*one, new),
            _ => self.diff(new).describe(),
        }
    }

    /// As [`Diff::describe`], where one thing was changed, which is most often so and needs no tree.
    fn describe_one(&self, entry: Entry, new: &[u8]) -> DocBuf {
        let path = self.dotted(entry);
        let elem = entry.what.elem(new);
        let mut doc = DocBuf::with_capacity(96 + path.len() + elem.map_or(0, |elem| elem.value_bytes().len()));
        if matches!(entry.what, What::Removed) {
            doc.append("updatedFields", RawDoc::EMPTY).append_array("removedFields", |removed| {
                removed.push(&*path);
            });
            doc.append("truncatedArrays", RawArray::EMPTY);
            return doc;
        }
        let mut updated = DocBuf::with_capacity(16 + path.len() + elem.map_or(0, |elem| elem.value_bytes().len()));
        match elem {
            Some(elem) => updated.append_renamed(&path, elem),
            None => updated.append(&path, ValueRef::Null),
        };
        doc.append("updatedFields", &updated)
            .append("removedFields", RawArray::EMPTY)
            .append("truncatedArrays", RawArray::EMPTY);
        doc
    }

    /// `a.0.b`
    fn dotted(&self, entry: Entry) -> String {
        let mut path = String::with_capacity(self.names.len() + 2 * entry.len);
        for step in self.path(entry) {
            if !path.is_empty() {
                path.push('.');
            }
            match *step {
                Part::Name(..) => path.push_str(self.name(step)),
                Part::Index(index) => path.push_str(&index.to_string()),
            }
        }
        path
    }

    fn diff<'d>(&'d self, new: &'d [u8]) -> Diff<'d> {
        let mut noted: Vec<Noted<'d>> = self.entries.iter().map(|entry| Noted { log: self, entry: *entry }).collect();
        gather(&mut noted, 0, new)
    }

    fn path(&self, entry: Entry) -> &[Part] {
        self.steps.get(entry.path..entry.path + entry.len).unwrap_or_default()
    }

    /// The name of a step in a document.
    fn name(&self, step: &Part) -> &str {
        match *step {
            Part::Name(start, end) => self.names.get(start..end).unwrap_or_default(),
            Part::Index(_) => "",
        }
    }
}

/// An entry with the log that it stands in.
#[derive(Clone, Copy)]
struct Noted<'d> {
    log: &'d Log,
    entry: Entry,
}

impl<'d> Noted<'d> {
    fn name(&self, depth: usize) -> &'d str {
        self.log.path(self.entry).get(depth).map_or("", |step| self.log.name(step))
    }

    fn index(&self, depth: usize) -> Option<usize> {
        match self.log.path(self.entry).get(depth) {
            Some(Part::Index(index)) => Some(*index),
            _ => None,
        }
    }
}

/// The diff that these entries make, all of which agree in their first `depth` steps.
fn gather<'d>(entries: &mut [Noted<'d>], depth: usize, new: &'d [u8]) -> Diff<'d> {
    let mut diff = Diff::default();
    if entries.first().is_some_and(|first| first.index(depth).is_some()) {
        let index = |noted: &Noted<'_>| noted.index(depth).unwrap_or(usize::MAX);
        entries.sort_by_key(index);
        for group in entries.chunk_by_mut(|a, b| index(a) == index(b)) {
            let first = group[0];
            let change = match first.entry.len == depth + 1 {
                true => Change::Set(first.entry.what.elem(new)),
                false => Change::Below(gather(group, depth + 1, new)),
            };
            diff.elements.push((index(&first), change));
        }
        return diff;
    }
    names::sort(entries, |noted| noted.name(depth));
    for group in entries.chunk_by_mut(|a, b| a.name(depth) == b.name(depth)) {
        let first = group[0];
        let field = first.name(depth);
        if first.entry.len > depth + 1 {
            diff.below.push((field, gather(group, depth + 1, new)));
            continue;
        }
        let told = Told { name: field, elem: first.entry.what.elem(new) };
        match first.entry.what {
            What::Removed => diff.removed.push(field),
            What::Created(_) => diff.inserted.push(told),
            What::Set(_) | What::Null => diff.updated.push(told),
        }
    }
    diff
}

impl What {
    fn elem(self, new: &[u8]) -> Option<Elem<'_>> {
        match self {
            What::Set(at) | What::Created(at) => Elems::new(&new[at..]).next(),
            What::Null | What::Removed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Context;
    use crate::expression::Scope;
    use crate::update::{Apply, Update};
    use espalier_value::doc;

    /// What is told of one change without a tree is what the tree tells.
    #[test]
    fn one_change_is_told_as_several_are() {
        let before = doc! {
            "_id": 1, "a": 1, "b": &doc! { "c": 1, "d": &doc! { "": 7 } }, "": 2,
            "list": &[1, 2, 3].iter().map(|n| ValueRef::Int32(*n)).collect::<ArrayBuf>(),
        };
        let paths = ["a", "b", "b.c", "b.d", "b.d.", "b.x", "b.x.y", "list", "list.1", "list.7", "new", "new.0.x", ""];
        for path in paths {
            for (operator, value) in [("$set", 9), ("$unset", 1), ("$push", 4), ("$inc", 2)] {
                let mut change = DocBuf::new();
                change.append_doc(operator, |fields| {
                    fields.append(path, value);
                });
                let parsed = Update::parse(ValueRef::Document(change.as_raw()), &[], &Scope::default());
                let Ok(update) = parsed else { continue };
                let super::super::Body::Operators(operators) = &update.body else { continue };
                let context = Context::default();
                let done = operators.run(before.as_raw(), &Apply::new(&context), Some(Log::default()));
                let Ok(Some((after, Some(log)))) = done else { continue };
                assert_eq!(log.len(), 1, "{change:?}");
                assert_eq!(log.describe(after.as_bytes()), log.diff(after.as_bytes()).describe(), "{change:?}");
                assert!(RawDoc::trusted(log.describe(after.as_bytes()).as_bytes()).get("updatedFields").is_some());
            }
        }
    }
}
