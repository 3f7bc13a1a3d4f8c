//! What a connection may do: the question every command asks before it runs.

use std::sync::Arc;

use espalier_value::{Code, Error, Result};

use super::action::Action;
use super::identity::Known;
use super::names::{RoleName, UserName};
use crate::generic::AskedSession;
use crate::sessions::{Lsid, NOBODY, Owner, Uid};

/// The users of a connection at the beginning of a command.
#[derive(Clone, Default)]
pub struct Rights {
    users: Arc<Vec<Arc<Known>>>,
    owner: Option<Arc<Owner>>,
    /// Authentication is off: everything is allowed.
    open: bool,
    /// No user exists yet and the client is on this machine: it may create the first one.
    first_user: bool,
}

impl Rights {
    pub fn new(users: Arc<Vec<Arc<Known>>>, owner: Option<Arc<Owner>>, open: bool, first_user: bool) -> Rights {
        Rights { users, owner, open, first_user }
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    pub fn may_create_first_user(&self) -> bool {
        self.first_user
    }

    pub fn users(&self) -> impl Iterator<Item = &Arc<Known>> {
        self.users.iter()
    }

    /// Whose sessions the client's are; `None` without authentication.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_deref().filter(|_| !self.open)
    }

    /// The hash of that name.
    pub fn uid(&self) -> Uid {
        self.owner().map_or(NOBODY, |owner| owner.uid)
    }

    /// The session that the client means: its own, or anybody's if it may act for others.
    pub fn lsid(&self, asked: &AskedSession) -> Result<Lsid> {
        self.lsid_or(asked, Action::Impersonate)
    }

    /// As [`Rights::lsid`], where this action on the cluster allows others' sessions, too.
    pub fn lsid_or(&self, asked: &AskedSession, action: Action) -> Result<Lsid> {
        let own = self.uid();
        let uid = asked.uid.unwrap_or(own);
        if uid != own && !self.on_cluster(Action::Impersonate) && !self.on_cluster(action) {
            return Err(Error::new(Code::Unauthorized, "Unauthorized to set user digest in LogicalSessionId"));
        }
        Ok(Lsid { id: asked.id, uid })
    }

    pub fn names(&self) -> Vec<UserName> {
        self.users.iter().map(|user| user.name.clone()).collect()
    }

    pub fn is_authenticated(&self) -> bool {
        self.open || !self.users.is_empty()
    }

    pub fn on_cluster(&self, action: Action) -> bool {
        self.open || self.users.iter().any(|user| user.granted.on_cluster(action))
    }

    pub fn on_database(&self, db: &str, action: Action) -> bool {
        self.open || self.users.iter().any(|user| user.granted.on_database(db, action))
    }

    pub fn on_namespace(&self, db: &str, collection: &str, action: Action) -> bool {
        self.open || self.users.iter().any(|user| user.granted.on_namespace(db, collection, action))
    }

    /// Whether anything at all is allowed in a database.
    pub fn in_database(&self, db: &str) -> bool {
        self.open || self.users.iter().any(|user| user.granted.in_database(db))
    }

    /// Whether anything at all is allowed on a collection.
    pub fn in_namespace(&self, db: &str, collection: &str) -> bool {
        self.open || self.users.iter().any(|user| user.granted.in_namespace(db, collection))
    }

    /// Whether one of the users is this one.
    pub fn is(&self, name: &UserName) -> bool {
        self.users.iter().any(|user| user.name == *name)
    }

    /// Whether one of the users has this role.
    pub fn has_role(&self, role: &RoleName) -> bool {
        self.users.iter().any(|user| user.roles.contains(role))
    }

    /// Whether something that belongs to `owners` is one's own. Without users everything is everybody's.
    pub fn shares_user_with(&self, owners: &[UserName]) -> bool {
        self.open || owners.iter().any(|owner| self.is(owner))
    }
}
