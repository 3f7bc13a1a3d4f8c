//! Users, roles and what they may do.
//!
//! A login's walk: `login` takes the messages of the client, `scram` checks the proof against what `credentials` stored,
//! `directory` finds the user and follows its roles (`builtin`, or stored ones) to privileges, `granted` indexes those, and
//! `identity` keeps them with the connection; `x509` does the same for a client whose certificate says who it is. Every command then asks `rights` what it declares to need.
//!
//! Invariants:
//! - A command without a declared privilege does not compile; with authentication on, none runs before it was checked.
//! - From outside a user that does not exist cannot be told from a wrong password.
//! - A change of users or roles is in force for the next command of every connection.
//! - No password, proof or key is logged or shown.

mod action;
mod authorize;
mod backoff;
mod base64;
pub mod builtin;
pub mod credentials;
pub mod directory;
mod granted;
pub mod identity;
pub mod login;
mod md5;
pub mod names;
mod pipeline;
mod pretend;
mod redact;
pub mod request;
pub mod resource;
pub mod restrictions;
mod rights;
pub mod roles;
mod scram;
pub mod subject;
pub mod users;
pub mod x509;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use espalier_value::Result;

pub use action::Action;
pub use authorize::{authorize, is_allowed};
pub use pipeline::may_run as may_run_pipeline;
pub use redact::redact;
pub use rights::Rights;

use crate::call::Call;
use crate::client::Client;
use crate::server::Server;
use backoff::Backoff;
use directory::Directory;
use names::UserName;

/// What the server as a whole keeps for authentication.
pub struct Auth {
    enabled: bool,
    generation: AtomicU64,
    /// A user has been seen; from then on nobody may create the "first" one without being one.
    has_users: AtomicBool,
    backoff: Backoff,
    secret: pretend::Secret,
}

impl Auth {
    pub fn new(enabled: bool) -> Result<Auth> {
        Ok(Auth {
            enabled,
            generation: AtomicU64::new(1),
            has_users: AtomicBool::new(false),
            backoff: Backoff::default(),
            secret: pretend::Secret::new()?,
        })
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Counts the changes of users and roles.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Users or roles have changed: every connection looks its users up again.
    pub fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The localhost exception: as long as there is no user, a client on this machine may create one.
    fn first_user_allowed(&self, server: &Server, client: &Client) -> Result<bool> {
        if !client.peer.ip().to_canonical().is_loopback() || self.has_users.load(Ordering::Acquire) {
            return Ok(false);
        }
        let has_users = Directory::open(server)?.has_users()?;
        if has_users {
            self.has_users.store(true, Ordering::Release);
        }
        Ok(!has_users)
    }

    /// What the client may do from now until the end of the command.
    pub fn rights(&self, server: &Server, client: &Client) -> Result<Rights> {
        let mut identity = client.identity();
        identity.refresh(server, client)?;
        let users = std::sync::Arc::clone(&identity.users);
        let owner = identity.owner.clone();
        drop(identity);
        let first = self.enabled && users.is_empty() && self.first_user_allowed(server, client)?;
        Ok(Rights::new(users, owner, !self.enabled, first))
    }

    fn log_failure(&self, call: &Call<'_>, user: Option<&UserName>, mechanism: &str, why: &str) {
        let user = user.map(ToString::to_string).unwrap_or_default();
        let peer = call.client.peer;
        let fields: [crate::log::Field<'_>; 4] =
            [("user", &user), ("peer", &peer), ("mechanism", &mechanism), ("why", &why)];
        call.server.log.warn("access", "authentication failed", &fields);
    }
}
