//! What `$changeStream` was asked for.

use espalier_store::{Namespace, Scope};
use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::token::Token;
use crate::fields::{self, Field};

/// The options of the stage, and what it watches.
#[derive(Clone, Debug)]
pub struct Options {
    pub scope: Scope,
    pub full_document: FullDocument,
    pub before_change: BeforeChange,
    pub expanded: bool,
    pub system: bool,
    pub start: Start,
}

/// What an update's `fullDocument` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullDocument {
    Default,
    UpdateLookup,
    WhenAvailable,
    Required,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeforeChange {
    Off,
    WhenAvailable,
    Required,
}

/// Where a stream begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    Now,
    /// With the events of this time.
    At(u64),
    After(Token),
}

impl Options {
    pub fn parse(spec: ValueRef<'_>, ns: &Namespace, whole_database: bool) -> Result<Options> {
        let ValueRef::Document(spec) = spec else {
            let message = format!("$changeStream must take a nested object but found: $changeStream: {spec}");
            return Err(Error::new(Code(6_188_500), message));
        };
        let (mut resume_after, mut start_after, mut start_at) = (None, None, None);
        let (mut full_document, mut before_change) = (FullDocument::Default, BeforeChange::Off);
        let (mut cluster, mut expanded, mut system) = (false, false, false);
        for field in fields::fields(spec, "$changeStream")? {
            match field.name() {
                "fullDocument" => full_document = parse_full_document(&field)?,
                "fullDocumentBeforeChange" => before_change = parse_before_change(&field)?,
                "resumeAfter" => resume_after = field.doc()?.map(Token::parse).transpose()?,
                "startAfter" => start_after = field.doc()?.map(Token::parse).transpose()?,
                "startAtOperationTime" => start_at = parse_time(&field)?,
                "allChangesForCluster" => cluster = flag(&field)?,
                "showExpandedEvents" => expanded = flag(&field)?,
                "showSystemEvents" => system = flag(&field)?,
                // About chunks that move between shards, of which there are none.
                "showMigrationEvents" | "allowToRunOnConfigDB" | "allowToRunOnSystemNS" => {
                    flag(&field)?;
                }
                _ => return Err(field.unknown()),
            }
        }
        if resume_after.is_some() && start_after.is_some() {
            let message = "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
            return Err(Error::new(Code(50865), message));
        }
        if start_at.is_some() && (resume_after.is_some() || start_after.is_some()) {
            let message = "Only one type of resume option is allowed, but multiple were found";
            return Err(Error::new(Code(40674), message));
        }
        if let Some(Token::Event { invalidate: true, .. }) = resume_after {
            let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate \
                           notification.";
            return Err(Error::new(Code::InvalidResumeToken, message));
        }
        let start = match (resume_after.or(start_after), start_at) {
            (Some(token), _) => Start::After(token),
            (None, Some(time)) => Start::At(time),
            (None, None) => Start::Now,
        };
        let scope = scope(ns, whole_database, cluster)?;
        Ok(Options { scope, full_document, before_change, expanded, system, start })
    }
}

fn scope(ns: &Namespace, whole_database: bool, cluster: bool) -> Result<Scope> {
    if cluster {
        if ns.db() != "admin" || !whole_database {
            let message = format!(
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with \
                 no collection name; found {ns}"
            );
            return Err(Error::new(Code::InvalidOptions, message));
        }
        return Ok(Scope::Everything);
    }
    let internal = |what: &str| {
        let message = format!("$changeStream may not be opened on the internal {what}");
        Err(Error::new(Code::InvalidNamespace, message))
    };
    if matches!(ns.db(), "admin" | "config" | "local") {
        return internal(&format!("{} database", ns.db()));
    }
    if whole_database {
        return Ok(Scope::Database(ns.db().into()));
    }
    if ns.is_system() {
        return internal(&format!("{ns} collection"));
    }
    Ok(Scope::Collection(ns.clone()))
}

fn parse_full_document(field: &Field<'_, '_>) -> Result<FullDocument> {
    Ok(match field.str()? {
        None | Some("default") => FullDocument::Default,
        Some("updateLookup") => FullDocument::UpdateLookup,
        Some("whenAvailable") => FullDocument::WhenAvailable,
        Some("required") => FullDocument::Required,
        Some(other) => return Err(not_in_enumeration(field, other)),
    })
}

fn parse_before_change(field: &Field<'_, '_>) -> Result<BeforeChange> {
    Ok(match field.str()? {
        None | Some("off") => BeforeChange::Off,
        Some("whenAvailable") => BeforeChange::WhenAvailable,
        Some("required") => BeforeChange::Required,
        Some(other) => return Err(not_in_enumeration(field, other)),
    })
}

fn not_in_enumeration(field: &Field<'_, '_>, value: &str) -> Error {
    let path = field.path();
    Error::bad_value(format!("Enumeration value '{value}' for field '{path}' is not a valid value."))
}

fn parse_time(field: &Field<'_, '_>) -> Result<Option<u64>> {
    match field.value() {
        ValueRef::Timestamp(time) => Ok(Some(time)),
        _ => Err(field.wrong_type("timestamp")),
    }
}

fn flag(field: &Field<'_, '_>) -> Result<bool> {
    match field.value() {
        ValueRef::Bool(value) => Ok(value),
        other => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            field.name(),
            other.ty().name()
        ))),
    }
}

/// The only read concern a change stream knows.
pub fn check_read_concern(concern: Option<RawDoc<'_>>) -> Result<()> {
    match concern.and_then(|doc| doc.get_str("level")) {
        None | Some("majority") => Ok(()),
        Some(level) => {
            let message = format!(
                "Command aggregate does not support {{ readConcern: {{ level: \"{level}\" }} }} :: caused by :: \
                 Aggregation stage $changeStream cannot run with a readConcern other than 'majority'. Current \
                 readConcern: {level}"
            );
            Err(Error::new(Code::InvalidOptions, message))
        }
    }
}
