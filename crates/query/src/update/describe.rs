//! What an update did to a document, as change streams tell it (`updateDescription`).
//!
//! Operators say it themselves: the walk notes every place that it changed, as MongoDB's own log does, so that `$push`
//! tells of the new element and `$pull` of the whole array. What a pipeline did is found by comparing the documents, and
//! if telling the difference takes more than the document, it counts as replaced.

use espalier_value::{ArrayBuf, DocBuf, Elem, Elems};

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
            None => self.updated.append(path, espalier_value::ValueRef::Null),
        };
    }
}

/// What a walk has changed so far.
#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
}

struct Entry {
    path: Vec<Part>,
    what: What,
}

#[derive(PartialEq)]
enum Part {
    Name(Box<str>),
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
        self.entries.push(Entry { path: steps(trail), what });
    }

    /// New elements at the end of an array that is written at `at`: `from` and those after it.
    pub fn note_appended(&mut self, trail: &Trail<'_>, at: usize, from: usize, new: &[u8]) {
        let Some(outer) = Elems::new(&new[at..]).next() else { return };
        let Some(array) = outer.value().as_array() else { return };
        // Behind the array's own length.
        let mut offset = at + outer.raw().len() - outer.value_bytes().len() + 4;
        for (index, elem) in array.elems().enumerate() {
            if index >= from {
                let mut path = steps(trail);
                path.push(Part::Index(index));
                self.entries.push(Entry { path, what: What::Created(offset) });
            }
            offset += elem.raw().len();
        }
    }

    /// What was noted, with the values from the new document.
    pub fn diff<'d>(&'d self, new: &'d [u8]) -> Diff<'d> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        gather(&mut entries, 0, new)
    }
}

fn steps(trail: &Trail<'_>) -> Vec<Part> {
    let mut path = Vec::with_capacity(trail.depth());
    trail.each(&mut |step| match step {
        Step::Root => {}
        Step::Name(name) => path.push(Part::Name(name.into())),
        Step::Index(index) => path.push(Part::Index(index)),
    });
    path
}

/// The diff that these entries make, all of which agree in their first `depth` steps.
fn gather<'d>(entries: &mut [&'d Entry], depth: usize, new: &'d [u8]) -> Diff<'d> {
    let mut diff = Diff::default();
    if let Some(Part::Index(_)) = entries.first().and_then(|entry| entry.path.get(depth)) {
        let index = |entry: &&Entry| match entry.path.get(depth) {
            Some(Part::Index(index)) => *index,
            _ => usize::MAX,
        };
        entries.sort_by_key(index);
        for group in entries.chunk_by_mut(|a, b| index(a) == index(b)) {
            let first = group[0];
            let change = match first.path.len() == depth + 1 {
                true => Change::Set(first.what.elem(new)),
                false => Change::Below(gather(group, depth + 1, new)),
            };
            diff.elements.push((index(&first), change));
        }
        return diff;
    }
    names::sort(entries, |entry| entry.name(depth));
    for group in entries.chunk_by_mut(|a, b| a.name(depth) == b.name(depth)) {
        let first = group[0];
        let field = first.name(depth);
        if first.path.len() > depth + 1 {
            diff.below.push((field, gather(group, depth + 1, new)));
            continue;
        }
        let told = Told { name: field, elem: first.what.elem(new) };
        match first.what {
            What::Removed => diff.removed.push(field),
            What::Created(_) => diff.inserted.push(told),
            What::Set(_) | What::Null => diff.updated.push(told),
        }
    }
    diff
}

impl Entry {
    /// The step at this depth, which is one in a document.
    fn name(&self, depth: usize) -> &str {
        match self.path.get(depth) {
            Some(Part::Name(name)) => name,
            _ => "",
        }
    }
}

impl What {
    fn elem(self, new: &[u8]) -> Option<Elem<'_>> {
        match self {
            What::Set(at) | What::Created(at) => Elems::new(&new[at..]).next(),
            What::Null | What::Removed => None,
        }
    }
}
