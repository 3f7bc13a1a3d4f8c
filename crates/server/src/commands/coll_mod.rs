//! `collMod`: changes the options of a collection or of one of its indexes.

use espalier_store::{Capped, CollectionOptions, IndexInfo, IndexSpec};
use espalier_value::number::Number;
use espalier_value::{DocBuf, RawArray, compare};

use super::create;
use super::prelude::*;
use crate::fields::{self, Field};
use crate::reply::build;
use crate::views;
use crate::write_batch::{check_writable, wait_for_writes_allowed};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "collMod",
    doc: "Changes the options of a collection or an index.",
    privilege: Privilege::Asked { doc: "`collMod` on the collection; of a view also `find` on what it reads", may },
    stable: true,
    writes: true,
    run: coll_mod,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let ValueRef::String(name) = request.argument else { return rights.on_database(request.db, Action::CollMod) };
    rights.on_namespace(request.db, name, Action::CollMod) && create::may_define_view(request, rights)
}

fn coll_mod(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut validator, mut level, mut action, mut index) = (None, None, None, None);
    let (mut capped_size, mut capped_max, mut images) = (None, None, None);
    let (mut view_on, mut pipeline, mut patterns) = (None, None, None);
    for field in request.fields("collMod") {
        match field.name() {
            "validator" => validator = field.doc()?,
            "validationLevel" => level = Some(create::parse_level(&field)?),
            "validationAction" => action = Some(create::parse_action(&field)?),
            "index" => index = field.doc()?.map(ChangeIndex::parse).transpose()?,
            "cappedSize" => capped_size = create::at_least_one(&field)?,
            "cappedMax" => capped_max = field.long()?,
            "changeStreamPreAndPostImages" => {
                images = match field.doc()? {
                    Some(doc) => Some((doc, create::parse_images(doc, "collMod")?)),
                    None => None,
                };
            }
            "patterns" => patterns = field.array()?,
            "dryRun" => field.refuse_unless_false()?,
            "viewOn" => view_on = field.str()?,
            "pipeline" => pipeline = create::stages(&field)?,
            "expireAfterSeconds" | "timeseries" => {
                let message = format!("option '{}' is only supported on a time-series collection", field.name());
                return Err(Error::new(Code::InvalidOptions, message));
            }
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace()?;
    check_writable(&ns, call)?;
    let concern = WriteConcern::of(request)?;
    wait_for_writes_allowed(call)?;
    let mut transaction = call.begin_plain()?;
    let Some(info) = transaction.collection(&ns)? else {
        return Err(Error::new(Code::NamespaceNotFound, "ns does not exist"));
    };
    let mut options: CollectionOptions = info.options;
    if let Some(mut view) = options.view.take() {
        let other = request
            .fields("collMod")
            .map(|field| field.name())
            .find(|name| !matches!(*name, "viewOn" | "pipeline" | "dryRun"));
        if let Some(other) = other {
            let message = format!("option not supported on a view: {other}");
            return Err(Error::new(Code::InvalidOptions, message));
        }
        view.on = view_on.map_or(view.on, Into::into);
        view.pipeline = pipeline.map_or(view.pipeline, |stages| stages.iter().collect());
        views::check(&ns, &view, &options.collation, &*transaction)?;
        transaction.set_options(&ns, &views::options(view, options.collation))?;
        let commit = call.commit(transaction)?;
        return concern.fulfil(call, commit);
    }
    if let Some(option) = pipeline.map(|_| "pipeline").or(view_on.map(|_| "viewOn")) {
        return Err(Error::new(Code::InvalidOptions, format!("option only supported on a view: {option}")));
    }
    let changes_validation = validator.is_some() || level.is_some() || action.is_some();
    let changes_options = changes_validation || images.is_some() || patterns.is_some();
    if capped_size.is_some() || capped_max.is_some() {
        let Some(capped) = options.capped else {
            let message = "Options cappedSize and cappedMax are only supported on a capped collection";
            return Err(Error::new(Code::InvalidOptions, message));
        };
        options.capped = Some(Capped {
            size_bytes: capped_size.map_or(capped.size_bytes, create::capped_size),
            max_documents: capped_max.map_or(capped.max_documents, create::max_documents),
        });
    }
    if let Some(validator) = validator {
        create::check_validator(validator, &options.collation)?;
        options.validator = Some(DocBuf::from_raw(validator)).filter(|doc| !doc.is_empty());
    }
    options.validation_level = level.unwrap_or(options.validation_level);
    options.validation_action = action.unwrap_or(options.validation_action);
    options.pre_images = images.map_or(options.pre_images, |(_, enabled)| enabled);
    if changes_options || capped_size.is_some() || capped_max.is_some() {
        relist(&mut options, changes_validation, images, patterns);
        transaction.set_options(&ns, &options)?;
    }
    if let Some(change) = index {
        let indexes = transaction.indexes(&ns)?;
        let found = change.find(&indexes, &ns.to_string())?;
        if let Some(spec) = change.apply(found, call)? {
            transaction.set_index(&ns, &found.spec.name, &spec)?;
        }
    }
    let commit = call.commit(transaction)?;
    concern.fulfil(call, commit)
}

/// Writes the listed options anew, keeping what has no field of its own.
fn relist(
    options: &mut CollectionOptions,
    validation: bool,
    images: Option<(RawDoc<'_>, bool)>,
    patterns: Option<RawArray<'_>>,
) {
    let own = ["capped", "size", "max", "validator", "validationLevel", "validationAction", "collation"];
    let mut rest = DocBuf::new();
    for elem in options.listed.as_raw() {
        let replaced = match elem.name() {
            "changeStreamPreAndPostImages" => images.is_some(),
            "patterns" => patterns.is_some(),
            _ => false,
        };
        if !own.contains(&elem.name()) && !replaced {
            rest.append_elem(elem);
        }
    }
    if let Some((images, true)) = images {
        rest.append("changeStreamPreAndPostImages", images);
    }
    if let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) {
        rest.append("patterns", patterns);
    }
    let had = |name: &str| options.listed.as_raw().get(name).is_some();
    let (level, action) = (validation || had("validationLevel"), validation || had("validationAction"));
    create::list(options, rest.as_raw(), level, action);
}

/// What to change of which index.
struct ChangeIndex<'a> {
    name: Option<&'a str>,
    key: Option<RawDoc<'a>>,
    expire_after_seconds: Option<ValueRef<'a>>,
    hidden: Option<bool>,
}

