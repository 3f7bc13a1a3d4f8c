//! The name of a session: the id that a client chose for it, and whose it is.
//!
//! As in MongoDB two users with the same id have two sessions. Who has heard of another's id can neither act in that
//! session nor see what its retryable writes were answered, also after a restart: what the store remembers of a session
//! is kept under a key that both are part of.

use ring::digest;

use espalier_store::SessionId;
use espalier_value::{DocBuf, ValueRef};

use crate::auth::names::UserName;
use crate::reply::DocWriter;

/// The SHA-256 of a user's name.
pub type Uid = [u8; 32];

/// Without users: the SHA-256 of nothing.
pub const NOBODY: Uid = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lsid {
    pub id: [u8; 16],
    pub uid: Uid,
}

/// Whose sessions a client's are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    pub uid: Uid,
    /// `user@database`.
    pub name: String,
}

impl Owner {
    /// Of all users of a connection together; `None` if there is none.
    pub fn of<'a>(users: impl Iterator<Item = &'a UserName>) -> Option<Owner> {
        let mut names: Vec<String> = users.map(ToString::to_string).collect();
        if names.is_empty() {
            return None;
        }
        names.sort();
        let name = names.join(",");
        Some(Owner { uid: uid(&name), name })
    }
}

/// The `uid` of who is called `user@database`.
pub fn uid(name: &str) -> Uid {
    let mut uid = [0; 32];
    uid.copy_from_slice(digest::digest(&digest::SHA256, name.as_bytes()).as_ref());
    uid
}

impl Lsid {
    /// What the store calls the session: its id alone if it is nobody's, as without authentication.
    pub fn key(&self) -> SessionId {
        if self.uid == NOBODY {
            return self.id;
        }
        let mut both = [0; 48];
        both[..32].copy_from_slice(&self.uid);
        both[32..].copy_from_slice(&self.id);
        let mut key = [0; 16];
        key.copy_from_slice(&digest::digest(&digest::SHA256, &both).as_ref()[..16]);
        key
    }

    pub fn write(&self, doc: &mut DocWriter<'_>) {
        doc.append("id", ValueRef::Binary(4, &self.id)).append("uid", ValueRef::Binary(0, &self.uid));
    }

    pub fn to_doc(self) -> DocBuf {
        crate::reply::build(|doc| self.write(doc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_id_is_another_session_for_another_user() {
        let owner = |names: &[(&str, &str)]| {
            let names: Vec<UserName> = names.iter().map(|(user, db)| UserName::new(user, db)).collect();
            Owner::of(names.iter())
        };
        assert_eq!(owner(&[]), None);
        assert_eq!(uid(""), NOBODY);
        // As MongoDB 6.0.5 shows it for `one@shop`.
        let one = owner(&[("one", "shop")]).map(|owner| owner.uid).unwrap_or(NOBODY);
        assert_eq!(one[..8], [0xcb, 0xfd, 0x64, 0xdd, 0xca, 0x38, 0x2b, 0x2b]);
        let id = [7; 16];
        let key = |uid| Lsid { id, uid }.key();
        assert_eq!(key(NOBODY), id);
        assert_ne!(key(one), id);
        assert_ne!(key(one), key(uid("two@shop")));
        assert_eq!(owner(&[("b", "y"), ("a", "x")]), owner(&[("a", "x"), ("b", "y")]));
    }
}
