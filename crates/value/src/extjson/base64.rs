//! Base64 with padding, for binaries in extended JSON.

use std::fmt::{self, Display, Formatter, Write};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) struct Base64<'a>(pub(super) &'a [u8]);

impl Display for Base64<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for group in self.0.chunks(3) {
            let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
            let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
            for i in 0..4 {
                let symbol = ALPHABET[(bits >> (18 - 6 * i)) as usize & 63];
                // One byte fills two symbols, two bytes three.
                f.write_char(if i <= group.len() { char::from(symbol) } else { '=' })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_rfc_4648() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in pairs {
            assert_eq!(Base64(plain.as_bytes()).to_string(), encoded);
        }
        assert_eq!(Base64(&[0xfb, 0xff, 0xfe]).to_string(), "+//+");
    }
}
