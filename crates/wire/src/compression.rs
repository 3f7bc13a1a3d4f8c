//! The compressors that the protocol names.

/// A way to compress a message, with its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// Not compressed, but wrapped all the same. Clients use it for tests only.
    Noop = 0,
    Snappy = 1,
    Zlib = 2,
    Zstd = 3,
}

impl Compression {
    pub const ALL: [Self; 4] = [Self::Noop, Self::Snappy, Self::Zlib, Self::Zstd];

    pub fn id(self) -> u8 {
        self as u8
    }

    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.id() == id)
    }

    /// The name in the `compression` array of `hello`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.name() == name)
    }

    /// How many bytes one compressed byte can become at most. A frame that announces more is refused before memory is
    /// set aside for it.
    pub(crate) fn expansion_max(self) -> usize {
        match self {
            Self::Noop => 1,
            // A copy element of 3 bytes gives up to 64.
            Self::Snappy => 22,
            // A match of 258 bytes takes at least one bit for its length and one for its distance.
            Self::Zlib => 1032,
            // A run-length block of 4 bytes gives up to 128 KiB.
            Self::Zstd => 32 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_are_those_of_the_protocol() {
        let expected = [("noop", 0), ("snappy", 1), ("zlib", 2), ("zstd", 3)];
        assert_eq!(Compression::ALL.map(|c| (c.name(), c.id())), expected);
        for compression in Compression::ALL {
            assert_eq!(Compression::from_id(compression.id()), Some(compression));
            assert_eq!(Compression::from_name(compression.name()), Some(compression));
        }
        assert_eq!(Compression::from_id(4), None);
        assert_eq!(Compression::from_name("Snappy"), None);
    }
}
