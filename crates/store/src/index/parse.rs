//! Reading an index specification, with MongoDB's rules for keys and options.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_query::filter::Node;
use espalier_query::projection::{Kind, Projection};
use espalier_value::number::Number;
use espalier_value::{Code, Collation, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use super::{IndexKind, IndexSpec, KeyPart};

const PARTS_MAX: usize = 32;
/// Options that are kept and listed but change nothing for the indexes there are.
const LISTED_ONLY: &[&str] = &["background", "storageEngine", "comment", "weights", "default_language", "bits"];

const LISTED_ORDER: &[&str] = &[
    "background",
    "unique",
    "hidden",
    "partialFilterExpression",
    "sparse",
    "expireAfterSeconds",
    "storageEngine",
    "weights",
    "default_language",
    "language_override",
    "bits",
    "wildcardProjection",
    "collation",
];

impl IndexSpec {
    /// Parses one entry of `createIndexes`, or a specification read back from the catalog.
    pub fn parse(doc: RawDoc<'_>) -> Result<IndexSpec> {
        let key = match doc.get("key") {
            Some(ValueRef::Document(key)) => key,
            Some(other) => {
                return Err(Error::type_mismatch(format!(
                    "The field 'key' must be an object, but got {}",
                    other.ty().name()
                )));
            }
            None => {
                return Err(Error::failed_to_parse("The 'key' field is a required property of an index specification"));
            }
        };
        let parts = parse_key(key)?;
        let mut spec =
            IndexSpec { parts, listed: DocBuf::new(), name: String::new(), unique: false, ..IndexSpec::id() };
        let mut name = None;
        for elem in doc {
            let value = elem.value();
            match elem.name() {
                "key" => {}
                "v" => check_version(value)?,
                "name" => name = Some(parse_name(value)?),
                "unique" => spec.unique = boolean("unique", value)?,
                "sparse" => spec.sparse = boolean("sparse", value)?,
                "hidden" => spec.hidden = boolean("hidden", value)?,
                "expireAfterSeconds" => spec.expire_after_seconds = Some(parse_expiry(value, &spec)?),
                "partialFilterExpression" => {}
                "wildcardProjection" => spec.wildcard_projection = Some(parse_projection(value, &spec)?),
                "collation" => {
                    spec.collation = parse_collation(value, doc)?;
                    spec.names_collation = true;
                }
                "dropDups" | "ns" => {}
                known if LISTED_ONLY.contains(&known) => {}
                unknown => {
                    return Err(Error::new(
                        Code::InvalidIndexSpecificationOption,
                        format!(
                            "Error in specification {doc:?} :: caused by :: The field '{unknown}' is not valid for an \
                             index specification. Specification: {doc:?}"
                        ),
                    ));
                }
            }
        }
        spec.name = name.ok_or_else(|| {
            Error::failed_to_parse("The 'name' field is a required property of an index specification")
        })?;
        if let Some(value) = doc.get("partialFilterExpression") {
            spec.partial = Some(parse_partial(value, &spec.collation)?);
        }
        spec.check(doc)?;
        spec.listed = listed(doc, &spec);
        Ok(spec)
    }

    /// Rules between options.
    fn check(&mut self, doc: RawDoc<'_>) -> Result<()> {
        let cannot = |why: String| Err(Error::new(Code::CannotCreateIndex, why));
        if self.sparse && self.partial.is_some() {
            return cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options".into());
        }
        let key = doc.get_doc("key").unwrap_or(RawDoc::EMPTY);
        let is_id_key = key.count() == 1
            && key.first().is_some_and(|e| e.name() == "_id")
            && self.parts[0].kind == IndexKind::Ascending;
        if is_id_key {
            let refused = |option: &str| {
                Err(Error::new(
                    Code::InvalidIndexSpecificationOption,
                    format!("The field '{option}' is not valid for an _id index specification."),
                ))
            };
            if self.sparse || self.partial.is_some() || self.expire_after_seconds.is_some() {
                return refused(if self.sparse {
                    "sparse"
                } else if self.partial.is_some() {
                    "partialFilterExpression"
                } else {
                    "expireAfterSeconds"
                });
            }
            if doc.get("unique").is_some() {
                return refused("unique");
            }
            if self.hidden {
                return refused("hidden");
            }
            *self = IndexSpec { names_collation: self.names_collation, ..IndexSpec::id_of(&self.collation) };
            return Ok(());
        }
        if key.count() == 1 && key.first().is_some_and(|e| e.name() == "_id") {
            return Err(Error::bad_value(format!(
                "The field 'key' for an _id index must be {{_id: 1}}, but got {key}"
            )));
        }
        if self.name == "_id_" {
            return Err(Error::bad_value(format!(
                "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {key:?}"
            )));
        }
        if self.is_wildcard() {
            if self.parts.len() > 1 {
                return cannot("wildcard indexes do not allow compounding".into());
            }
            if self.unique {
                return cannot("Index type 'wildcard' does not support the unique option".into());
            }
            if self.sparse {
                return cannot("Index type 'wildcard' does not support the sparse option".into());
            }
            if self.expire_after_seconds.is_some() {
                return cannot("Index type 'wildcard' cannot be a TTL index".into());
            }
        }
        Ok(())
    }
}

fn parse_key(key: RawDoc<'_>) -> Result<Vec<KeyPart>> {
    let cannot = |why: String| Error::new(Code::CannotCreateIndex, why);
    if key.is_empty() {
        return Err(cannot("Index keys cannot be an empty object.".into()));
    }
    let parts = key.iter().map(|e| parse_part(e.name(), e.value())).collect::<Result<Vec<_>>>()?;
    if parts.len() > PARTS_MAX {
        return Err(Error::new(Code(13103), format!("an index has at most {PARTS_MAX} fields")));
    }
    for (i, part) in key.iter().enumerate() {
        if key.iter().take(i).any(|e| e.name() == part.name()) {
            return Err(Error::bad_value(format!("The field '{}' appears twice in the index key", part.name())));
        }
    }
    Ok(parts)
}

fn parse_part(name: &str, value: ValueRef<'_>) -> Result<KeyPart> {
    let cannot = |why: String| Err(Error::new(Code::CannotCreateIndex, why));
    let kind = match value {
        ValueRef::String(plugin @ ("2d" | "2dsphere" | "text" | "hashed" | "geoHaystack" | "columnstore")) => {
            return Err(Error::new(
                Code::CannotCreateIndex,
                format!("'{plugin}' indexes are not supported yet; use ascending, descending or wildcard ('$**') keys"),
            ));
        }
        ValueRef::String("") => return cannot("Index keys cannot be an empty string.".into()),
        ValueRef::String(plugin) => return cannot(format!("Unknown index plugin '{plugin}'")),
        value => match Number::of(value) {
            Some(n) if n.is_nan() => return cannot("Values in the index key pattern cannot be NaN.".into()),
            Some(n) if n.is_zero() => return cannot("Values in the index key pattern cannot be 0.".into()),
            Some(n) if n.compare(Number::Int32(0)).is_lt() => IndexKind::Descending,
            Some(_) => IndexKind::Ascending,
            None => {
                return cannot(format!(
                    "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                    value.ty().name()
                ));
            }
        },
    };
    if name.is_empty() {
        return cannot("Index keys cannot be an empty field.".into());
    }
    if name == "$**" || name.ends_with(".$**") {
        let above = name.trim_end_matches("$**").trim_end_matches('.');
        // Any number will do: the direction means nothing to a wildcard index.
        return Ok(KeyPart { path: Path::new(above), kind: IndexKind::Wildcard });
    }
    for part in name.split('.') {
        if part.is_empty() {
            return cannot(format!("Index keys cannot contain an empty field: '{name}'"));
        }
        if part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db") {
            return cannot(format!("Index key contains an illegal field name: field name starts with '$': '{name}'"));
        }
    }
    Ok(KeyPart { path: Path::new(name), kind })
}

