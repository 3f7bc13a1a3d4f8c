//! Users and roles as they are stored: documents of `admin.system.users` and `admin.system.roles` in MongoDB's shapes.

use std::sync::{Arc, LazyLock};

use espalier_query::expression::Scope;
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_store::{Begin, Delete, Find, IndexSpec, Insert, Mode, Namespace, Transaction, Update};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef, doc};

use super::builtin;
use super::names::{RoleName, UserName};
use super::resource::{Grant, merge};
use crate::call::Call;
use crate::parse;
use crate::server::Server;
use crate::write_batch::wait_for_writes_allowed;
use crate::write_concern::WriteConcern;

pub static USERS: LazyLock<Namespace> = LazyLock::new(|| Namespace::new("admin", "system.users"));
pub static ROLES: LazyLock<Namespace> = LazyLock::new(|| Namespace::new("admin", "system.roles"));

/// A write that others got in the way of is tried again this often.
const ATTEMPTS_MAX: usize = 20;

/// Users and roles at one snapshot.
pub struct Directory {
    transaction: Box<dyn Transaction>,
    context: Arc<Context>,
}

/// What roles bring along, taken together.
#[derive(Default)]
pub struct Inherited {
    pub roles: Vec<RoleName>,
    pub grants: Vec<Grant>,
    /// One list for each role that has restrictions.
    pub restrictions: Vec<ArrayBuf>,
}

impl Directory {
    pub fn open(server: &Server) -> Result<Directory> {
        Directory::begin(server, Mode::Auto)
    }

    fn begin(server: &Server, mode: Mode) -> Result<Directory> {
        let context = Arc::new(Context::new(crate::clock::now_ms(), server.ids.random()));
        let begin = Begin { mode, want_changes: false, raw: false, context: Arc::clone(&context) };
        Ok(Directory { transaction: server.store.begin(begin)?, context })
    }

    /// Documents that match, sorted by `_id` as MongoDB gives them.
    pub fn find(&self, ns: &Namespace, filter: RawDoc<'_>) -> Result<Vec<DocBuf>> {
        let find = Find::new(parse::filter(filter, &Scope::default())?, Arc::clone(&self.context));
        let mut cursor = self.transaction.find(ns, &find)?;
        let mut docs = Vec::new();
        while cursor.advance()? {
            docs.push(DocBuf::from_raw(cursor.doc()));
        }
        docs.sort_by(|a, b| a.as_raw().get_str("_id").cmp(&b.as_raw().get_str("_id")));
        Ok(docs)
    }

    pub fn user(&self, name: &UserName) -> Result<Option<DocBuf>> {
        Ok(self.find(&USERS, doc! { "_id": &name.id() }.as_raw())?.pop())
    }

    /// A role that somebody created.
    pub fn role(&self, name: &RoleName) -> Result<Option<DocBuf>> {
        Ok(self.find(&ROLES, doc! { "_id": &name.id() }.as_raw())?.pop())
    }

    pub fn has_users(&self) -> Result<bool> {
        let mut find = Find::new(Arc::new(Filter::empty()), Arc::clone(&self.context));
        find.limit = Some(1);
        self.transaction.find(&USERS, &find)?.advance()
    }

    /// Fails with the names of the roles that do not exist.
    pub fn check_roles(&self, roles: &[RoleName]) -> Result<()> {
        let mut missing = Vec::new();
        for role in roles {
            if role.role == "__system" {
                let message = "the role __system is for members of a cluster and cannot be granted";
                return Err(Error::bad_value(message));
            }
            if !builtin::exists(&role.role, &role.db) && self.role(role)?.is_none() {
                missing.push(role.to_string());
            }
        }
        match &missing[..] {
            [] => Ok(()),
            [one] => Err(Error::new(Code::RoleNotFound, format!("Could not find role: {one}"))),
            many => Err(Error::new(Code::RoleNotFound, format!("Could not find roles: {}", many.join(", ")))),
        }
    }

    /// Follows roles to the roles they have. Each is looked at once, so that a cycle does no harm.
    pub fn resolve(&self, roles: &[RoleName]) -> Result<Inherited> {
        let mut found = Inherited { roles: roles.to_vec(), ..Inherited::default() };
        let mut next = 0;
        while let Some(role) = found.roles.get(next).cloned() {
            next += 1;
            if builtin::exists(&role.role, &role.db) {
                merge(&mut found.grants, &builtin::grants(&role.role, &role.db));
                continue;
            }
            let Some(doc) = self.role(&role)? else { continue };
            merge(&mut found.grants, &stored_grants(doc.as_raw()));
            if let Some(ValueRef::Array(restrictions)) = doc.as_raw().get("authenticationRestrictions")
                && !restrictions.is_empty()
            {
                found.restrictions.push(ArrayBuf::from_raw(restrictions));
            }
            for inner in RoleName::stored(doc.as_raw()) {
                if !found.roles.contains(&inner) {
                    found.roles.push(inner);
                }
            }
        }
        Ok(found)
    }

