//! ObjectId: its text form. Making new ones needs a clock and belongs to the rim.

/// A 12-byte ObjectId: seconds, five random bytes, a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    pub fn from_parts(seconds: u32, random: [u8; 5], counter: u32) -> ObjectId {
        let mut id = [0; 12];
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        id[4..9].copy_from_slice(&random);
        id[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        ObjectId(id)
    }

    pub fn parse_hex(text: &str) -> Option<ObjectId> {
        let text = text.as_bytes();
        if text.len() != 24 {
            return None;
        }
        let mut id = [0; 12];
        for (byte, pair) in id.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(ObjectId(id))
    }

    /// Seconds since the Unix epoch.
    pub fn seconds(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl std::fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectId('{self}')")
    }
}
