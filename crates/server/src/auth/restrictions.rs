//! `authenticationRestrictions`: from which addresses a user may come, and at which it may arrive.

use std::net::IpAddr;

use espalier_value::{Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use crate::fields::{self, Field};

/// A range of addresses: `10.0.0.0/8`, or one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    address: IpAddr,
    bits: u32,
}

impl Range {
    fn parse(text: &str) -> Option<Range> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(width), |bits| bits.parse().ok())?;
        (bits <= width).then_some(Range { address, bits })
    }

    fn contains(self, address: IpAddr) -> bool {
        // A client of an IPv6 socket may come from an IPv4 address.
        let number = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(v4) => (32, u128::from(u32::from(v4))),
            IpAddr::V6(v6) => (128, u128::from(v6)),
        };
        let ((width, own), (other_width, other)) = (number(self.address), number(address));
        let bits = if self.address.is_ipv6() && width == 32 { self.bits.saturating_sub(96) } else { self.bits };
        let ignored = width - bits.min(width);
        width == other_width && (ignored >= 128 || own >> ignored == other >> ignored)
    }
}

/// Checks the restrictions of a command and gives them as they are stored.
pub fn parse(array: RawArray<'_>, path: &str) -> Result<Vec<DocBuf>> {
    let mut list = Vec::new();
    for elem in array.elems() {
        let doc = Field::new(elem, path).doc_required()?;
        let (mut client, mut server) = (false, false);
        for field in fields::fields(doc, path)? {
            match field.name() {
                "clientSource" => client = true,
                "serverAddress" => server = true,
                _ => return Err(field.unknown()),
            }
            for range in field.array()?.into_iter().flat_map(RawArray::iter) {
                let text = range.as_str().ok_or_else(|| field.wrong_type("string"))?;
                if Range::parse(text).is_none() {
                    return Err(Error::bad_value("Invalid IP address in CIDR string"));
                }
            }
        }
        if !client && !server {
            let message = "At least one of 'clientSource' or 'serverAddress' must be set";
            return Err(Error::new(Code::CollectionIsEmpty, message));
        }
        list.push(DocBuf::from_raw(doc));
    }
    Ok(list)
}

/// Whether one of a list allows the connection; an empty list allows every one. What cannot be read allows none.
pub fn allow(list: RawArray<'_>, client: IpAddr, server: IpAddr) -> bool {
    let within = |doc: RawDoc<'_>, name: &str, address: IpAddr| match doc.get(name) {
        None => true,
        Some(ValueRef::Array(ranges)) => {
            ranges.iter().filter_map(ValueRef::as_str).filter_map(Range::parse).any(|range| range.contains(address))
        }
        Some(_) => false,
    };
    let one = |value: ValueRef<'_>| {
        let doc = value.as_doc();
        doc.is_some_and(|doc| within(doc, "clientSource", client) && within(doc, "serverAddress", server))
    };
    list.is_empty() || list.iter().any(one)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::{ArrayBuf, doc};

    #[test]
    fn ranges_contain_their_addresses() {
        let contains = |range: &str, address: &str| Range::parse(range).unwrap().contains(address.parse().unwrap());
        assert!(contains("10.0.0.0/8", "10.255.1.2") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("127.0.0.1", "127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("127.0.0.1", "::ffff:127.0.0.1") && contains("0.0.0.0/0", "1.2.3.4"));
        assert!(contains("::1", "::1") && !contains("::1", "::2") && contains("::/0", "::2"));
        assert!(!contains("::/0", "1.2.3.4"));
        assert!(Range::parse("10.0.0.0/33").is_none() && Range::parse("x").is_none());
    }

    #[test]
    fn one_of_the_list_is_enough_and_all_of_it_must_hold() {
        let range = |text: &str| [text].into_iter().map(ValueRef::from).collect::<ArrayBuf>();
        let mut list = ArrayBuf::new();
        let (client, server) = ("10.1.1.1".parse().unwrap(), "127.0.0.1".parse().unwrap());
        assert!(allow(list.as_raw(), client, server));
        list.push(&doc! { "clientSource": &range("10.0.0.0/8"), "serverAddress": &range("1.1.1.1") });
        assert!(!allow(list.as_raw(), client, server));
        list.push(&doc! { "clientSource": &range("10.0.0.0/8") });
        assert!(allow(list.as_raw(), client, server));
    }
}