    pub fn insert(&mut self, ns: &Namespace, doc: &DocBuf) -> Result<()> {
        let insert =
            Insert { ordered: true, bypass_validation: true, statements: None, context: Arc::clone(&self.context) };
        let inserted = self.transaction.insert(ns, &[doc.as_raw()], &insert)?;
        inserted.errors.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Puts a document in the place of the one with the same `_id`.
    pub fn replace(&mut self, ns: &Namespace, doc: &DocBuf) -> Result<()> {
        let id = doc.as_raw().get_str("_id").unwrap_or_default();
        let filter = parse::filter(doc! { "_id": id }.as_raw(), &Scope::default())?;
        let spec = Arc::new(UpdateSpec::parse(ValueRef::from(doc), &[], &Scope::default())?);
        let update = Update::new(filter, spec, Arc::clone(&self.context));
        self.transaction.update(ns, &Update { bypass_validation: true, ..update }).map(drop)
    }

    /// The number of documents that are gone.
    pub fn delete(&mut self, ns: &Namespace, filter: RawDoc<'_>) -> Result<u64> {
        let delete = Delete::new(parse::filter(filter, &Scope::default())?, Arc::clone(&self.context));
        Ok(self.transaction.delete(ns, &Delete { multi: true, ..delete })?.deleted)
    }

    /// Takes roles away from every user and role that has one of them.
    pub fn forget_roles(&mut self, gone: &[RoleName]) -> Result<()> {
        for ns in [&*USERS, &*ROLES] {
            for doc in self.find(ns, RawDoc::EMPTY)? {
                let roles = RoleName::stored(doc.as_raw());
                let left: Vec<RoleName> = roles.iter().filter(|role| !gone.contains(role)).cloned().collect();
                if left.len() < roles.len() {
                    self.replace(ns, &with_roles(doc.as_raw(), &left))?;
                }
            }
        }
        Ok(())
    }
}

/// Makes a change to users or roles: all of it or nothing, again if somebody else was faster, on disk before the answer.
pub fn change<R>(call: &mut Call<'_>, concern: &WriteConcern, make: impl Fn(&mut Directory) -> Result<R>) -> Result<R> {
    wait_for_writes_allowed(call)?;
    ensure_collections(call)?;
    let server = call.server;
    for attempt in 1.. {
        call.check_interrupt()?;
        let mut directory = Directory::begin(server, Mode::Transaction)?;
        let done = make(&mut directory).and_then(|made| Ok((made, directory.transaction.commit()?)));
        match done {
            Ok((made, commit)) => {
                server.auth.changed();
                concern.fulfil(call, commit)?;
                return Ok(made);
            }
            Err(error) if error.code() == Code::WriteConflict && attempt < ATTEMPTS_MAX => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::internal("a change of users did not end"))
}

fn ensure_collections(call: &Call<'_>) -> Result<()> {
    for (ns, name, keys) in [(&*USERS, "user_1_db_1", ["user", "db"]), (&*ROLES, "role_1_db_1", ["role", "db"])] {
        let mut transaction = call.begin_plain()?;
        if transaction.collection(ns)?.is_none() {
            let mut key = DocBuf::new();
            keys.iter().for_each(|field| {
                key.append(field, 1);
            });
            let spec = IndexSpec::parse(doc! { "v": 2, "key": &key, "name": name, "unique": true }.as_raw())?;
            transaction.create_indexes(ns, &[spec])?;
            call.commit(transaction)?;
        }
    }
    Ok(())
}

/// The privileges of a stored role; what cannot be read allows nothing.
pub fn stored_grants(doc: RawDoc<'_>) -> Vec<Grant> {
    let privileges = doc.get("privileges").and_then(ValueRef::as_array).into_iter().flat_map(RawArray::iter);
    privileges.filter_map(ValueRef::as_doc).filter_map(|doc| Grant::parse(doc).ok()).collect()
}

/// The document with one field set: where it stood, or at the end.
pub fn with_field<'v>(doc: RawDoc<'_>, name: &str, value: impl Into<ValueRef<'v>>) -> DocBuf {
    let value = value.into();
    let mut out = DocBuf::new();
    for elem in doc {
        if elem.name() == name {
            out.append(name, value)
        } else {
            out.append_elem(elem)
        };
    }
    if doc.get(name).is_none() {
        out.append(name, value);
    }
    out
}

/// The document without a field.
pub fn without_field(doc: RawDoc<'_>, name: &str) -> DocBuf {
    let mut out = DocBuf::new();
    doc.iter().filter(|elem| elem.name() != name).for_each(|elem| {
        out.append_elem(elem);
    });
    out
}

pub fn with_roles(doc: RawDoc<'_>, roles: &[RoleName]) -> DocBuf {
    with_field(doc, "roles", &role_array(roles))
}

pub fn role_array(roles: &[RoleName]) -> ArrayBuf {
    let mut array = ArrayBuf::new();
    for role in roles {
        array.push(&doc! { "role": &role.role, "db": &role.db });
    }
    array
}

pub fn grant_array(grants: &[Grant]) -> ArrayBuf {
    let doc = crate::reply::build(|doc| {
        let mut array = doc.array("a");
        grants.iter().for_each(|grant| grant.write(&mut array));
    });
    doc.as_raw().get("a").and_then(ValueRef::as_array).map(ArrayBuf::from_raw).unwrap_or_default()
}
