//! Reading a declaration of the outlier pattern.

use std::sync::Arc;

use espalier_value::{DocBuf, Path, Result};

use super::{CREATED, NUMBER, Outlier, Read, SIZE};
use crate::fields::Fields;
use crate::kind::{Kind, Parsed};

pub static OUTLIER: Kind = Kind {
    name: "outlier",
    doc: "Keeps the first elements of a huge array in the document and the rest in batches beside it.",
    parse,
};

const THRESHOLD: u64 = 1_000;
const BATCH_SIZE: u64 = 1_000;
const BATCH_BYTES: u64 = 1 << 20;
/// Half of what a document may measure: the other half is for the rest of the main document.
const BATCH_BYTES_MAX: u64 = 8 << 20;
const ELEMENTS_MAX: u64 = 1_000_000;

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let array = fields.path("array")?;
    let one = singular(last(&array));
    let outlier = Outlier {
        threshold: fields.count("threshold", THRESHOLD, ELEMENTS_MAX)? as usize,
        batch_size: fields.count("batchSize", BATCH_SIZE, ELEMENTS_MAX)? as usize,
        batch_bytes: fields.count("batchBytes", BATCH_BYTES, BATCH_BYTES_MAX)? as usize,
        into: fields.into(|| format!("{one}Overflow"))?,
        parent: fields.field_name("parent", || format!("{}Id", singular(collection)))?,
        count: fields.field_name("count", || format!("{one}Count"))?,
        flag: fields.field_name("flag", || "hasOverflow".to_string())?,
        batches: fields.field_name("batches", || "overflowCount".to_string())?,
        read: fields.choice("read", &[("whole", Read::Whole), ("head", Read::Head)])?,
        array,
    };
    outlier.check(fields, collection)?;
    let owned = vec![outlier.count.clone(), outlier.flag.clone(), outlier.batches.clone()];
    let options = outlier.options();
    Ok(Parsed::layout(Arc::new(outlier), options, owned))
}

impl Outlier {
    fn check(&self, fields: &Fields<'_>, collection: &str) -> Result<()> {
        if &*self.into == collection {
            return Err(fields.error("into", "the batches need a collection of their own"));
        }
        let owned = [("count", &self.count), ("flag", &self.flag), ("batches", &self.batches)];
        for (i, (option, name)) in owned.iter().enumerate() {
            if ***name == *self.array.first() {
                return Err(fields.error(option, format!("'{name}' is the array")));
            }
            if owned[..i].iter().any(|(_, other)| other == name) {
                return Err(fields.error(option, format!("'{name}' is used twice")));
            }
        }
        if [NUMBER, SIZE, CREATED, self.array.first()].contains(&&*self.parent) {
            return Err(fields.error("parent", format!("'{}' is another field of a batch", self.parent)));
        }
        if [NUMBER, SIZE, CREATED, "_id"].contains(&self.array.first()) {
            return Err(fields.error("array", format!("'{}' is another field of a batch", self.array)));
        }
        Ok(())
    }

    /// The declaration with all its defaults.
    fn options(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("array", self.array.as_str())
            .append("threshold", self.threshold as i32)
            .append("batchSize", self.batch_size as i32)
            .append("batchBytes", self.batch_bytes as i32)
            .append("into", &*self.into)
            .append("parent", &*self.parent)
            .append("count", &*self.count)
            .append("flag", &*self.flag)
            .append("batches", &*self.batches)
            .append("read", if self.read == Read::Whole { "whole" } else { "head" });
        doc
    }
}

fn last(path: &Path) -> &str {
    path.parts().last().map_or("", |part| part.name())
}

/// `followers` to `follower`, `categories` to `category`, `boxes` to `box`.
fn singular(word: &str) -> String {
    let ends = |ending: &str| word.len() > ending.len() + 1 && word.ends_with(ending);
    if ends("ies") {
        format!("{}y", &word[..word.len() - 3])
    } else if ["ses", "xes", "ches", "shes"].iter().any(|ending| ends(ending)) {
        word[..word.len() - 2].to_string()
    } else if ends("s") && !ends("ss") {
        word[..word.len() - 1].to_string()
    } else {
        word.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::singular;

    #[test]
    fn names_are_made_as_the_texts_make_them() {
        for (many, one) in [("followers", "follower"), ("users", "user"), ("categories", "category"), ("boxes", "box")]
        {
            assert_eq!(singular(many), one);
        }
        assert_eq!(singular("address"), "address");
    }
}
