//! `create`: a collection with its options.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_store::{
    Capped, CollectionInfo, CollectionOptions, Find, Layer, Namespace, Transaction, ValidationAction, ValidationLevel,
    ViewDefinition,
};
use espalier_value::{Collation, DocBuf, RawArray};

use super::asked::asks_for;
use super::prelude::*;
use crate::auth::may_run_pipeline;
use crate::fields::{self, Field};
use crate::reply::build;
use crate::views;
use crate::write_batch::{check_writable, wait_for_writes_allowed};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "create",
    doc: "Creates a collection.",
    privilege: Privilege::Asked {
        doc: "`createCollection` or `insert` on the collection; for a view also `find` on what it reads",
        may,
    },
    stable: true,
    writes: true,
    run: create,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let ValueRef::String(name) = request.argument else {
        return rights.on_database(request.db, Action::CreateCollection);
    };
    let on = |action| rights.on_namespace(request.db, name, action);
    if asks_for(request, "capped") && !on(Action::ConvertToCapped) {
        return false;
    }
    if request.body.get("viewOn").is_some() {
        return on(Action::CreateCollection) && may_define_view(request, rights);
    }
    on(Action::CreateCollection) || on(Action::Insert)
}

/// Who defines a view must be able to read what it reads.
pub(super) fn may_define_view(request: &Request<'_>, rights: &Rights) -> bool {
    let Some(ValueRef::String(below)) = request.body.get("viewOn") else { return true };
    let stages = request.body.get("pipeline").and_then(ValueRef::as_array).unwrap_or(RawArray::of(RawDoc::EMPTY));
    may_run_pipeline(request.db, Some(below), stages, false, rights)
}

/// What patterns note on collections that they have to do with.
const NOTES: [&str; 3] = ["patternOwner", "patternWatchers", "patternImages"];

/// MongoDB rounds the size of a capped collection up to a multiple of this.
const CAPPED_SIZE_UNIT: u64 = 256;

fn create(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut options = parse(request)?;
    let ns = request.namespace()?;
    check_writable(&ns, call)?;
    let concern = WriteConcern::of(request)?;
    wait_for_writes_allowed(call)?;
    let mut transaction = match declares(&options) {
        // A declaration is carried out also for tools that restore what is stored.
        true => call.begin_logical()?,
        false => call.begin_plain()?,
    };
    if options.view.is_some() && call.transaction.is_some() {
        let message = "Cannot create a view in a multi-document transaction.";
        return Err(Error::new(Code::OperationNotSupportedInTransaction, message));
    }
    if let Some(view) = options.view.take() {
        return create_view(&ns, view, options.collation, transaction, &concern, call);
    }
    match transaction.collection(&ns)? {
        Some(there) if request.generic.raw_data && is_made_by_pattern(&*transaction, &ns, &there, &options)? => {
            transaction.set_options(&ns, &options)?;
        }
        Some(_) if !is_unused_part(&*transaction, &ns)? => {
            return Err(Error::new(Code::NamespaceExists, format!("Collection {ns} already exists.")));
        }
        _ => transaction.create(&ns, &options)?,
    }
    let commit = call.commit(transaction)?;
    concern.fulfil(call, commit)
}

fn declares(options: &CollectionOptions) -> bool {
    options.listed.as_raw().elem("patterns").is_some()
}

/// What a declaration on another collection made, and nobody has used: who restores what is stored, in whatever order, gives it
/// the rest of its options.
fn is_made_by_pattern(
    transaction: &dyn Transaction,
    ns: &Namespace,
    there: &CollectionInfo,
    options: &CollectionOptions,
) -> Result<bool> {
    let mut listed = there.options.listed.as_raw().iter();
    let noted = !there.options.listed.is_empty() && listed.all(|elem| NOTES.contains(&elem.name()));
    if !noted || options.capped.is_some() || options.collation.is_some() {
        return Ok(false);
    }
    Ok(!has_documents(transaction, ns)?)
}

fn has_documents(transaction: &dyn Transaction, ns: &Namespace) -> Result<bool> {
    let mut any = Find::new(Arc::new(Filter::empty()), Arc::default());
    any.limit = Some(1);
    Ok(transaction.count(ns, &any)? > 0)
}