fn parse_name(value: ValueRef<'_>) -> Result<String> {
    match value {
        ValueRef::String("") => Err(Error::new(Code::CannotCreateIndex, "index name cannot be empty")),
        ValueRef::String("*") => Err(Error::bad_value("The index name '*' is not valid.")),
        ValueRef::String(s) if s.contains('\0') => {
            Err(Error::new(Code::CannotCreateIndex, "index name cannot contain NUL bytes"))
        }
        ValueRef::String(s) => Ok(s.to_string()),
        other => Err(Error::type_mismatch(format!("The field 'name' must be a string, but got {}", other.ty().name()))),
    }
}

fn check_version(value: ValueRef<'_>) -> Result<()> {
    match Number::of(value).map(Number::as_exact_i64) {
        Some(Some(1 | 2)) => Ok(()),
        Some(Some(v)) => Err(Error::new(
            Code::CannotCreateIndex,
            format!("Invalid index specification; cannot create an index with v={v}"),
        )),
        Some(None) => Err(Error::bad_value("Index version must be representable as a 32-bit integer")),
        None => Err(Error::type_mismatch(format!("The field 'v' must be a number, but got {}", value.ty().name()))),
    }
}

fn boolean(option: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(b) => Ok(b),
        _ => match Number::of(value) {
            Some(n) => Ok(!n.is_zero()),
            None => Err(Error::type_mismatch(format!(
                "The field '{option}' has value {option}: {value:?}, which is not convertible to bool"
            ))),
        },
    }
}

