//! The declared fields, and the parts of documents that they are.

use espalier_query::expression::Deps;
use espalier_value::{DocBuf, Elem, Path, RawDoc, ValueRef};

use crate::bson::id_of;

/// Paths none of which lies in another.
#[derive(Clone, Debug)]
pub struct Counters(pub Vec<Path>);

impl Counters {
    pub fn holds(&self, path: &Path) -> bool {
        self.0.iter().any(|own| own.as_str() == path.as_str())
    }

    /// Whether a path is a counter's, above or below it.
    pub fn overlap(&self, path: &Path) -> bool {
        self.0.iter().any(|own| own.is_prefix_of(path) || path.is_prefix_of(own))
    }

    /// Whether something that reads these paths looks at a counter.
    pub fn are_read(&self, deps: &Deps) -> bool {
        match deps.paths() {
            None => true,
            Some(mut paths) => paths.any(|path| self.overlap(&Path::new(path))),
        }
    }

    /// What an update of the counters has to see of a document: its `_id`, the counters, and whatever stands in the way to
    /// one.
    pub fn skeleton(&self, doc: RawDoc<'_>) -> DocBuf {
        let paths: Vec<&Path> = self.0.iter().collect();
        let mut out = DocBuf::new();
        out.append("_id", id_of(doc));
        restrict(doc, &paths, 0, true, &mut out);
        out
    }
}

/// The document's values at some of these paths, in its order, with the documents they lie in.
pub fn only(doc: RawDoc<'_>, paths: &[&Path]) -> DocBuf {
    let mut out = DocBuf::new();
    restrict(doc, paths, 0, false, &mut out);
    out
}

/// `in_the_way`: keep what is no document where a path goes on, too.
fn restrict(doc: RawDoc<'_>, paths: &[&Path], depth: usize, in_the_way: bool, out: &mut DocBuf) {
    for elem in doc {
        let below: Vec<&Path> = paths.iter().copied().filter(|path| leads(path, depth, elem)).collect();
        match (below.first(), elem.value()) {
            (None, _) => {}
            (Some(path), _) if path.parts().len() == depth + 1 => {
                out.append_elem(elem);
            }
            (Some(_), ValueRef::Document(inner)) => {
                out.append_doc(elem.name(), |out| restrict(inner, &below, depth + 1, in_the_way, out));
            }
            _ if in_the_way => {
                out.append_elem(elem);
            }
            _ => {}
        }
    }
}

fn leads(path: &Path, depth: usize, elem: Elem<'_>) -> bool {
    path.parts().get(depth).is_some_and(|part| part.name() == elem.name())
}

/// The document with the values of another in it: those it has are replaced, the others come behind.
pub fn overlaid(doc: RawDoc<'_>, values: RawDoc<'_>) -> DocBuf {
    let mut out = DocBuf::with_capacity(doc.as_bytes().len() + 32);
    for elem in doc {
        match (elem.value(), values.get(elem.name())) {
            (_, None) => out.append_elem(elem),
            (ValueRef::Document(inner), Some(ValueRef::Document(values))) => {
                out.append(elem.name(), &overlaid(inner, values))
            }
            (_, Some(value)) => out.append(elem.name(), value),
        };
    }
    for elem in values {
        if doc.elem(elem.name()).is_none() {
            out.append_elem(elem);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use espalier_value::doc;

    use super::*;

    #[test]
    fn a_skeleton_keeps_what_stands_in_the_way() {
        let counters = Counters(vec![Path::new("a.n"), Path::new("b.c.n"), Path::new("m")]);
        let doc =
            doc! { "x": 1, "b": &doc! { "c": "text", "d": 1 }, "_id": 7, "a": &doc! { "o": 2, "n": 3 }, "m": 4i64 };
        let expected = doc! { "_id": 7, "b": &doc! { "c": "text" }, "a": &doc! { "n": 3 }, "m": 4i64 };
        assert_eq!(counters.skeleton(doc.as_raw()), expected);
        let paths: Vec<&Path> = counters.0.iter().take(2).collect();
        assert_eq!(only(doc.as_raw(), &paths), doc! { "b": &DocBuf::new(), "a": &doc! { "n": 3 } });
    }

    #[test]
    fn values_are_laid_over_a_document() {
        let doc = doc! { "_id": 7, "a": &doc! { "o": 2, "n": 3 }, "z": 1 };
        let values = doc! { "a": &doc! { "n": 4, "p": 5 }, "m": 6 };
        let expected = doc! { "_id": 7, "a": &doc! { "o": 2, "n": 4, "p": 5 }, "z": 1, "m": 6 };
        assert_eq!(overlaid(doc.as_raw(), values.as_raw()), expected);
    }
}
