//! What patterns have to do with a collection, read from its options once.

use std::sync::Arc;

use espalier_store::{Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use crate::kind;
use crate::layout::Layout;

#[derive(Default)]
pub struct Roles {
    pub layout: Option<Arc<dyn Layout>>,
    /// Kind and owned fields of each pattern declared.
    pub owned: Vec<(&'static str, Box<str>)>,
    /// The pattern whose documents the collection holds: the collection it is declared on, and its kind.
    pub owner: Option<(Box<str>, Box<str>)>,
    /// Change streams are to have the document as it was.
    pub pre_images: bool,
    /// A pattern is being folded back: writes leave plain documents.
    pub leaving: bool,
    /// Writes that do not know of the pattern yet may be under way: others wait for their end.
    pub settling: bool,
}

impl Roles {
    /// The roles of a collection; `None` for almost every one.
    pub fn of(at: &dyn Transaction, ns: &Namespace) -> Result<Option<Arc<Roles>>> {
        let Some(layer) = at.layer(ns)? else { return Ok(None) };
        let Some(physical) = layer.answers_for(ns.collection()) else {
            return layer.read(|options| Roles::read(options, ns.collection())).map(Some);
        };
        let roles = layer.read(|options| Roles::read(options, physical))?;
        if roles.leaving {
            let message = format!("the pattern 'shared' on {physical}, which {ns} is part of, is being dropped");
            return Err(Error::new(Code::IllegalOperation, message));
        }
        let layout = roles.layout.as_ref().and_then(|layout| layout.logical(ns.collection()));
        let (pre_images, settling) = (roles.pre_images, roles.settling);
        Ok(Some(Arc::new(Roles { layout, pre_images, settling, ..Roles::default() })))
    }

    fn read(options: RawDoc<'_>, collection: &str) -> Result<Roles> {
        let mut roles = Roles::default();
        if let Some(ValueRef::Array(patterns)) = options.get("patterns") {
            let declarations = Declarations::parse(patterns.iter(), collection)?;
            roles.layout = declarations.layout;
            roles.owned = declarations.owned;
        }
        let images = options.get_doc("changeStreamPreAndPostImages");
        roles.pre_images = images.is_some_and(|images| matches!(images.get("enabled"), Some(ValueRef::Bool(true))));
        if let Some(job) = options.get_doc("patternJob") {
            roles.leaving = job.get_str("direction") == Some("out");
            roles.settling = matches!(job.get("settling"), Some(ValueRef::Bool(true)));
        }
        if let Some(owner) = options.get_doc("patternOwner") {
            let text = |name| owner.get_str(name).unwrap_or_default().into();
            roles.owner = Some((text("collection"), text("pattern")));
        }
        Ok(roles)
    }

    /// Refuses a client's write to a collection that a pattern keeps.
    pub fn check_writable(&self, ns: &Namespace) -> Result<()> {
        let Some((collection, pattern)) = &self.owner else { return Ok(()) };
        Err(Error::new(
            Code::IllegalOperation,
            format!(
                "{ns} holds documents of the pattern '{pattern}' on {collection}, which alone writes them; write to \
                 {collection}, or pass rawData: true to write the stored documents"
            ),
        ))
    }
}

/// A list of declarations, checked as a whole.
pub struct Declarations {
    pub layout: Option<Arc<dyn Layout>>,
    pub owned: Vec<(&'static str, Box<str>)>,
    /// With all defaults filled in, as `listCollections` shows them.
    pub listed: Vec<DocBuf>,
}

impl Declarations {
    pub fn parse<'a>(list: impl Iterator<Item = ValueRef<'a>>, collection: &str) -> Result<Declarations> {
        let mut all = Declarations { layout: None, owned: Vec::new(), listed: Vec::new() };
        let mut first = "";
        for (position, declaration) in list.enumerate() {
            let (kind, parsed) = kind::parse(position, declaration, collection)?;
            if all.layout.is_some() {
                let message = format!(
                    "patterns.{position}: '{}' and '{first}' both decide where the documents of {collection} live; \
                     declare one of them",
                    kind.name
                );
                return Err(Error::new(Code::InvalidOptions, message));
            }
            first = kind.name;
            all.layout = Some(parsed.layout);
            all.owned.extend(parsed.owned.into_iter().map(|field| (kind.name, field)));
            let mut listed = DocBuf::new();
            listed.append(kind.name, &parsed.options);
            all.listed.push(listed);
        }
        Ok(all)
    }
}
