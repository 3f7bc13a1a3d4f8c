//! A server that wants TLS, a certificate of its clients, and users; and the certificates for it.

use std::path::Path;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use super::{Server, TemporaryFolder};
use crate::error::{Context, Result};

/// A running server that is secured, with the certificates in a folder of their own:
///
/// - `ca.pem`: the authority, of the server and of its clients,
/// - `server.pem`, `server.key`, `server.both`: the server's certificate, its key, and the two together,
/// - `alice.pem`, `bob.pem`: certificates of clients, each with its key,
/// - `stranger.pem`: one that another authority signed.
pub struct Secure {
    server: Box<dyn Server>,
    certificates: TemporaryFolder,
}

impl Secure {
    /// Makes the certificates and has `start` start a server on the folder with them.
    pub(super) fn start(start: impl FnOnce(&Path) -> Result<Box<dyn Server>>) -> Result<Secure> {
        let certificates = TemporaryFolder::in_memory("certificates")?;
        write(certificates.path())?;
        Ok(Secure { server: start(certificates.path())?, certificates })
    }

    /// A connection string without users and certificates.
    pub fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true&tls=true", self.server.port())
    }

    pub fn name(&self) -> &'static str {
        self.server.name()
    }

    pub fn certificates(&self) -> &Path {
        self.certificates.path()
    }

    /// Tells a client's tests where the server is.
    pub fn tell(&self, command: &mut Command) {
        command.env("ESPALIER_SECURE_URI", self.uri()).env("ESPALIER_CERTIFICATES", self.certificates());
    }
}

/// What a name in a certificate is: the organization and the common name.
fn named(organization: &str, name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::OrganizationName, organization);
    names.push(DnType::CommonName, name);
    names
}

fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new()).context("an authority")?;
    params.distinguished_name = named("Certificates", name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().context("a key")?;
    CertifiedIssuer::self_signed(params, key).context("an authority")
}

fn write(folder: &Path) -> Result<()> {
    let (ours, theirs) = (authority("ca")?, authority("another ca")?);
    std::fs::write(folder.join("ca.pem"), ours.pem())?;
    let sign = |issuer: &CertifiedIssuer<'static, KeyPair>, organization: &str, name: &str| {
        let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(hosts).context("a certificate")?;
        params.distinguished_name = named(organization, name);
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().context("a key")?;
        let certificate = params.signed_by(&key, issuer).context("a certificate")?;
        Ok::<(String, String), crate::error::Error>((certificate.pem(), key.serialize_pem()))
    };
    let (certificate, key) = sign(&ours, "Server", "localhost")?;
    std::fs::write(folder.join("server.pem"), &certificate)?;
    std::fs::write(folder.join("server.key"), &key)?;
    std::fs::write(folder.join("server.both"), format!("{certificate}{key}"))?;
    for (file, issuer, name) in
        [("alice", &ours, "alice, first of her name"), ("bob", &ours, "bob"), ("stranger", &theirs, "bob")]
    {
        let (certificate, key) = sign(issuer, "Bike Shop", name)?;
        std::fs::write(folder.join(format!("{file}.pem")), format!("{certificate}{key}"))?;
    }
    Ok(())
}
