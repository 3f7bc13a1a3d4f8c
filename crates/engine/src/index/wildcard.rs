//! The keys of a document in a wildcard index: `(path, value)` for every leaf under the root the index names.
//!
//! Arrays add a key for each element under the path of the array itself, without positions. An empty object or
//! array is a leaf.

use espalier_store::IndexSpec;
use espalier_value::key::{self, Types};
use espalier_value::{Collator, Path, RawDoc, ValueRef};

use super::Keys;

pub fn keys(spec: &IndexSpec, doc: RawDoc<'_>) -> Keys {
    let mut out = Keys::default();
    let above = spec.parts.first().map_or("", |p| p.path.as_str());
    let rule = Rule::of(spec);
    if above.is_empty() {
        fields(doc, "", &rule, &mut out);
    } else {
        below(ValueRef::Document(doc), Path::new(above).parts(), above, &rule, &mut out);
    }
    out.entries.sort_unstable();
    out.entries.dedup_by(|a, b| a.0 == b.0);
    out
}

/// True if a wildcard index with this specification holds the values at `path`.
pub fn covers(spec: &IndexSpec, path: &str) -> bool {
    let above = spec.parts.first().map_or("", |p| p.path.as_str());
    let under = above.is_empty() || path == above || path.strip_prefix(above).is_some_and(|r| r.starts_with('.'));
    under && Rule::of(spec).holds(path)
}

/// As [`covers`], for everything below the path too.
pub fn covers_below(spec: &IndexSpec, path: &str) -> bool {
    let rule = Rule::of(spec);
    let is_below = |listed: &String| listed.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    covers(spec, path) && (rule.include || !rule.paths.iter().any(is_below))
}

/// Which paths `wildcardProjection` lets in. Without one: all but `_id`.
struct Rule<'s> {
    include: bool,
    paths: Vec<String>,
    id: bool,
    /// How the values are ordered.
    collator: Collator<'s>,
}

impl Rule<'_> {
    fn of(spec: &IndexSpec) -> Rule<'_> {
        let root = spec.parts.first().is_none_or(|p| p.path.as_str().is_empty());
        let Some(projection) = &spec.wildcard_projection else {
            return Rule { include: false, paths: Vec::new(), id: !root, collator: spec.collator() };
        };
        let on = |v: ValueRef<'_>| match v {
            ValueRef::Bool(b) => b,
            v => espalier_value::number::Number::of(v).is_some_and(|n| !n.is_zero()),
        };
        let mut rule = Rule { include: false, paths: Vec::new(), id: false, collator: spec.collator() };
        flatten(projection.as_raw(), "", &mut |path, value| {
            if path == "_id" {
                rule.id = on(value);
            } else {
                rule.include = on(value);
                rule.paths.push(path.to_string());
            }
        });
        rule
    }

    fn holds(&self, path: &str) -> bool {
        if path == "_id" || path.starts_with("_id.") {
            return self.id;
        }
        let listed =
            self.paths.iter().any(|p| path == p || path.strip_prefix(p.as_str()).is_some_and(|r| r.starts_with('.')));
        listed == self.include
    }
}

fn flatten(doc: RawDoc<'_>, prefix: &str, found: &mut dyn FnMut(&str, ValueRef<'_>)) {
    for elem in doc {
        let path = join(prefix, elem.name());
        match elem.value() {
            ValueRef::Document(inner) => flatten(inner, &path, found),
            value => found(&path, value),
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") }
}

fn below(value: ValueRef<'_>, parts: &[espalier_value::path::Part], above: &str, rule: &Rule<'_>, out: &mut Keys) {
    match (value, parts) {
        (value, []) => leaf_or_fields(value, above, rule, out),
        (ValueRef::Document(doc), [part, rest @ ..]) => {
            if let Some(inner) = doc.get(part.name()) {
                below(inner, rest, above, rule, out);
            }
        }
        (ValueRef::Array(array), parts) => {
            out.multikey = 1;
            array.iter().for_each(|element| below(element, parts, above, rule, out));
        }
        _ => {}
    }
}

fn fields(doc: RawDoc<'_>, prefix: &str, rule: &Rule<'_>, out: &mut Keys) {
    for elem in doc {
        leaf_or_fields(elem.value(), &join(prefix, elem.name()), rule, out);
    }
}

fn leaf_or_fields(value: ValueRef<'_>, path: &str, rule: &Rule<'_>, out: &mut Keys) {
    match value {
        ValueRef::Document(doc) if !doc.is_empty() => fields(doc, path, rule, out),
        ValueRef::Array(array) => {
            out.multikey = 1;
            if array.is_empty() {
                push(ValueRef::Undefined, path, rule, out);
            }
            for element in array.iter() {
                match element {
                    // An array inside an array is a value of its own.
                    ValueRef::Array(_) => push(element, path, rule, out),
                    element => leaf_or_fields(element, path, rule, out),
                }
            }
        }
        value => push(value, path, rule, out),
    }
}

fn push(value: ValueRef<'_>, path: &str, rule: &Rule<'_>, out: &mut Keys) {
    if !rule.holds(path) {
        return;
    }
    let mut encoded = Vec::with_capacity(path.len() + 16);
    let mut types = Types::new();
    // The path is a name, and names are not collated.
    key::encode(&mut encoded, ValueRef::String(path));
    rule.collator.encode(&mut encoded, value);
    [ValueRef::String(path), value].into_iter().for_each(|value| types.note(value));
    out.entries.push((encoded, types.as_bytes().to_vec()));
}