/// A name that stands for a part of a collection is there before anybody creates it, and not listed before it has documents:
/// whoever creates it then does not learn that it was.
fn is_unused_part(transaction: &dyn Transaction, ns: &Namespace) -> Result<bool> {
    if transaction.layer(ns)?.is_none_or(|layer| layer.answers_for(ns.collection()).is_none()) {
        return Ok(false);
    }
    Ok(!has_documents(transaction, ns)?)
}

fn create_view(
    ns: &Namespace,
    view: ViewDefinition,
    collation: Option<Arc<Collation>>,
    mut transaction: Box<dyn Transaction>,
    concern: &WriteConcern,
    call: &mut Call<'_>,
) -> Result<()> {
    if transaction.collection(ns)?.is_some() {
        return Err(Error::new(Code::NamespaceExists, "Namespace already exists"));
    }
    views::check(ns, &view, &collation, &*transaction)?;
    // MongoDB keeps the definitions in a collection, which is there from the first view on.
    let definitions = Namespace::new(ns.db(), views::DEFINITIONS);
    if transaction.collection(&definitions)?.is_none() {
        transaction.create(&definitions, &CollectionOptions::default())?;
    }
    transaction.create(ns, &views::options(view, collation))?;
    let commit = call.commit(transaction)?;
    concern.fulfil(call, commit)
}

/// `{enabled: …}`.
pub(super) fn parse_images(doc: RawDoc<'_>, command: &str) -> Result<bool> {
    let parent = format!("{command}.changeStreamPreAndPostImages");
    let mut enabled = None;
    for field in fields::fields(doc, &parent)? {
        match field.name() {
            "enabled" => enabled = field.bool()?,
            _ => return Err(field.unknown()),
        }
    }
    enabled.ok_or_else(|| fields::missing(&parent, "enabled"))
}

/// `viewOn` and `pipeline`, if they make a view.
fn parse_view(view_on: Option<&str>, pipeline: Option<RawArray<'_>>) -> Result<Option<ViewDefinition>> {
    match (view_on, pipeline) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(invalid("'pipeline' requires 'viewOn' to also be specified")),
        (Some(on), pipeline) => {
            let pipeline = pipeline.unwrap_or(RawArray::of(RawDoc::EMPTY)).iter().collect();
            Ok(Some(ViewDefinition { on: on.into(), pipeline }))
        }
    }
}

/// The stages of a view: an array of objects.
pub(super) fn stages<'a>(field: &Field<'a, '_>) -> Result<Option<RawArray<'a>>> {
    let Some(array) = field.array()? else { return Ok(None) };
    match array.elems().find(|elem| elem.value().as_doc().is_none()) {
        None => Ok(Some(array)),
        Some(other) => Err(Error::type_mismatch(format!(
            "BSON field '{}.{}' is the wrong type '{}', expected type 'object'",
            field.path(),
            other.name(),
            other.ty().name()
        ))),
    }
}

