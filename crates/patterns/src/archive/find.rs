//! Reading: the active documents, or both.

use espalier_store::{Cursor, Find, Hint, Namespace, Transaction};
use espalier_value::{Path, RawDoc, Result, Value, ValueRef};

use super::cursor::union;
use super::{Archive, Read};
use crate::cursor::refuse_physical;

impl Archive {
    /// Whether a read with this filter sees archived documents.
    pub(super) fn sees_archive(&self, find: &Find) -> bool {
        self.read == Read::Union || names_documents(find.filter.source())
    }

    pub(super) fn find_seen(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        if !self.sees_archive(find) {
            return at.find(ns, find);
        }
        refuse_physical(
            find,
            "archive",
            &format!(
                "which reads two collections; pass rawData: true to read the active documents, or read '{}'",
                self.into
            ),
        )?;
        let (mut first, mut second) = (ns.clone(), self.archive(ns));
        if matches!(find.hint, Some(Hint::Natural { reverse: true })) {
            std::mem::swap(&mut first, &mut second);
        }
        let mut find = find.clone();
        if names_one(&find) {
            // Whoever finds it in the one need not look in the other.
            find.limit = Some(find.limit.map_or(1, |limit| limit.min(1)));
        }
        Ok(Box::new(union(at.reader(), first, second, &find)))
    }

    pub(super) fn count_seen(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        if !self.sees_archive(find) {
            return at.count(ns, find);
        }
        let most = find.limit.map(|limit| limit.saturating_add(find.skip));
        let each = Find { skip: 0, limit: most, ..find.clone() };
        let both = at.count(ns, &each)? + at.count(&self.archive(ns), &each)?;
        let rest = both.saturating_sub(find.skip);
        Ok(find.limit.map_or(rest, |limit| rest.min(limit)))
    }

    pub(super) fn distinct_seen(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        path: &str,
        find: &Find,
    ) -> Result<Vec<Value<'static>>> {
        if !self.sees_archive(find) {
            return at.distinct(ns, path, find);
        }
        let parsed = Path::new(path);
        let wanted = Find { needs: Some(vec![parsed.first().to_string()]), ..find.clone() };
        let mut cursor = self.find_seen(at, ns, &wanted)?;
        espalier_query::distinct::collect(&mut *cursor, &parsed, find.context.collator())
    }
}

/// Whether every document that matches is named by its `_id`: equality or `$in`, also in `$and`, or in all of `$or`.
pub fn names_documents(filter: RawDoc<'_>) -> bool {
    filter.iter().any(|elem| match (elem.name(), elem.value()) {
        ("_id", ValueRef::Document(condition)) => {
            let operators = condition.first().is_some_and(|first| first.name().starts_with('$'));
            !operators || condition.iter().any(|op| matches!(op.name(), "$eq" | "$in"))
        }
        ("_id", value) => !matches!(value, ValueRef::Regex(..)),
        ("$and", ValueRef::Array(list)) => list.iter().any(|part| part.as_doc().is_some_and(names_documents)),
        ("$or", ValueRef::Array(list)) => list.iter().all(|part| part.as_doc().is_some_and(names_documents)),
        _ => false,
    })
}

/// Whether at most one document can match.
fn names_one(find: &Find) -> bool {
    let simple = find.skip == 0 && find.context.collator().is_simple();
    simple
        && find.filter.source().iter().any(|elem| match (elem.name(), elem.value()) {
            ("_id", ValueRef::Document(condition)) => match condition.first() {
                Some(first) if first.name().starts_with('$') => condition.iter().any(|op| op.name() == "$eq"),
                _ => true,
            },
            ("_id", value) => !matches!(value, ValueRef::Regex(..)),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use espalier_value::{ArrayBuf, doc};

    use super::*;

    #[test]
    fn documents_are_named_by_their_id() {
        let ids: ArrayBuf = [ValueRef::Int32(1)].into_iter().collect();
        let above = doc! { "_id": &doc! { "$gt": 1 } };
        let one = doc! { "_id": 1 };
        let list = |parts: &[&espalier_value::DocBuf]| -> ArrayBuf {
            parts.iter().map(|part| ValueRef::Document(part.as_raw())).collect()
        };
        for named in [
            one.clone(),
            doc! { "a": 2, "_id": &doc! { "x": 1 } },
            doc! { "_id": &doc! { "$in": &ids } },
            doc! { "_id": &doc! { "$gt": 0, "$eq": 1 } },
            doc! { "$and": &list(&[&above, &one]) },
            doc! { "$or": &list(&[&one, &one]) },
        ] {
            assert!(names_documents(named.as_raw()), "{named:?}");
        }
        for not in [doc! {}, doc! { "a": 1 }, above.clone(), doc! { "$or": &list(&[&one, &above]) }] {
            assert!(!names_documents(not.as_raw()), "{not:?}");
        }
    }
}
