//! A collection's catalog entry: `{id, ns, uuid, options, indexes: [{id, spec, multikey, building}]}`.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_store::{
    Capped, CollectionOptions, IndexSpec, Layer, Namespace, ValidationAction, ValidationLevel, ViewDefinition,
};
use espalier_value::number::Number;
use espalier_value::{Code, Collation, DocBuf, Error, RawDoc, Result, ValueRef, collation};

use super::{Collection, Counts, Index, Live};

/// Bumped when an older Espalier could not read the entry.
const VERSION: i32 = 1;

pub fn encode(collection: &Collection) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("version", VERSION)
        .append("id", collection.id as i64)
        .append("db", collection.ns.db())
        .append("collection", collection.ns.collection())
        .append("uuid", ValueRef::Binary(4, &collection.uuid))
        .append("options", &collection.options.listed)
        .append_array("indexes", |indexes| {
            for index in &collection.indexes {
                indexes.push_doc(|doc| {
                    doc.append("id", index.id as i64)
                        .append("spec", &index.spec.listed)
                        .append("multikey", index.multikey() as i64)
                        .append("building", index.building);
                    if index.spec.collation.is_some() {
                        doc.append("rules", collation::RULES);
                    }
                });
            }
        });
    doc
}

/// Reads an entry back; `live` is made from what the caller finds in the store.
pub fn decode(doc: RawDoc<'_>, live: impl FnOnce(u64) -> Result<Live>) -> Result<Collection> {
    let damaged = |what: &str| Error::internal(format!("the catalog entry of a collection has no readable '{what}'"));
    match doc.get("version").and_then(Number::of).and_then(Number::as_exact_i64) {
        Some(version) if version <= i64::from(VERSION) => {}
        _ => {
            return Err(Error::new(
                Code::UnsupportedFormat,
                "the data folder was written by a newer version of Espalier; start that version instead",
            ));
        }
    }
    let number = |doc: RawDoc<'_>, name: &str| match doc.get(name) {
        Some(ValueRef::Int64(n)) => Ok(n as u64),
        _ => Err(damaged(name)),
    };
    let text = |name: &str| doc.get_str(name).ok_or_else(|| damaged(name));
    let id = number(doc, "id")?;
    let uuid = match doc.get("uuid") {
        Some(ValueRef::Binary(_, bytes)) => bytes.try_into().map_err(|_| damaged("uuid"))?,
        _ => return Err(damaged("uuid")),
    };
    let options = parse_options(doc.get_doc("options").ok_or_else(|| damaged("options"))?)?;
    let Some(ValueRef::Array(indexes)) = doc.get("indexes") else { return Err(damaged("indexes")) };
    let mut read = Vec::new();
    for value in indexes.iter() {
        let doc = value.as_doc().ok_or_else(|| damaged("indexes"))?;
        let listed = doc.get_doc("spec").ok_or_else(|| damaged("indexes.spec"))?;
        let building = matches!(doc.get("building"), Some(ValueRef::Bool(true)));
        let spec = match listed.get_str("name") {
            Some("_id_") => IndexSpec::id_of(&options.collation),
            _ => IndexSpec::parse(listed)?,
        };
        let rules = doc.get("rules").and_then(Number::of).and_then(Number::as_exact_i64);
        if spec.collation.is_some() && rules != Some(collation::RULES.into()) {
            return Err(Error::new(
                Code::UnsupportedFormat,
                format!(
                    "the index {} has a collation and was made by a version of Espalier with other rules for comparing \
                     strings; start that version, drop the index, and create it again with this one",
                    spec.name
                ),
            ));
        }
        read.push(Arc::new(Index::new(number(doc, "id")?, spec, number(doc, "multikey")?, building)));
    }
    Ok(Collection {
        id,
        ns: Namespace::new(text("db")?, text("collection")?),
        uuid,
        validator: parse_validator(&options)?,
        options,
        indexes: read,
        live: Arc::new(live(id)?),
    })
}

/// Reads options in the form `listCollections` shows, which is also the form `create` takes.
pub fn parse_options(listed: RawDoc<'_>) -> Result<CollectionOptions> {
    let whole = |name: &str| listed.get(name).and_then(Number::of).map(|n| n.to_i64_clamped().max(0) as u64);
    let on = matches!(listed.get("capped"), Some(ValueRef::Bool(true)));
    let view = match (listed.get_str("viewOn"), listed.get("pipeline")) {
        (Some(on), Some(ValueRef::Array(pipeline))) => {
            Some(ViewDefinition { on: on.into(), pipeline: pipeline.iter().collect() })
        }
        _ => None,
    };
    Ok(CollectionOptions {
        view,
        collation: match listed.get_doc("collation") {
            Some(doc) => Collation::parse(doc, "create")?,
            None => None,
        },
        capped: on.then(|| Capped {
            size_bytes: whole("size").unwrap_or_default(),
            max_documents: whole("max").unwrap_or_default(),
        }),
        validator: listed.get_doc("validator").map(DocBuf::from_raw),
        validation_level: match listed.get_str("validationLevel") {
            Some("off") => ValidationLevel::Off,
            Some("moderate") => ValidationLevel::Moderate,
            _ => ValidationLevel::Strict,
        },
        validation_action: match listed.get_str("validationAction") {
            Some("warn") => ValidationAction::Warn,
            _ => ValidationAction::Error,
        },
        // A layer may need them for itself.
        pre_images: matches!(listed.get("patternImages"), Some(ValueRef::Bool(true)))
            || listed
                .get_doc("changeStreamPreAndPostImages")
                .is_some_and(|doc| matches!(doc.get("enabled"), Some(ValueRef::Bool(true)))),
        layer: Layer::of(listed),
        listed: DocBuf::from_raw(listed),
    })
}

pub fn parse_validator(options: &CollectionOptions) -> Result<Option<Arc<Filter>>> {
    let scope = Scope::default().collated(options.collation.clone());
    match &options.validator {
        Some(doc) if !doc.is_empty() => Ok(Some(Arc::new(Filter::parse(doc.as_raw(), &scope)?))),
        _ => Ok(None),
    }
}

impl Live {
    /// From the last record in the store and the stored counts.
    pub fn restored(last_record: Option<u64>, counts: Option<Counts>) -> Live {
        Live::new(last_record.unwrap_or(0) + 1, counts.unwrap_or_default())
    }
}
