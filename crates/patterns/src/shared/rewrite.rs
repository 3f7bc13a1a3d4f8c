//! Conditions and orders on logical documents, as ones on stored documents: `_id` there is `_id._id`.

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_value::{ArrayBuf, DocBuf, Elem, RawDoc, Result, ValueRef};

use super::Tenant;

/// A path of a logical document in the stored one.
pub fn path(name: &str) -> String {
    match name.strip_prefix("_id") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("_id._id{rest}"),
        _ => name.to_string(),
    }
}

/// A document whose names are paths: a sort, the key of an index.
pub fn paths(doc: RawDoc<'_>) -> DocBuf {
    let mut out = DocBuf::new();
    for elem in doc {
        out.append(&path(elem.name()), elem.value());
    }
    out
}

impl Tenant {
    /// The filter for the stored documents of this tenant, and whether the logical documents must be asked, too.
    pub(super) fn filter(&self, filter: RawDoc<'_>, scope: &Scope) -> Result<(DocBuf, bool)> {
        let mut all = ArrayBuf::new();
        let mut rest = false;
        let mut whose = DocBuf::new();
        whose.append(&self.shared.discriminator, &*self.tenant);
        all.push(whose.as_raw());
        for elem in filter {
            match self.named(elem) {
                Some(condition) => all.push(condition.as_raw()),
                None => match condition(elem, scope)? {
                    Some(condition) => all.push(condition.as_raw()),
                    None => {
                        rest = true;
                        continue;
                    }
                },
            };
        }
        let mut out = DocBuf::new();
        out.append("$and", &all);
        Ok((out, rest))
    }

    /// `{_id: value}`: the unique index knows it.
    fn named(&self, elem: Elem<'_>) -> Option<DocBuf> {
        let value = match elem.value() {
            _ if elem.name() != "_id" => return None,
            ValueRef::Document(doc) => match doc.first() {
                Some(first) if first.name() == "$eq" && doc.count() == 1 => first.value(),
                Some(first) if first.name().starts_with('$') => return None,
                _ => elem.value(),
            },
            value => value,
        };
        if matches!(value, ValueRef::Regex(..) | ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_)) {
            return None;
        }
        let mut out = DocBuf::new();
        out.append_doc("_id", |doc| {
            doc.append("$eq", &self.stored_id(value));
        });
        Some(out)
    }
}

/// One condition on stored documents; `None` if only the logical document can be asked.
fn condition(elem: Elem<'_>, scope: &Scope) -> Result<Option<DocBuf>> {
    let mut out = DocBuf::new();
    match (elem.name(), elem.value()) {
        (name @ ("$and" | "$or" | "$nor"), ValueRef::Array(list)) => {
            let mut parts = ArrayBuf::new();
            for part in list.iter() {
                let Some(part) = part.as_doc() else { return Ok(None) };
                let mut rewritten = DocBuf::new();
                for elem in part {
                    let Some(condition) = condition(elem, scope)? else { return Ok(None) };
                    condition.as_raw().iter().for_each(|elem| {
                        rewritten.append_elem(elem);
                    });
                }
                parts.push(rewritten.as_raw());
            }
            out.append(name, &parts);
        }
        (name, _) if name.starts_with('$') => {
            let mut one = DocBuf::new();
            one.append_elem(elem);
            let deps = Filter::parse(one.as_raw(), scope)?.dependencies();
            let aside = deps.paths().is_some_and(|mut paths| paths.all(|read| path(read) == *read));
            return Ok(aside.then_some(one));
        }
        (name, value) => {
            out.append(&path(name), value);
        }
    }
    Ok(Some(out))
}