fn parse_expiry(value: ValueRef<'_>, spec: &IndexSpec) -> Result<f64> {
    let Some(n) = Number::of(value) else {
        return Err(Error::new(
            Code::CannotCreateIndex,
            format!(
                "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'",
                value.ty().name()
            ),
        ));
    };
    let seconds = n.to_f64();
    if seconds.is_nan() {
        return Ok(0.0);
    }
    if !(0.0..=2_147_483_647.0).contains(&seconds) {
        return Err(Error::new(
            Code::CannotCreateIndex,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a number between 0 and 2147483647",
        ));
    }
    if spec.parts.len() > 1 {
        return Err(Error::new(
            Code::CannotCreateIndex,
            "TTL indexes are single-field indexes, compound indexes do not support TTL",
        ));
    }
    Ok(seconds)
}

fn parse_partial(value: ValueRef<'_>, collation: &Option<Arc<Collation>>) -> Result<Arc<Filter>> {
    match value {
        ValueRef::Document(doc) => {
            let filter = Filter::parse(doc, &Scope::default().collated(collation.clone()))?;
            check_partial(filter.root())?;
            Ok(Arc::new(filter))
        }
        other => Err(Error::type_mismatch(format!(
            "The field 'partialFilterExpression' must be an object, but got {}",
            other.ty().name()
        ))),
    }
}

/// What a partial index may depend on: conditions that a query can be seen to imply.
fn check_partial(node: &Node) -> Result<()> {
    let allowed = match node {
        Node::And(nodes) | Node::Or(nodes) => return nodes.iter().try_for_each(check_partial),
        Node::Leaf(leaf) => {
            matches!(leaf.predicate.name(), "$eq" | "$gt" | "$gte" | "$lt" | "$lte" | "$exists" | "$type" | "$in")
        }
        _ => false,
    };
    if allowed {
        return Ok(());
    }
    Err(Error::new(
        Code::CannotCreateIndex,
        "unsupported expression in partial index: use $eq, $gt, $gte, $lt, $lte, $in, $exists: true, $type, $and, $or",
    ))
}

fn parse_projection(value: ValueRef<'_>, spec: &IndexSpec) -> Result<DocBuf> {
    let root =
        spec.parts.len() == 1 && spec.parts[0].kind == IndexKind::Wildcard && spec.parts[0].path.as_str().is_empty();
    match value {
        ValueRef::Document(_) if !spec.is_wildcard() => {
            Err(Error::bad_value("The field 'wildcardProjection' is only allowed in an 'wildcard' index"))
        }
        ValueRef::Document(_) if !root => {
            Err(Error::failed_to_parse("The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}"))
        }
        ValueRef::Document(doc) if doc.is_empty() => {
            Err(Error::failed_to_parse("The 'wildcardProjection' field can't be an empty object"))
        }
        ValueRef::Document(doc) => {
            Projection::parse(doc, &Scope::default(), Kind::Find)?;
            Ok(DocBuf::from_raw(doc))
        }
        other => Err(Error::type_mismatch(format!(
            "The field 'wildcardProjection' must be a non-empty object, but got {}",
            other.ty().name()
        ))),
    }
}

fn parse_collation(value: ValueRef<'_>, spec: RawDoc<'_>) -> Result<Option<Arc<Collation>>> {
    match value {
        ValueRef::Document(doc) if doc.is_empty() => Err(Error::bad_value(format!(
            "Error in specification {spec} :: caused by :: The field 'collation' cannot be an empty object."
        ))),
        ValueRef::Document(doc) => Collation::parse(doc, "").map_err(|error| {
            error.context(&format!("failed to add collation information to index spec for index creation: {spec}"))
        }),
        other => {
            Err(Error::type_mismatch(format!("The field 'collation' must be an object, but got {}", other.ty().name())))
        }
    }
}

/// `v`, `key` and `name` first, then the options in the order in which MongoDB lists them.
fn listed(doc: RawDoc<'_>, spec: &IndexSpec) -> DocBuf {
    if spec.is_id() {
        return spec.listed.clone();
    }
    let mut out = DocBuf::new();
    let version = doc.get("v").and_then(Number::of).and_then(Number::as_exact_i64).unwrap_or(2);
    out.append("v", version as i32);
    for name in ["key", "name"] {
        if let Some(elem) = doc.elem(name) {
            out.append_elem(elem);
        }
    }
    for name in LISTED_ORDER {
        match (*name, doc.elem(name)) {
            ("unique", _) if spec.unique => drop(out.append("unique", true)),
            ("sparse", _) if spec.sparse => drop(out.append("sparse", true)),
            ("hidden", _) if spec.hidden => drop(out.append("hidden", true)),
            ("collation", _) => {
                if let Some(collation) = &spec.collation {
                    out.append("collation", &collation.listed());
                }
            }
            // A flag that is off is not listed.
            ("unique" | "sparse" | "hidden", _) | (_, None) => {}
            (_, Some(elem)) => drop(out.append_elem(elem)),
        }
    }
    out
}
