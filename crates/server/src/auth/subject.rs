//! The subject of a certificate as MongoDB writes it: RFC 2253 as OpenSSL prints it, which is the name of the user.
//!
//! The last part comes first, attributes have OpenSSL's short names, and every byte that is not plain ASCII is written
//! as `\C3`. Who has created a user for a certificate in MongoDB can do so here with the same name.

use std::fmt::Write as _;

const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// The kinds of attributes that have a name, by the bytes of their object identifiers.
const NAMES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 13], "description"),
    (&[0x55, 4, 15], "businessCategory"),
    (&[0x55, 4, 17], "postalCode"),
    (&[0x55, 4, 41], "name"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 44], "generationQualifier"),
    (&[0x55, 4, 46], "dnQualifier"),
    (&[0x55, 4, 65], "pseudonym"),
    (&[0x55, 4, 97], "organizationIdentifier"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 2], "unstructuredName"),
    (&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 1], "jurisdictionL"),
    (&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 2], "jurisdictionST"),
    (&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 3], "jurisdictionC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

/// The subject of a certificate; `None` if it has none, or is no certificate.
pub fn subject(certificate: &[u8]) -> Option<String> {
    let mut certificate = Der(Der(certificate).take(SEQUENCE)?);
    let mut signed = Der(certificate.take(SEQUENCE)?);
    if signed.tag() == Some(VERSION) {
        signed.take(VERSION)?;
    }
    signed.take(INTEGER)?;
    // The algorithm, who issued it, and from when to when it holds.
    for _ in 0..3 {
        signed.take(SEQUENCE)?;
    }
    let mut parts = Vec::new();
    let mut name = Der(signed.take(SEQUENCE)?);
    while name.tag().is_some() {
        let mut together = Der(name.take(SET)?);
        let mut attributes = Vec::new();
        while together.tag().is_some() {
            let mut attribute = Der(together.take(SEQUENCE)?);
            let kind = attribute.take(OID)?;
            let whole = attribute.0;
            let tag = attribute.tag()?;
            attributes.push(write_attribute(kind, tag, attribute.take(tag)?, whole)?);
        }
        attributes.reverse();
        parts.push(attributes.join("+"));
    }
    parts.reverse();
    Some(parts.join(",")).filter(|name| !name.is_empty())
}

/// What is left of a sequence of elements.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The kind of the next element.
    fn tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The content of the next element, which has to be of this kind.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (found == tag).then_some(content)
    }
}

/// `CN=alice`. An attribute or a value of a kind without a name is shown as its bytes.
fn write_attribute(kind: &[u8], tag: u8, value: &[u8], whole: &[u8]) -> Option<String> {
    let name = NAMES.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name);
    let text = name.and_then(|_| text(tag, value));
    let mut out = match name {
        Some(name) => format!("{name}="),
        None => format!("{}=", dotted(kind)?),
    };
    match text {
        Some(text) => escape(&text, &mut out),
        None => {
            out.push('#');
            whole.iter().for_each(|byte| hex(*byte, &mut out));
        }
    }
    Some(out)
}

/// A string of one of the kinds that certificates have.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        // UTF8String, NumericString, PrintableString, IA5String, VisibleString.
        0x0c => String::from_utf8(value.to_vec()).ok(),
        0x12 | 0x13 | 0x16 | 0x1a => value.is_ascii().then(|| value.iter().map(|byte| char::from(*byte)).collect()),
        // T61String, which everybody reads as Latin 1.
        0x14 => Some(value.iter().map(|byte| char::from(*byte)).collect()),
        // BMPString, UniversalString.
        0x1e => wide(value, 2),
        0x1c => wide(value, 4),
        _ => None,
    }
}

fn wide(value: &[u8], width: usize) -> Option<String> {
    let chunks = value.chunks_exact(width);
    if !chunks.remainder().is_empty() {
        return None;
    }
    chunks.map(|chunk| char::from_u32(chunk.iter().fold(0, |code, byte| code << 8 | u32::from(*byte)))).collect()
}

fn escape(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let at_an_end = at == 0 || at + 1 == bytes.len();
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend(['\\', char::from(*byte)]),
            b' ' if at_an_end => out.push_str("\\ "),
            b'#' if at == 0 => out.push_str("\\#"),
            0x20..=0x7e => out.push(char::from(*byte)),
            _ => {
                out.push('\\');
                hex(*byte, out);
            }
        }
    }
}

fn hex(byte: u8, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{byte:02X}");
}

/// `2.5.4.3`.
fn dotted(oid: &[u8]) -> Option<String> {
    let mut numbers = Vec::new();
    let mut number = 0u64;
    for byte in oid {
        number = number.checked_mul(128)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    let (first, rest) = numbers.split_first()?;
    let top = (*first / 40).min(2);
    let mut out = format!("{top}.{}", first - 40 * top);
    for number in rest {
        let _ = write!(out, ".{number}");
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    fn of(parts: Vec<(DnType, DnValue)>) -> Option<String> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind, value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        subject(certificate.der())
    }

    fn utf8(text: &str) -> DnValue {
        DnValue::Utf8String(text.into())
    }

    /// What MongoDB 6.0.5 calls such certificates.
    #[test]
    fn subjects_are_written_as_mongodb_writes_them() {
        let name = of(vec![
            (DnType::CountryName, DnValue::PrintableString("DE".try_into().unwrap())),
            (DnType::StateOrProvinceName, utf8("Berlin")),
            (DnType::LocalityName, utf8("Ö, Stadt")),
            (DnType::OrganizationalUnitName, utf8("#dev")),
            (DnType::CommonName, utf8("alice; a #1 ")),
            (DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), DnValue::Ia5String("a@b.c".try_into().unwrap())),
        ]);
        let expected = r"emailAddress=a@b.c,CN=alice\; a #1\ ,OU=\#dev,L=\C3\96\, Stadt,ST=Berlin,C=DE";
        assert_eq!(name.as_deref(), Some(expected));
        let name = of(vec![
            (DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 25]), utf8("org")),
            (DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]), utf8("u1")),
            (DnType::CustomDnType(vec![2, 5, 4, 5]), utf8("17")),
            (DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99_999, 1]), utf8("ab")),
        ]);
        assert_eq!(name.as_deref(), Some("1.3.6.1.4.1.99999.1=#0C026162,serialNumber=17,UID=u1,DC=org"));
        let name = of(vec![(DnType::CommonName, DnValue::BmpString("Öl\u{7}".try_into().unwrap()))]);
        assert_eq!(name.as_deref(), Some(r"CN=\C3\96l\07"));
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_subject() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "x");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let bytes = certificate.der().to_vec();
        assert!(subject(&bytes).is_some());
        for end in 0..bytes.len() {
            assert_eq!(subject(&bytes[..end]), None);
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                // Whatever it says, it says it without reading beyond the end.
                let _ = subject(&damaged);
            }
        }
        assert_eq!(subject(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