fn parse(request: &Request<'_>) -> Result<CollectionOptions> {
    let (mut capped, mut size, mut max) = (false, None, None);
    let (mut validator, mut level, mut action) = (None, None, None);
    let (mut view_on, mut pipeline, mut collation, mut id_index, mut images) = (None, None, None, None, false);
    let mut watched = false;
    let mut kept: Vec<espalier_value::Elem<'_>> = Vec::new();
    for field in request.fields("create") {
        match field.name() {
            "capped" => capped = field.bool_or_number()?.unwrap_or(false),
            "size" => size = at_least_one(&field)?,
            "max" => max = field.long()?,
            "validator" => validator = field.doc()?,
            "validationLevel" => level = Some(parse_level(&field)?),
            "validationAction" => action = Some(parse_action(&field)?),
            "collation" => collation = field.doc()?,
            "idIndex" => id_index = check_id_index(&field)?,
            "storageEngine" | "indexOptionDefaults" => {
                if let Some(doc) = field.doc()?
                    && !doc.is_empty()
                {
                    kept.push(field.elem());
                }
            }
            "changeStreamPreAndPostImages" => {
                if let Some(doc) = field.doc()?
                    && parse_images(doc, "create")?
                {
                    if matches!(request.db, "admin" | "config" | "local") {
                        let message = format!(
                            "changeStreamPreAndPostImages collection option is not supported on the {} database",
                            request.db
                        );
                        return Err(invalid(&message));
                    }
                    images = true;
                    kept.push(field.elem());
                }
            }
            "patterns" => {
                if field.array()?.is_some_and(|patterns| !patterns.is_empty()) {
                    kept.push(field.elem());
                }
            }
            // What patterns note on collections that they have to do with, for tools that restore what is stored.
            "patternOwner" if request.generic.raw_data => {
                field.doc()?;
                kept.push(field.elem());
            }
            "patternWatchers" if request.generic.raw_data => {
                field.array()?;
                kept.push(field.elem());
            }
            "patternImages" if request.generic.raw_data => {
                watched = field.bool()?.unwrap_or(false);
                kept.push(field.elem());
            }
            "autoIndexId" => {
                if field.bool_or_number()? == Some(false) {
                    let message = "autoIndexId:false is not allowed because the collection can be replicated";
                    return Err(Error::new(Code(50001), message));
                }
            }
            "flags" => {
                field.long()?;
            }
            "temp" => return Err(invalid("the 'temp' field is an invalid option")),
            "expireAfterSeconds" => {
                return Err(invalid("'expireAfterSeconds' is only supported on time-series collections"));
            }
            "viewOn" => view_on = field.str()?,
            "pipeline" => pipeline = stages(&field)?,
            "timeseries" => return Err(not_yet("time-series collections")),
            "clusteredIndex" => return Err(not_yet("clustered collections")),
            "encryptedFields" => return Err(not_yet("encrypted collections")),
            _ => return Err(field.unknown()),
        }
    }
    if capped && size.is_none() {
        return Err(invalid("the 'size' field is required when 'capped' is true"));
    }
    if !capped && (size.is_some() || max.is_some()) {
        let message = "the 'capped' field needs to be true when either the 'size' or 'max' fields are present";
        return Err(invalid(message));
    }
    let capped = size.map(|size| Capped { size_bytes: capped_size(size), max_documents: max.map_or(0, max_documents) });
    let validator = validator.filter(|doc| !doc.is_empty());
    let collation = match collation {
        Some(doc) => Collation::parse(doc, "create")?,
        None => None,
    };
    if let Some(doc) = id_index.and_then(|spec| spec.get_doc("collation"))
        && Collation::parse(doc, "")? != collation
    {
        return Err(Error::bad_value("'idIndex' must have the same collation as the collection."));
    }
    if let Some(validator) = validator {
        check_validator(validator, &collation)?;
    }
    let view = parse_view(view_on, pipeline)?;
    if view.is_some() && images {
        return Err(invalid("option not supported on a view: changeStreamPreAndPostImages"));
    }
    let mut options = CollectionOptions {
        view,
        pre_images: images || watched,
        capped,
        collation,
        validator: validator.map(DocBuf::from_raw),
        validation_level: level.unwrap_or_default(),
        validation_action: action.unwrap_or_default(),
        layer: None,
        listed: DocBuf::new(),
    };
    let mut rest = DocBuf::new();
    kept.into_iter().for_each(|elem| {
        rest.append_elem(elem);
    });
    list(&mut options, rest.as_raw(), level.is_some(), action.is_some());
    Ok(options)
}

/// The limit on documents, where a number that cannot be one means the largest.
pub(super) fn max_documents(max: i64) -> u64 {
    u64::try_from(max).ok().filter(|max| *max > 0).unwrap_or(i32::MAX as u64)
}

/// The size of a capped collection as it is kept.
pub(super) fn capped_size(bytes: u64) -> u64 {
    bytes.div_ceil(CAPPED_SIZE_UNIT) * CAPPED_SIZE_UNIT
}

