//! What is stored of a password: per mechanism a salt, an iteration count and two keys, in MongoDB's shape.

use std::num::NonZeroU32;

use espalier_value::number::Number;
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};
use ring::rand::SecureRandom;
use ring::{digest, hmac, pbkdf2};

use super::{base64, md5};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mechanism {
    ScramSha1,
    ScramSha256,
}

impl Mechanism {
    pub const ALL: [Mechanism; 2] = [Mechanism::ScramSha1, Mechanism::ScramSha256];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    pub fn parse(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    pub(super) fn hmac(self) -> hmac::Algorithm {
        match self {
            Mechanism::ScramSha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::ScramSha256 => hmac::HMAC_SHA256,
        }
    }

    pub(super) fn digest(self) -> &'static digest::Algorithm {
        match self {
            Mechanism::ScramSha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::ScramSha256 => &digest::SHA256,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Mechanism::ScramSha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Mechanism::ScramSha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        }
    }

    /// MongoDB's numbers.
    pub fn iterations(self) -> u32 {
        match self {
            Mechanism::ScramSha1 => 10_000,
            Mechanism::ScramSha256 => 15_000,
        }
    }

    /// As long as the hash, less the four bytes that PBKDF2 adds.
    pub fn salt_bytes(self) -> usize {
        self.digest().output_len() - 4
    }
}

/// Never shown: `Debug` is left out on purpose.
pub struct Credential {
    pub iterations: u32,
    pub salt: Vec<u8>,
    pub stored_key: Vec<u8>,
    pub server_key: Vec<u8>,
}

impl Credential {
    /// What to store for a password. With `digested` it is what old drivers send in its place.
    pub fn new(mechanism: Mechanism, user: &str, password: &str, digested: bool) -> Result<Credential> {
        let mut salt = vec![0; mechanism.salt_bytes()];
        random(&mut salt)?;
        let secret = match mechanism {
            Mechanism::ScramSha1 if digested => password.to_string(),
            Mechanism::ScramSha1 => md5::hex_digest(format!("{user}:mongo:{password}").as_bytes()),
            Mechanism::ScramSha256 => prepare(password)?,
        };
        Ok(Credential::derive(mechanism, secret.as_bytes(), salt, mechanism.iterations()))
    }

    pub(super) fn derive(mechanism: Mechanism, secret: &[u8], salt: Vec<u8>, iterations: u32) -> Credential {
        let mut salted = vec![0; mechanism.digest().output_len()];
        let count = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(mechanism.pbkdf2(), count, &salt, secret, &mut salted);
        let key = hmac::Key::new(mechanism.hmac(), &salted);
        let client_key = hmac::sign(&key, b"Client Key");
        let stored_key = digest::digest(mechanism.digest(), client_key.as_ref()).as_ref().to_vec();
        let server_key = hmac::sign(&key, b"Server Key").as_ref().to_vec();
        Credential { iterations, salt, stored_key, server_key }
    }

    pub fn to_doc(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("iterationCount", i32::try_from(self.iterations).unwrap_or(i32::MAX));
        doc.append("salt", &base64::encode(&self.salt));
        doc.append("storedKey", &base64::encode(&self.stored_key));
        doc.append("serverKey", &base64::encode(&self.server_key));
        doc
    }

    pub fn parse(doc: RawDoc<'_>) -> Option<Credential> {
        let bytes = |name: &str| doc.get_str(name).and_then(base64::decode);
        let iterations = Number::of(doc.get("iterationCount")?)?.as_exact_i64()?;
        Some(Credential {
            iterations: u32::try_from(iterations).ok()?,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        })
    }
}

/// SASLprep (RFC 4013), which makes one password of the different ways to type it.
fn prepare(password: &str) -> Result<String> {
    if password.is_empty() {
        return Err(Error::new(Code(50687), "Error preflighting UTF-8 conversion: U_STRING_NOT_TERMINATED_WARNING"));
    }
    match stringprep::saslprep(password) {
        Ok(prepared) => Ok(prepared.into_owned()),
        Err(_) => Err(Error::new(Code(50692), "Error preflighting normalization: U_STRINGPREP_PROHIBITED_ERROR")),
    }
}

pub fn random(bytes: &mut [u8]) -> Result<()> {
    let filled = ring::rand::SystemRandom::new().fill(bytes);
    filled.map_err(|_| Error::internal("the operating system gives no random bytes"))
}

/// Takes as long for any two slices of a length, so that the time tells nothing about where they differ.
pub fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |found, (a, b)| found | std::hint::black_box(a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn passwords_are_prepared_as_the_rfc_says() {
        assert_eq!(prepare("I\u{ad}X").unwrap(), "IX");
        assert_eq!(prepare("\u{2168}").unwrap(), "IX");
        assert_eq!(prepare("\u{7}").unwrap_err().code(), Code(50692));
        assert_eq!(prepare("").unwrap_err().code(), Code(50687));
    }

    #[test]
    fn a_credential_survives_storing() {
        for mechanism in Mechanism::ALL {
            let credential = Credential::new(mechanism, "u", "pencil", false).unwrap();
            let back = Credential::parse(credential.to_doc().as_raw()).unwrap();
            assert_eq!(back.salt.len(), mechanism.salt_bytes());
            assert!(back.stored_key == credential.stored_key && back.server_key == credential.server_key);
            assert_eq!(back.iterations, mechanism.iterations());
        }
    }

    #[test]
    fn comparison_sees_every_difference() {
        assert!(equal_in_constant_time(b"abc", b"abc"));
        assert!(!equal_in_constant_time(b"abc", b"abd"));
        assert!(!equal_in_constant_time(b"abc", b"ab"));
    }
}
