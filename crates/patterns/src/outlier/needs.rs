//! What a command has to do with the array: a command that does not look at it is left to the store.

use std::sync::Arc;

use espalier_query::expression::{Deps, Scope};
use espalier_query::projection::{Kind, Projection};
use espalier_store::Find;
use espalier_value::number::Number;
use espalier_value::{DocBuf, Path, RawDoc, ValueRef};

use super::{Outlier, Read};

/// How much of the array a find gives.
#[derive(Clone, Debug)]
pub enum Needs {
    /// The array as the main document has it; or it is left out.
    Stored,
    /// All of it. `bounded`: the document goes to the client, and must not exceed what one may measure.
    Whole { bounded: bool },
    /// A run of its elements, with a projection for the document that holds just that run.
    Page { page: Page, projection: Option<Arc<Projection>> },
}

/// `$slice`: a run from the beginning or, with a negative `skip`, from the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    pub skip: i64,
    pub limit: u64,
}

impl Outlier {
    /// Whether something that reads these paths looks at the array.
    pub(super) fn is_read(&self, deps: &Deps) -> bool {
        match deps.paths() {
            None => true,
            Some(mut paths) => paths.any(|path| self.overlaps(&Path::new(path))),
        }
    }

    /// Whether a path is the array's, above or below it.
    pub(super) fn overlaps(&self, path: &Path) -> bool {
        path.is_prefix_of(&self.array) || self.array.is_prefix_of(path)
    }

    /// How much of the array the results of a find have.
    pub(super) fn needs(&self, find: &Find) -> Needs {
        let plain = || match self.read {
            Read::Whole => Needs::Whole { bounded: true },
            Read::Head => Needs::Stored,
        };
        match (&find.needs, &find.projection) {
            (Some(paths), None) => match paths.iter().any(|path| self.overlaps(&Path::new(path))) {
                true => Needs::Whole { bounded: false },
                false => Needs::Stored,
            },
            (_, None) => plain(),
            (_, Some(projection)) => {
                if let Some((page, projection)) = self.page(projection.source()) {
                    return Needs::Page { page, projection };
                }
                let deps = projection.dependencies();
                let (reads, keeps) = (self.is_read(&deps), projection.is_exclusion());
                if projection.is_simple_exclusion() {
                    return if self.is_excluded(projection.source()) { Needs::Stored } else { plain() };
                }
                match (reads, keeps) {
                    (false, false) => Needs::Stored,
                    // It only passes through.
                    (false, true) => plain(),
                    (true, _) if projection.is_simple_inclusion() => plain(),
                    (true, _) => Needs::Whole { bounded: true },
                }
            }
        }
    }

    /// True if an exclusion names the array or what it lies in.
    fn is_excluded(&self, spec: RawDoc<'_>) -> bool {
        spec.iter().any(|elem| Path::new(elem.name()).is_prefix_of(&self.array))
    }

    /// The page that a projection asks for by `{array: {$slice: …}}`, and the rest of the projection.
    fn page(&self, spec: RawDoc<'_>) -> Option<(Page, Option<Arc<Projection>>)> {
        let slice = spec.elem(self.array.as_str())?.value().as_doc()?;
        let page = parse_slice(slice)?;
        let mut rest = DocBuf::new();
        let mut inclusion = false;
        for elem in spec {
            if elem.name() == self.array.as_str() {
                continue;
            }
            if self.overlaps(&Path::new(elem.name())) {
                return None;
            }
            let yes = match elem.value() {
                ValueRef::Bool(yes) => yes,
                value => Number::of(value).is_none_or(|n| n.to_f64() != 0.0),
            };
            // A slice keeps everything else, unless something else is asked for by name.
            inclusion |= yes && elem.name() != "_id" && elem.value().as_doc().is_none();
            rest.append_elem(elem);
        }
        if inclusion {
            rest.append(self.array.as_str(), true);
        }
        if rest.is_empty() {
            return Some((page, None));
        }
        let projection = Projection::parse(rest.as_raw(), &Scope::default(), Kind::Find).ok()?;
        // What is left must not look at elements that are not there.
        let other = projection.dependencies();
        let clean = inclusion || other.is_none() || !self.is_read(&other);
        clean.then(|| (page, Some(Arc::new(projection))))
    }
}

/// `{$slice: n}` or `{$slice: [skip, n]}`.
fn parse_slice(spec: RawDoc<'_>) -> Option<Page> {
    let mut elems = spec.iter();
    let (elem, None) = (elems.next()?, elems.next()) else { return None };
    if elem.name() != "$slice" {
        return None;
    }
    let whole = |value| Number::of(value).map(Number::to_i64_clamped);
    match elem.value() {
        ValueRef::Array(list) => {
            let mut values = list.iter();
            let (skip, limit) = (whole(values.next()?)?, whole(values.next()?)?);
            (values.next().is_none() && limit > 0).then_some(Page { skip, limit: limit as u64 })
        }
        value => match whole(value)? {
            n if n < 0 => Some(Page { skip: n, limit: n.unsigned_abs() }),
            n => Some(Page { skip: 0, limit: n as u64 }),
        },
    }
}

impl Page {
    /// The positions it stands for in an array of so many elements.
    pub fn range(self, len: u64) -> std::ops::Range<u64> {
        let start = match u64::try_from(self.skip) {
            Ok(skip) => skip.min(len),
            Err(_) => len.saturating_sub(self.skip.unsigned_abs()),
        };
        start..start.saturating_add(self.limit).min(len)
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn a_page_is_cut_as_slice_cuts() {
        assert_eq!(Page { skip: 2, limit: 3 }.range(10), 2..5);
        assert_eq!(Page { skip: -4, limit: 2 }.range(10), 6..8);
        assert_eq!(Page { skip: -40, limit: 2 }.range(10), 0..2);
        assert_eq!(Page { skip: 20, limit: 2 }.range(10), 10..10);
        assert_eq!(Page { skip: 8, limit: 5 }.range(10), 8..10);
    }
}
