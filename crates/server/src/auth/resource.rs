//! What a privilege is about: a collection, a database, the server as a whole; and the privilege itself.

use espalier_value::{Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::action::{Action, ActionSet};
use crate::reply::{ArrayWriter, strings};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resource {
    /// `{cluster: true}`.
    Cluster,
    /// `{anyResource: true}`.
    Any,
    /// `{db, collection}`; an empty name stands for all of them.
    Namespace { db: String, collection: String },
    /// `{db, system_buckets}`: what is below time series.
    Buckets { db: String, collection: String },
}

/// Actions that are allowed on a resource: what MongoDB calls a privilege.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    pub resource: Resource,
    pub actions: ActionSet,
}

impl Resource {
    pub fn namespace(db: &str, collection: &str) -> Resource {
        Resource::Namespace { db: db.into(), collection: collection.into() }
    }

    fn parse(doc: RawDoc<'_>) -> Result<Resource> {
        let is_true = |name: &str| matches!(doc.get(name), Some(ValueRef::Bool(true)));
        let (db, collection, buckets) = (doc.get_str("db"), doc.get_str("collection"), doc.get_str("system_buckets"));
        match (db, collection, is_true("cluster"), is_true("anyResource"), buckets) {
            (Some(db), Some(collection), false, false, None) => Ok(Resource::namespace(db, collection)),
            (None, None, true, false, None) => Ok(Resource::Cluster),
            (None, None, false, true, None) => Ok(Resource::Any),
            (db, None, false, false, Some(collection)) => {
                Ok(Resource::Buckets { db: db.unwrap_or_default().into(), collection: collection.into() })
            }
            (Some(_), None, false, false, None) | (None, Some(_), false, false, None) => {
                Err(Error::failed_to_parse("resource must set both db and collection or neither, but not exactly one."))
            }
            _ => Err(Error::failed_to_parse(
                "resource must have exactly db and collection set, or have only cluster set  or have only anyResource \
                 set",
            )),
        }
    }

    fn to_doc(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        match self {
            Resource::Cluster => doc.append("cluster", true),
            Resource::Any => doc.append("anyResource", true),
            Resource::Namespace { db, collection } => doc.append("db", db).append("collection", collection),
            Resource::Buckets { db, collection } if db.is_empty() => doc.append("system_buckets", collection),
            Resource::Buckets { db, collection } => doc.append("db", db).append("system_buckets", collection),
        };
        doc
    }

    /// The database that a role must belong to in order to have a privilege on this, if it is not `admin`.
    pub fn database(&self) -> Option<&str> {
        match self {
            Resource::Namespace { db, .. } | Resource::Buckets { db, .. } if !db.is_empty() => Some(db),
            _ => None,
        }
    }
}

impl Grant {
    pub fn parse(doc: RawDoc<'_>) -> Result<Grant> {
        let actions = match doc.get("actions") {
            Some(ValueRef::Array(actions)) if !actions.is_empty() => actions,
            _ => return Err(Error::failed_to_parse("missing actions field")),
        };
        let Some(resource) = doc.get_doc("resource") else {
            return Err(Error::failed_to_parse("missing resource field"));
        };
        let resource = Resource::parse(resource)?;
        let action = |value: ValueRef<'_>| {
            let name = value.as_str().ok_or_else(|| Error::failed_to_parse("an action is a string"))?;
            Action::parse(name).ok_or_else(|| Error::bad_value(format!("Unrecognized action: {name}")))
        };
        let actions = actions.iter().map(action).collect::<Result<ActionSet>>()?;
        Ok(Grant { resource, actions })
    }

    /// The `privileges` of a command; `path` is its name in errors.
    pub fn parse_list(array: RawArray<'_>, path: &str) -> Result<Vec<Grant>> {
        let one = |elem: espalier_value::Elem<'_>| match elem.value() {
            ValueRef::Document(doc) => Grant::parse(doc),
            other => Err(Error::new(
                Code::TypeMismatch,
                format!(
                    "BSON field '{path}.{}' is the wrong type '{}', expected type 'object'",
                    elem.name(),
                    other.ty().name()
                ),
            )),
        };
        array.elems().map(one).collect()
    }

    pub fn write(&self, out: &mut ArrayWriter<'_>) {
        let mut doc = out.push_doc();
        doc.append("resource", &self.resource.to_doc());
        strings(&mut doc.array("actions"), self.actions.names());
    }
}

/// Adds privileges to a list, those on a resource that is there already to its actions.
pub fn merge(list: &mut Vec<Grant>, more: &[Grant]) {
    for grant in more {
        match list.iter_mut().find(|known| known.resource == grant.resource) {
            Some(known) => known.actions = known.actions.with(grant.actions),
            None => list.push(grant.clone()),
        }
    }
}
