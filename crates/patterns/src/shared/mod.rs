//! `shared`: many logical collections in one, the cure for a collection per customer. Declared on the physical
//! collection; every name of the database that fits the template is a logical collection in it.
//!
//! Invariant: a stored document's `_id` is `{<discriminator>: tenant, _id: …}`, and its discriminator is that tenant.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `discriminator` | required | field of every document that says whose it is |
//! | `name` | required | template of the logical names, with the discriminator in braces: `customer_{tenantId}_orders` |
//! | `into` | the collection itself | the physical collection, which is the one that it is declared on |
//!
//! A logical document is the stored one with the inner `_id`. The discriminator is in it, is added where a client leaves it
//! out, and never changes.

mod check;
mod declare;
mod documents;
mod events;
mod find;
mod indexes;
mod joining;
mod leaving;
mod names;
mod parting;
mod physical;
mod rewrite;
mod sifted;
mod tenant;
mod write;

use espalier_store::Namespace;
use espalier_value::{Code, Error};

pub use declare::SHARED;
pub use leaving::drop_orphans;

/// A declaration, read.
#[derive(Clone, Debug)]
pub struct Shared {
    into: Box<str>,
    discriminator: Box<str>,
    name: Box<str>,
    prefix: Box<str>,
    suffix: Box<str>,
}

/// One of the logical collections.
#[derive(Clone, Debug)]
pub struct Tenant {
    shared: Shared,
    tenant: Box<str>,
}

impl Shared {
    /// What the logical collection of a tenant is called.
    fn name_of(&self, tenant: &str) -> String {
        format!("{}{tenant}{}", self.prefix, self.suffix)
    }

    /// The logical collection of that name, if the name fits.
    fn logical(&self, name: &str) -> Option<Tenant> {
        let tenant = name.strip_prefix(&*self.prefix)?.strip_suffix(&*self.suffix)?;
        let fits = !tenant.is_empty() && name != &*self.into;
        fits.then(|| Tenant { shared: self.clone(), tenant: tenant.into() })
    }
}

impl Tenant {
    fn logical_name(&self, db: &str) -> Namespace {
        Namespace::new(db, &self.shared.name_of(&self.tenant))
    }

    fn physical_name(&self) -> Option<&str> {
        Some(&self.shared.into)
    }

    fn physical(&self, ns: &Namespace) -> Namespace {
        Namespace::new(ns.db(), &self.shared.into)
    }

    fn not_yours(&self) -> Error {
        Error::new(
            Code::ImmutableField,
            format!(
                "the field '{}' belongs to the pattern 'shared', and is \"{}\" in this collection; leave it out",
                self.shared.discriminator, self.tenant
            ),
        )
    }

    fn refused(&self, what: &str) -> Error {
        let into = &self.shared.into;
        Error::new(
            Code::CommandNotSupported,
            format!("{what} cannot be done on a logical collection of the pattern 'shared'; do it on '{into}'"),
        )
    }
}
