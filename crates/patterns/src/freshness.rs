//! How soon a derivation follows what it is made of.

use std::time::Duration;

use espalier_value::Result;

use crate::fields::Fields;

const WITHIN_MIN: Duration = Duration::from_millis(100);
const WITHIN_MAX: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug)]
pub struct Freshness {
    /// `None`: with the write itself.
    pub within: Option<Duration>,
    text: Box<str>,
}

impl Freshness {
    pub fn parse(fields: &Fields<'_>) -> Result<Freshness> {
        let text = fields.str("freshness")?.unwrap_or("commit");
        let within = match text {
            "commit" => None,
            time => {
                let within = crate::duration::parse(time).filter(|time| (WITHIN_MIN..=WITHIN_MAX).contains(time));
                let wrong = || format!("must be 'commit' or a time from 100ms to 1h, such as 1s, not '{text}'");
                Some(within.ok_or_else(|| fields.error("freshness", wrong()))?)
            }
        };
        Ok(Freshness { within, text: text.into() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}
