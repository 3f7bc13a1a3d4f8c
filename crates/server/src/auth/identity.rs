//! Who a connection is authenticated as.

use std::sync::Arc;

use espalier_value::{RawArray, RawDoc, Result, ValueRef};

use super::directory::Directory;
use super::granted::Granted;
use super::names::{RoleName, UserName};
use super::scram::Exchange;
use crate::client::Client;
use crate::server::Server;
use crate::sessions::Owner;

/// A user that has proved who it is, with what it may do.
pub struct Known {
    pub name: UserName,
    /// Its own roles and those they bring along.
    pub roles: Vec<RoleName>,
    pub granted: Granted,
    /// The `userId`: a user that was dropped and created again is another one.
    id: Vec<u8>,
}

/// The state of a connection. It has at most one user for each database, as in MongoDB.
#[derive(Default)]
pub struct Identity {
    pub users: Arc<Vec<Arc<Known>>>,
    /// Whose sessions its are.
    pub owner: Option<Arc<Owner>>,
    /// The [`Auth::generation`](super::Auth::generation) that `users` is as of.
    generation: u64,
    pub conversation: Option<Conversation>,
}

/// An authentication that has begun.
pub struct Conversation {
    pub id: i32,
    pub user: UserName,
    pub step: Step,
    /// The client takes the last answer as the end, without an empty message each way.
    pub skip_empty: bool,
}

pub enum Step {
    /// The proof is to come.
    Proof(Box<Exchange>),
    /// The proof was right; an empty message is to come.
    Empty(Arc<Known>),
}

impl Known {
    /// What the store says about a user; `None` if there is none, or if it may not come from where the client is.
    pub fn load(directory: &Directory, name: &UserName, client: &Client) -> Result<Option<Known>> {
        let Some(doc) = directory.user(name)? else { return Ok(None) };
        let doc = doc.as_raw();
        let inherited = directory.resolve(&RoleName::stored(doc))?;
        let (from, to) = (client.peer.ip(), client.local.ip());
        let own = match doc.get("authenticationRestrictions") {
            None => RawArray::of(RawDoc::EMPTY),
            Some(ValueRef::Array(own)) => own,
            Some(_) => return Ok(None),
        };
        let lists = std::iter::once(own).chain(inherited.restrictions.iter().map(|list| list.as_raw()));
        if !lists.into_iter().all(|list| super::restrictions::allow(list, from, to)) {
            return Ok(None);
        }
        let id = match doc.get("userId") {
            Some(ValueRef::Binary(_, id)) => id.to_vec(),
            _ => Vec::new(),
        };
        Ok(Some(Known { name: name.clone(), roles: inherited.roles, granted: Granted::new(inherited.grants), id }))
    }
}

impl Identity {
    pub fn add(&mut self, known: Arc<Known>, generation: u64) {
        let mut users: Vec<_> =
            self.users.iter().filter(|other| other.name.db != known.name.db).map(Arc::clone).collect();
        // What the others may do is looked at again by the next command if it is older.
        self.generation = if users.is_empty() { generation } else { self.generation.min(generation) };
        users.push(known);
        self.set(users);
    }

    fn set(&mut self, users: Vec<Arc<Known>>) {
        self.owner = Owner::of(users.iter().map(|user| &user.name)).map(Arc::new);
        self.users = Arc::new(users);
    }

    /// Ends the authentication against a database.
    pub fn remove(&mut self, db: &str) {
        self.set(self.users.iter().filter(|user| user.name.db != db).map(Arc::clone).collect());
        self.conversation = None;
    }

    /// Looks the users up again if users or roles have changed since: one that is gone is logged out.
    pub fn refresh(&mut self, server: &Server, client: &Client) -> Result<()> {
        let generation = server.auth.generation();
        if self.generation == generation {
            return Ok(());
        }
        if !self.users.is_empty() {
            let directory = Directory::open(server)?;
            let mut users = Vec::with_capacity(self.users.len());
            for user in self.users.iter() {
                let known = Known::load(&directory, &user.name, client)?;
                users.extend(known.filter(|known| known.id == user.id).map(Arc::new));
            }
            self.set(users);
        }
        self.generation = generation;
        Ok(())
    }
}
