//! Resume tokens: `{_data: "<hex>"}`, a place in the history that sorts as it lies. They begin as MongoDB's do, with 82 and
//! the cluster time, so that tools which read the time out of a token find it.

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

/// What stands before the time.
const TIME: u8 = 0x82;
const MARK: u8 = 0x29;
const EVENT: u8 = 0x2B;

/// A place in the history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Token {
    /// Before every event of this time: what came earlier has been seen.
    Mark { stamp: u64 },
    /// At an event, by its place within its commit; or at the end that it put to the stream.
    Event { stamp: u64, index: u32, invalidate: bool },
}

impl Token {
    pub fn stamp(self) -> u64 {
        match self {
            Token::Mark { stamp } | Token::Event { stamp, .. } => stamp,
        }
    }

    /// `{_data: …}`.
    pub fn write(self) -> DocBuf {
        let mut bytes = vec![TIME];
        bytes.extend_from_slice(&self.stamp().to_be_bytes());
        match self {
            Token::Mark { .. } => bytes.push(MARK),
            Token::Event { index, invalidate, .. } => {
                bytes.push(EVENT);
                bytes.extend_from_slice(&index.to_be_bytes());
                bytes.push(invalidate.into());
            }
        }
        let mut hex = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            hex.push(digit(byte >> 4));
            hex.push(digit(byte & 15));
        }
        let mut doc = DocBuf::new();
        doc.append("_data", &hex);
        doc
    }

    pub fn parse(doc: RawDoc<'_>) -> Result<Token> {
        let Some(ValueRef::String(hex)) = doc.get("_data") else {
            let message = format!("Bad resume token: _data of missing or of wrong type. Expected string, got {doc}");
            return Err(Error::new(Code(40647), message));
        };
        if hex.is_empty() {
            return Err(Error::new(Code(40649), "invalid empty resume token"));
        }
        let bytes =
            unhex(hex).ok_or_else(|| Error::failed_to_parse("resume token string was not a valid hex string"))?;
        read(&bytes).ok_or_else(|| match bytes.len() {
            0..10 => Error::new(Code::Overflow, "the resume token is cut off"),
            _ => Error::new(Code::InvalidResumeToken, "the resume token was not made by this server"),
        })
    }
}

fn read(bytes: &[u8]) -> Option<Token> {
    let (&TIME, rest) = bytes.split_first()? else { return None };
    let (stamp, rest) = rest.split_first_chunk()?;
    let stamp = u64::from_be_bytes(*stamp);
    match rest.split_first()? {
        (&MARK, []) => Some(Token::Mark { stamp }),
        (&EVENT, rest) => {
            let (index, rest) = rest.split_first_chunk()?;
            let invalidate = match rest {
                [0] => false,
                [1] => true,
                _ => return None,
            };
            Some(Token::Event { stamp, index: u32::from_be_bytes(*index), invalidate })
        }
        _ => None,
    }
}

fn digit(half: u8) -> char {
    char::from_digit(half.into(), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let halves: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = halves.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::doc;

    use super::*;

    #[test]
    fn tokens_round_trip_and_sort_as_they_lie() {
        let event = |stamp, index, invalidate| Token::Event { stamp, index, invalidate };
        let tokens = [
            Token::Mark { stamp: 0 },
            Token::Mark { stamp: 7 << 32 },
            event(7 << 32, 0, false),
            event(7 << 32, 0, true),
            event(7 << 32, 1, false),
            event(7 << 32, 256, false),
            Token::Mark { stamp: 7 << 32 | 1 },
            event(u64::MAX, u32::MAX, true),
        ];
        let mut last = String::new();
        for token in tokens {
            let doc = token.write();
            assert_eq!(Token::parse(doc.as_raw()).unwrap(), token);
            let data = doc.as_raw().get_str("_data").unwrap().to_string();
            assert!(last < data, "{last} {data}");
            last = data;
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let code = |doc: DocBuf| Token::parse(doc.as_raw()).unwrap_err().code();
        assert_eq!(code(doc! {}), Code(40647));
        assert_eq!(code(doc! { "_data": 5 }), Code(40647));
        assert_eq!(code(doc! { "_data": "" }), Code(40649));
        assert_eq!(code(doc! { "_data": "zz" }), Code::FailedToParse);
        assert_eq!(code(doc! { "_data": "826" }), Code::FailedToParse);
        assert_eq!(code(doc! { "_data": "8263" }), Code::Overflow);
        let foreign = "826AF956810000000D2B022C0100296E5A100411E623B950D94AE0A3C34E142049334304";
        assert_eq!(code(doc! { "_data": foreign }), Code::InvalidResumeToken);
    }
}
