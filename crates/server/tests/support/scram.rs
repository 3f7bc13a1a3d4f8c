//! The client's side of SCRAM, written apart from the server's.

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

use super::Client;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |word, (i, b)| word | u32::from(*b) << (16 - 8 * i));
        (0..4).for_each(|i| {
            out.push(if i <= chunk.len() { ALPHABET[(word >> (18 - 6 * i) & 63) as usize] as char } else { '=' })
        });
    }
    out
}

fn decode(text: &str) -> Vec<u8> {
    let (mut word, mut bits, mut out) = (0u32, 0, Vec::new());
    for byte in text.bytes().filter(|b| *b != b'=') {
        word = word << 6 | ALPHABET.iter().position(|b| *b == byte).unwrap() as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    out
}

pub fn payload(reply: &DocBuf) -> String {
    match reply.as_raw().get("payload") {
        Some(ValueRef::Binary(0, bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?} in {reply:?}"),
    }
}

/// The last message, given the first one without its header and the server's answer to it.
pub fn proof(mechanism: &str, secret: &str, first: &str, server_first: &str) -> String {
    let sha256 = mechanism == "SCRAM-SHA-256";
    let (mac, hash) = if sha256 {
        (hmac::HMAC_SHA256, &digest::SHA256)
    } else {
        (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &digest::SHA1_FOR_LEGACY_USE_ONLY)
    };
    let derive = if sha256 { pbkdf2::PBKDF2_HMAC_SHA256 } else { pbkdf2::PBKDF2_HMAC_SHA1 };
    let part = |at: usize| &server_first.split(',').nth(at).unwrap()[2..];
    let (nonce, salt, iterations) = (part(0), decode(part(1)), part(2).parse().unwrap());
    let mut salted = vec![0; hash.output_len()];
    pbkdf2::derive(derive, NonZeroU32::new(iterations).unwrap(), &salt, secret.as_bytes(), &mut salted);
    let sign = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(mac, key), text.as_bytes()).as_ref().to_vec();
    let client_key = sign(&salted, "Client Key");
    let stored_key = digest::digest(hash, &client_key);
    let last = format!("c=biws,r={nonce}");
    let signature = sign(stored_key.as_ref(), &format!("{first},{server_first},{last}"));
    let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    format!("{last},p={}", encode(&proof))
}

pub fn start(mechanism: &str, user: &str) -> DocBuf {
    let text = format!("n,,n={user},r=fyko+d2lbbFgONRv9qkxdawL");
    doc! {
        "saslStart": 1,
        "mechanism": mechanism,
        "payload": ValueRef::Binary(0, text.as_bytes()),
        "options": &doc! { "skipEmptyExchange": true },
    }
}

/// Logs in; gives the last reply, whatever it says.
pub fn login(client: &mut Client, db: &str, user: &str, mechanism: &str, secret: &str) -> DocBuf {
    login_by(|body| client.run_on(db, body), user, mechanism, secret)
}

/// As [`login`], by whatever runs commands.
pub fn login_by(mut run: impl FnMut(DocBuf) -> DocBuf, user: &str, mechanism: &str, secret: &str) -> DocBuf {
    let reply = run(start(mechanism, user));
    if reply.as_raw().get("payload").is_none() {
        return reply;
    }
    let first = format!("n={user},r=fyko+d2lbbFgONRv9qkxdawL");
    let last = proof(mechanism, secret, &first, &payload(&reply));
    let id = reply.as_raw().get("conversationId").unwrap();
    let go_on = doc! { "saslContinue": 1, "conversationId": id, "payload": ValueRef::Binary(0, last.as_bytes()) };
    run(go_on)
}

pub fn is_ok(reply: &DocBuf) -> bool {
    matches!(reply.as_raw().get("ok"), Some(ValueRef::Double(1.0)))
}

pub fn roles(names: &[&str]) -> ArrayBuf {
    names.iter().map(|name| ValueRef::from(*name)).collect()
}
