//! Answers for users that do not exist: the same for the same name, and from outside like any other.

use espalier_value::Result;
use ring::hmac;

use super::credentials::{Credential, Mechanism, random};
use super::names::UserName;

/// A key that this run of the server makes up salts with.
pub struct Secret(hmac::Key);

impl Secret {
    pub fn new() -> Result<Secret> {
        let mut bytes = [0; 32];
        random(&mut bytes)?;
        Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }
}

pub fn credential(secret: &Secret, mechanism: Mechanism, user: &UserName) -> Credential {
    let tag = |purpose: &str| hmac::sign(&secret.0, format!("{purpose} {} {user}", mechanism.name()).as_bytes());
    let bytes = |purpose: &str, len: usize| tag(purpose).as_ref().iter().copied().take(len).collect::<Vec<u8>>();
    let len = mechanism.digest().output_len();
    Credential {
        iterations: mechanism.iterations(),
        salt: bytes("salt", mechanism.salt_bytes()),
        stored_key: bytes("stored key", len),
        server_key: bytes("server key", len),
    }
}
