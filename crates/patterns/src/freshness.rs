//! How soon a derivation follows what it is made of.

use espalier_value::Result;

use crate::fields::Fields;

#[derive(Clone, Debug)]
pub struct Freshness {
    text: Box<str>,
}

impl Freshness {
    pub fn parse(fields: &Fields<'_>) -> Result<Freshness> {
        let text = fields.str("freshness")?.unwrap_or("commit");
        if text == "commit" {
            return Ok(Freshness { text: text.into() });
        }
        match crate::duration::parse(text) {
            Some(_) => Err(fields.error("freshness", "only 'commit' is carried out yet")),
            None => Err(fields.error("freshness", format!("must be 'commit' or a time such as 1s, not '{text}'"))),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}
