//! Commands as the log shows them. Their secrets are taken out by [`crate::auth::redact`].

use espalier_value::{DocBuf, RawDoc};

use crate::auth;

/// A command that may be shown.
pub(crate) enum Shareable<'a> {
    AsItIs(RawDoc<'a>),
    Redacted(DocBuf),
}

impl Shareable<'_> {
    pub fn as_raw(&self) -> RawDoc<'_> {
        match self {
            Shareable::AsItIs(body) => *body,
            Shareable::Redacted(body) => body.as_raw(),
        }
    }
}

/// A command without its secrets.
pub(crate) fn command(body: RawDoc<'_>) -> Shareable<'_> {
    auth::redact(body).map_or(Shareable::AsItIs(body), Shareable::Redacted)
}

/// A command for the log, without what it carries for the driver's sake, and cut where it gets long: a batch of
/// thousands of documents is not worth the time to print it.
pub(crate) struct Shown<'a>(pub RawDoc<'a>);

const SHOWN_BYTES_MAX: usize = 1_000;

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let boring = |name: &str| name.starts_with('$') || matches!(name, "lsid" | "txnNumber");
        f.write_str("{")?;
        for (i, elem) in self.0.iter().filter(|elem| !boring(elem.name())).enumerate() {
            f.write_str(if i > 0 { ", " } else { " " })?;
            match elem.raw().len() {
                0..=SHOWN_BYTES_MAX => write!(f, "{}: {}", elem.name(), elem.value())?,
                bytes => write!(f, "{}: <{} of {bytes} bytes>", elem.name(), elem.ty().name())?,
            }
        }
        f.write_str(" }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use espalier_value::doc;

    #[test]
    fn long_values_are_cut() {
        let body = doc! { "insert": "c", "documents": "x".repeat(5_000).as_str(), "$db": "d" };
        let shown = Shown(body.as_raw()).to_string();
        assert!(shown.starts_with("{ insert: \"c\", documents: <string of 50"), "{shown}");
        assert!(shown.len() < 100);
    }
}