impl<'a> ChangeIndex<'a> {
    fn parse(doc: RawDoc<'a>) -> Result<ChangeIndex<'a>> {
        let mut change = ChangeIndex { name: None, key: None, expire_after_seconds: None, hidden: None };
        for field in fields::fields(doc, "collMod.index")? {
            match field.name() {
                "name" => change.name = field.str()?,
                "keyPattern" => change.key = field.doc()?,
                "expireAfterSeconds" => change.expire_after_seconds = seconds(&field)?,
                "hidden" => change.hidden = field.bool_or_number()?,
                "unique" | "prepareUnique" => {
                    let message = format!("changing '{}' of an index is not supported yet", field.name());
                    return Err(Error::new(Code::CommandNotSupported, message));
                }
                _ => return Err(field.unknown()),
            }
        }
        let invalid = |message: &str| Err(Error::new(Code::InvalidOptions, message));
        match (change.name, change.key) {
            (None, None) => return invalid("Must specify either index name or key pattern."),
            (Some(_), Some(_)) => return invalid("Cannot specify both key pattern and name."),
            _ => {}
        }
        if change.expire_after_seconds.is_none() && change.hidden.is_none() {
            return invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field");
        }
        Ok(change)
    }

    fn find<'i>(&self, indexes: &'i [IndexInfo], ns: &str) -> Result<&'i IndexInfo> {
        let found: Vec<&IndexInfo> = indexes
            .iter()
            .filter(|index| match (self.name, self.key) {
                (Some(name), _) => index.spec.name == name,
                (_, Some(key)) => compare::compare_docs(index.spec.key(), key).is_eq(),
                _ => false,
            })
            .collect();
        match found[..] {
            [index] => Ok(index),
            [] => {
                let what =
                    self.name.map_or_else(|| self.key.map(|key| key.to_string()).unwrap_or_default(), str::to_string);
                Err(Error::new(Code::IndexNotFound, format!("cannot find index {what} for ns {ns}")))
            }
            _ => Err(Error::new(
                Code::AmbiguousIndexKeyPattern,
                "index keyPattern matches several indexes; name one of them",
            )),
        }
    }

    /// The changed specification, and in the reply what changed. `None` if nothing does.
    fn apply(&self, index: &IndexInfo, call: &mut Call<'_>) -> Result<Option<IndexSpec>> {
        let old = &index.spec;
        if self.hidden.is_some() && old.name == "_id_" {
            return Err(Error::bad_value("can't hide _id index"));
        }
        let mut spec = old.clone();
        let mut changed = false;
        if let Some(seconds) = self.expire_after_seconds {
            if old.parts.len() > 1 {
                let message = "TTL indexes are single-field indexes, compound indexes do not support TTL";
                return Err(Error::new(Code::InvalidOptions, message));
            }
            if let Some(before) = old.listed.as_raw().get("expireAfterSeconds") {
                call.reply.append("expireAfterSeconds_old", long(before));
            }
            call.reply.append("expireAfterSeconds_new", long(seconds));
            spec.expire_after_seconds = Number::of(seconds).map(Number::to_f64);
            changed = true;
        }
        if let Some(hidden) = self.hidden
            && hidden != old.hidden
        {
            call.reply.append("hidden_old", old.hidden).append("hidden_new", hidden);
            spec.hidden = hidden;
            changed = true;
        }
        if !changed {
            return Ok(None);
        }
        spec.listed = build(|doc| {
            for elem in old.listed.as_raw() {
                match elem.name() {
                    "hidden" => {}
                    "expireAfterSeconds" if self.expire_after_seconds.is_some() => {}
                    _ => {
                        doc.append_elem(elem);
                    }
                }
            }
            if spec.hidden {
                doc.append("hidden", true);
            }
            if let Some(seconds) = self.expire_after_seconds {
                doc.append("expireAfterSeconds", seconds);
            }
        });
        Ok(Some(spec))
    }
}

fn long(value: ValueRef<'_>) -> ValueRef<'static> {
    ValueRef::Int64(Number::of(value).map_or(0, Number::to_i64_clamped))
}

fn seconds<'a>(field: &Field<'a, '_>) -> Result<Option<ValueRef<'a>>> {
    match field.long()? {
        None => Ok(None),
        Some(n) if (0..=i64::from(i32::MAX)).contains(&n) => Ok(Some(field.value())),
        Some(_) => {
            let message = "TTL index 'expireAfterSeconds' option must be within the range 0 to 2147483647";
            Err(Error::new(Code::InvalidOptions, message))
        }
    }
}