/// Writes the options as `listCollections` shows them. `rest` is what has no field of its own.
pub(super) fn list(options: &mut CollectionOptions, rest: RawDoc<'_>, with_level: bool, with_action: bool) {
    options.listed = build(|doc| {
        if let Some(capped) = options.capped {
            doc.append("capped", true).append_count("size", capped.size_bytes);
            if capped.max_documents > 0 {
                doc.append_count("max", capped.max_documents);
            }
        }
        doc.append_fields(rest);
        if let Some(validator) = &options.validator {
            doc.append("validator", validator);
        }
        if with_level {
            doc.append("validationLevel", level_name(options.validation_level));
        }
        if with_action {
            doc.append("validationAction", action_name(options.validation_action));
        }
        if let Some(collation) = &options.collation {
            doc.append("collation", &collation.listed());
        }
    });
    options.layer = Layer::of(options.listed.as_raw());
}

/// A validator is a filter, without what needs more than the document.
pub(super) fn check_validator(validator: RawDoc<'_>, collation: &Option<Arc<Collation>>) -> Result<()> {
    check_context(validator)?;
    Filter::parse(validator, &Scope::default().collated(collation.clone())).map(|_| ())
}

fn check_context(filter: RawDoc<'_>) -> Result<()> {
    for elem in filter {
        match elem.name() {
            name @ ("$where" | "$text") => {
                return Err(Error::bad_value(format!("{name} is not allowed in this context")));
            }
            "$near" | "$nearSphere" | "$geoNear" => {
                let message = "$geoNear, $near, and $nearSphere are not allowed in this context";
                return Err(Error::new(Code(5_626_500), message));
            }
            _ => {}
        }
        match elem.value() {
            ValueRef::Document(inner) => check_context(inner)?,
            ValueRef::Array(list) => list.iter().filter_map(ValueRef::as_doc).try_for_each(check_context)?,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn parse_level(field: &Field<'_, '_>) -> Result<ValidationLevel> {
    match field.str()? {
        Some("off") => Ok(ValidationLevel::Off),
        Some("strict") | None => Ok(ValidationLevel::Strict),
        Some("moderate") => Ok(ValidationLevel::Moderate),
        Some(other) => Err(not_a_value(field, other)),
    }
}

pub(super) fn parse_action(field: &Field<'_, '_>) -> Result<ValidationAction> {
    match field.str()? {
        Some("error") | None => Ok(ValidationAction::Error),
        Some("warn") => Ok(ValidationAction::Warn),
        Some(other) => Err(not_a_value(field, other)),
    }
}

pub(super) fn level_name(level: ValidationLevel) -> &'static str {
    match level {
        ValidationLevel::Off => "off",
        ValidationLevel::Strict => "strict",
        ValidationLevel::Moderate => "moderate",
    }
}

pub(super) fn action_name(action: ValidationAction) -> &'static str {
    match action {
        ValidationAction::Error => "error",
        ValidationAction::Warn => "warn",
    }
}

fn not_a_value(field: &Field<'_, '_>, value: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{value}' for field '{}' is not a valid value.", field.path()))
}

pub(super) fn at_least_one(field: &Field<'_, '_>) -> Result<Option<u64>> {
    let Some(n) = field.long()? else { return Ok(None) };
    match u64::try_from(n) {
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => {
            let message = format!("BSON field '{}' value must be >= 1, actual value '{n}'", field.name());
            Err(Error::new(Code(51024), message))
        }
    }
}

fn check_id_index<'a>(field: &Field<'a, '_>) -> Result<Option<RawDoc<'a>>> {
    let Some(spec) = field.doc()? else { return Ok(None) };
    let key = spec
        .get_doc("key")
        .ok_or_else(|| Error::failed_to_parse("The 'key' field is a required property of an index specification"))?;
    let first = key.first();
    let is_id = key.count() == 1 && first.is_some_and(|elem| elem.name() == "_id" && elem.value().is_number());
    if !is_id {
        return Err(Error::bad_value("The field 'key' for an _id index must be {_id: 1}"));
    }
    Ok(Some(spec))
}

fn invalid(message: &str) -> Error {
    Error::new(Code::InvalidOptions, message)
}

fn not_yet(what: &str) -> Error {
    Error::new(Code::CommandNotSupported, format!("{what} are not supported yet"))
}
