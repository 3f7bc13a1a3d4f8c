//! Reading a declaration of the shared pattern.

use std::sync::Arc;

use espalier_value::{DocBuf, Result};

use super::Shared;
use super::joining::Joining;
use super::parting::Parting;
use crate::fields::Fields;
use crate::kind::{Kind, Parsed};

pub static SHARED: Kind =
    Kind { name: "shared", doc: "Keeps many logical collections, one for each tenant, in one.", parse };

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let into: Box<str> = fields.str("into")?.unwrap_or(collection).into();
    let discriminator = fields
        .required_str("discriminator")
        .map(drop)
        .and_then(|()| fields.field_name("discriminator", String::new))?;
    let name = fields.required_str("name")?;
    let placeholder = format!("{{{discriminator}}}");
    let Some((prefix, suffix)) = name.split_once(&placeholder) else {
        return Err(fields.error("name", format!("must have {placeholder}, where the tenant stands")));
    };
    if suffix.contains(['{', '}']) || prefix.contains(['{', '}']) {
        return Err(fields.error("name", format!("must have {placeholder} once, and no other braces")));
    }
    if prefix.is_empty() && suffix.is_empty() {
        return Err(fields.error("name", "must have more than the tenant: every name would fit"));
    }
    if name.starts_with("system.") || name.starts_with('.') || name.contains('$') || name.contains('\0') {
        return Err(fields.error("name", format!("'{name}' cannot be the name of a collection")));
    }
    let shared = Shared { into, discriminator, name: name.into(), prefix: prefix.into(), suffix: suffix.into() };
    // Written by the server: who asks what options there are is not told of them.
    let own = |name| if fields.has(name) { fields.bool(name) } else { Ok(None) };
    let (joining, parting) = (own("joining")?, own("parting")?);
    if *shared.into != *collection {
        let Some(tenant) = shared.logical(collection) else {
            let what = format!("must be '{collection}', or that name must fit '{name}' to become a part of it");
            return Err(fields.error("into", what));
        };
        let mut options = shared.options();
        if parting.is_some() {
            options.append("parting", true);
            return Ok(Parsed::layout(Arc::new(Parting(tenant)), options, Vec::new()));
        }
        options.append("joining", true);
        return Ok(Parsed::layout(Arc::new(Joining(tenant)), options, Vec::new()));
    }
    for (given, name) in [(joining, "joining"), (parting, "parting")] {
        if given.is_some() {
            return Err(fields.error(name, "is for a collection that becomes a part of another, or was one"));
        }
    }
    let owned = vec![shared.discriminator.clone()];
    let options = shared.options();
    Ok(Parsed::layout(Arc::new(shared), options, owned))
}

impl Shared {
    pub(super) fn options(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("into", &*self.into).append("discriminator", &*self.discriminator).append("name", &*self.name);
        doc
    }
}
