//! The server's side of SCRAM (RFC 5802, RFC 7677): two messages from the client, two answers. Knows no user and no socket.

use ring::{digest, hmac};

use super::base64;
use super::credentials::{Credential, Mechanism, equal_in_constant_time};

/// A message that does not follow the protocol, or a proof that is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed(pub &'static str);

/// What the client's first message says.
pub struct ClientFirst {
    pub user: String,
    /// `n,,`: what the last message has to repeat.
    header: String,
    bare: String,
    nonce: String,
}

impl ClientFirst {
    pub fn parse(payload: &[u8]) -> Result<ClientFirst, Failed> {
        let text = std::str::from_utf8(payload).map_err(|_| Failed("the first message is not UTF-8"))?;
        let mut parts = text.splitn(3, ',');
        let (Some(binding), Some(authorize), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Failed("the first message has too few parts"));
        };
        match binding {
            "n" | "y" => {}
            _ if binding.starts_with("p=") => return Err(Failed("channel binding is not supported")),
            _ => return Err(Failed("the first message begins with no known flag")),
        }
        let mut fields = bare.split(',');
        let name = fields.next().and_then(|field| field.strip_prefix("n="));
        let nonce = fields.next().and_then(|field| field.strip_prefix("r=")).filter(|nonce| !nonce.is_empty());
        let (Some(name), Some(nonce)) = (name, nonce) else {
            return Err(Failed("the first message has no name or no nonce"));
        };
        let user = unescape(name).ok_or(Failed("the name is escaped wrongly"))?;
        // Acting for another user is not supported; saying who one is twice does no harm.
        if !authorize.is_empty() && authorize.strip_prefix("a=") != Some(name) {
            return Err(Failed("the first message asks to act for another user"));
        }
        let header = format!("{binding},{authorize},");
        Ok(ClientFirst { user, header, bare: bare.into(), nonce: nonce.into() })
    }
}

/// `=2C` and `=3D` stand for what separates.
fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut parts = name.split('=');
    out.push_str(parts.next()?);
    for part in parts {
        match part.get(..2)? {
            "2C" => out.push(','),
            "3D" => out.push('='),
            _ => return None,
        }
        out.push_str(&part[2..]);
    }
    (!out.is_empty()).then_some(out)
}

/// Between the two messages of the client.
pub struct Exchange {
    mechanism: Mechanism,
    credential: Credential,
    /// The credential is made up: the user does not exist, which the client is not to learn.
    pretended: bool,
    first: ClientFirst,
    nonce: String,
    server_first: String,
}

impl Exchange {
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The state, and the first answer. `nonce` is fresh randomness.
    pub fn begin(
        mechanism: Mechanism,
        first: ClientFirst,
        credential: Credential,
        pretended: bool,
        nonce: &[u8],
    ) -> (Exchange, Vec<u8>) {
        let nonce = format!("{}{}", first.nonce, base64::encode(nonce));
        let server_first = format!("r={nonce},s={},i={}", base64::encode(&credential.salt), credential.iterations);
        let answer = server_first.clone().into_bytes();
        (Exchange { mechanism, credential, pretended, first, nonce, server_first }, answer)
    }

    /// Checks the proof in the client's last message; the answer proves that the server knows the user too.
    pub fn finish(&self, payload: &[u8]) -> Result<Vec<u8>, Failed> {
        let text = std::str::from_utf8(payload).map_err(|_| Failed("the last message is not UTF-8"))?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(Failed("the last message has no proof"))?;
        let proof = base64::decode(proof).ok_or(Failed("the proof is not base 64"))?;
        let mut fields = without_proof.split(',');
        let binding = fields.next().and_then(|field| field.strip_prefix("c=")).and_then(base64::decode);
        if binding.as_deref() != Some(self.first.header.as_bytes()) {
            return Err(Failed("the last message does not repeat the header of the first"));
        }
        if fields.next().and_then(|field| field.strip_prefix("r=")) != Some(self.nonce.as_str()) {
            return Err(Failed("the last message does not repeat the nonce"));
        }
        let message = format!("{},{},{without_proof}", self.first.bare, self.server_first);
        let sign = |key: &[u8]| hmac::sign(&hmac::Key::new(self.mechanism.hmac(), key), message.as_bytes());
        let signature = sign(&self.credential.stored_key);
        let client_key: Vec<u8> = proof.iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        let stored_key = digest::digest(self.mechanism.digest(), &client_key);
        let right = equal_in_constant_time(stored_key.as_ref(), &self.credential.stored_key);
        if !right || proof.len() != signature.as_ref().len() || self.pretended {
            return Err(Failed(if self.pretended { "there is no such user" } else { "the password is wrong" }));
        }
        Ok(format!("v={}", base64::encode(sign(&self.credential.server_key).as_ref())).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The example of RFC 7677, with the server's part of the nonce given.
    fn example() -> (Exchange, Vec<u8>) {
        let first = ClientFirst::parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        let salt = base64::decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let credential = Credential::derive(Mechanism::ScramSha256, b"pencil", salt, 4096);
        let (mut exchange, _) = Exchange::begin(Mechanism::ScramSha256, first, credential, false, b"");
        exchange.nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".into();
        exchange.server_first = format!("r={},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", exchange.nonce);
        let answer = exchange.server_first.clone().into_bytes();
        (exchange, answer)
    }

    const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    #[test]
    fn the_example_of_rfc_7677() {
        let (exchange, _) = example();
        assert_eq!(exchange.finish(LAST.as_bytes()).unwrap(), b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn what_is_not_right_fails() {
        let (exchange, _) = example();
        let fails = |message: &str| exchange.finish(message.as_bytes()).is_err();
        assert!(fails(&LAST.replace("dHzb", "dHzc")));
        assert!(fails(&LAST.replace("c=biws", "c=eSws")));
        assert!(fails(&LAST.replace("%hvY", "%hvX")));
        assert!(fails(&LAST.replace("VQ=", "VQA=")));
        assert!(fails("") && fails("c=biws,r=x") && fails("p="));
        for first in
            ["", "n", "n,,", "n,,n=u", "n,,n=,r=x", "n,,n=a=2,r=x", "n,,n=a=4x,r=x", "p=x,,n=u,r=x", "n,a=b,n=u,r=x"]
        {
            assert!(ClientFirst::parse(first.as_bytes()).is_err(), "{first}");
        }
        assert_eq!(ClientFirst::parse(b"y,,n=a=2Cb=3D,r=x").unwrap().user, "a,b=");
    }

    #[test]
    fn a_user_that_does_not_exist_fails_with_the_right_proof_too() {
        let (mut exchange, _) = example();
        exchange.pretended = true;
        assert!(exchange.finish(LAST.as_bytes()).is_err());
    }
}
