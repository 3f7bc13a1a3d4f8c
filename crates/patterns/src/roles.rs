//! What patterns have to do with a collection, read from its options once.

use std::sync::Arc;

use espalier_store::{Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use crate::derive::{Derivation, Patch, has_images, watchers};
use crate::kind::{self, Role};
use crate::layout::Layout;
use crate::write::Turn;

#[derive(Default)]
pub struct Roles {
    pub layout: Option<Arc<dyn Layout>>,
    pub derived: Vec<Arc<dyn Derivation>>,
    /// The collections with derivations that read this one.
    pub watchers: Vec<Box<str>>,
    /// The pattern whose documents the collection holds: the collection it is declared on, and its kind.
    pub owner: Option<(Box<str>, Box<str>)>,
    /// Change streams are to have the document as it was, and with every event as it is then.
    pub pre_images: bool,
    /// A pattern is being folded back: writes leave plain documents.
    pub leaving: bool,
    /// Documents are being brought into the pattern.
    pub entering: bool,
    /// Writes that do not know of the pattern yet may be under way: others wait for their end.
    pub settling: bool,
}

impl Roles {
    /// The roles of a collection; `None` for almost every one.
    pub fn of(at: &dyn Transaction, ns: &Namespace) -> Result<Option<Arc<Roles>>> {
        let Some(layer) = at.layer(ns)? else { return Ok(None) };
        let Some(physical) = layer.answers_for(ns.collection()) else {
            let roles = layer.read(|options| Roles::read(options, ns.collection()))?;
            return Roles::of_part(at, ns, roles).map(Some);
        };
        let roles = layer.read(|options| Roles::read(options, physical))?;
        if roles.entering {
            let message = format!(
                "the documents of {physical}, which {ns} is part of, are being brought into the pattern 'shared'; \
                 currentOp shows how far it is"
            );
            return Err(Error::new(Code::CommandNotSupported, message));
        }
        let layout = roles.layout.as_ref().and_then(|layout| layout.logical(ns.collection()));
        let (pre_images, settling) = (roles.pre_images, roles.settling);
        Ok(Some(Arc::new(Roles { layout, pre_images, settling, ..Roles::default() })))
    }

    /// A collection that is still a part of another waits for what that waits for.
    fn of_part(at: &dyn Transaction, ns: &Namespace, roles: Arc<Roles>) -> Result<Arc<Roles>> {
        let Some(physical) = roles.layout.as_ref().and_then(|layout| layout.physical()) else { return Ok(roles) };
        let Some(layer) = at.layer(&Namespace::new(ns.db(), physical))? else { return Ok(roles) };
        let whole = layer.read(|options| Roles::read(options, physical))?;
        if !whole.settling {
            return Ok(roles);
        }
        let (layout, pre_images) = (roles.layout.clone(), roles.pre_images);
        Ok(Arc::new(Roles { layout, pre_images, settling: true, ..Roles::default() }))
    }

    /// Whether the documents behind a name are kept twice for the time being; see [`Layout::is_doubled`].
    pub fn are_doubled(at: &dyn Transaction, ns: &Namespace) -> Result<bool> {
        let Some(layer) = at.layer(ns)? else { return Ok(false) };
        let whole = layer.answers_for(ns.collection()).unwrap_or(ns.collection());
        // A pattern that cannot be read does nothing, and whoever asks for the stored documents is to have them.
        let Ok(roles) = layer.read(|options| Roles::read(options, whole)) else { return Ok(false) };
        Ok(roles.layout.as_ref().is_some_and(|layout| layout.is_doubled(roles.leaving)))
    }

    fn read(options: RawDoc<'_>, collection: &str) -> Result<Roles> {
        let mut roles = Roles::default();
        if let Some(ValueRef::Array(patterns)) = options.get("patterns") {
            let declarations = Declarations::parse(patterns.iter(), collection)?;
            roles.layout = declarations.layout;
            roles.derived = declarations.derived;
        }
        roles.watchers = watchers(options);
        let images = options.get_doc("changeStreamPreAndPostImages");
        roles.pre_images = images.is_some_and(|images| matches!(images.get("enabled"), Some(ValueRef::Bool(true))));
        roles.pre_images |= has_images(options);
        if let Some(job) = options.get_doc("patternJob") {
            roles.leaving = job.get_str("direction") == Some("out");
            roles.entering = job.get_str("direction") == Some("in");
            roles.settling = matches!(job.get("settling"), Some(ValueRef::Bool(true)));
        }
        if let Some(owner) = options.get_doc("patternOwner") {
            let text = |name| owner.get_str(name).unwrap_or_default().into();
            roles.owner = Some((text("collection"), text("pattern")));
        }
        Ok(roles)
    }

    /// The layout, and whether it is being folded back.
    pub fn layout_to_write(&self) -> Option<(Arc<dyn Layout>, bool)> {
        self.layout.clone().map(|layout| {
            let leaving = self.leaving && !layout.writes_while_leaving();
            (layout, leaving)
        })
    }

    /// Whether nothing follows from what a pattern writes to a document, and it is stored as it is.
    pub fn ends_with(&self, patch: &Patch) -> bool {
        let depends = |one: &Arc<dyn Derivation>| one.depends().iter().any(|name| patch.writes_below(name));
        self.layout.is_none() && self.watchers.is_empty() && !self.derived.iter().any(depends)
    }

    /// Whether writes have more to do than to store documents as they are.
    pub fn is_logical(&self) -> bool {
        self.layout.is_some() || !self.derived.is_empty() || !self.watchers.is_empty()
    }

    /// Whether a write needs the documents before and after it.
    pub fn wants_images(&self) -> bool {
        self.pre_images || !self.derived.is_empty() || !self.watchers.is_empty()
    }

    /// The derivations on other collections that follow a write to this one in its commit, and on which.
    fn following(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<(Namespace, Arc<Roles>)>> {
        let mut all = Vec::with_capacity(self.watchers.len());
        for watcher in &self.watchers {
            let target = Namespace::new(ns.db(), watcher);
            let theirs = Roles::of(at, &target)?;
            all.extend(theirs.map(|theirs| (target, theirs)));
        }
        Ok(all)
    }

    /// Whether one of them looks at a field at the top that is touched.
    pub fn is_read(&self, at: &dyn Transaction, ns: &Namespace, touches: impl Fn(&str) -> bool) -> Result<bool> {
        Ok(self.following(at, ns)?.iter().any(|(_, theirs)| theirs.reading(ns).any(|one| one.reads().any(&touches))))
    }

    /// The documents that they will write to because of a document of this collection, those of them that look at what is
    /// touched, as far as that can be told at a glance.
    pub fn leads_to(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        doc: RawDoc<'_>,
        touches: impl Fn(&str) -> bool,
    ) -> Result<Vec<Turn>> {
        let mut turns = Vec::new();
        for (target, theirs) in self.following(at, ns)? {
            let reading = theirs.reading(ns).filter(|one| one.reads().any(&touches));
            turns.extend(reading.filter_map(|one| one.turn(&target, doc)));
        }
        Ok(turns)
    }

    /// The derivations declared here that follow a write to a collection in its commit.
    fn reading<'r>(&'r self, ns: &'r Namespace) -> impl Iterator<Item = &'r Arc<dyn Derivation>> {
        self.derived.iter().filter(|one| one.within().is_none() && one.source() == ns.collection())
    }

    /// Refuses a client's write to a collection that a pattern keeps.
    pub fn check_writable(&self, ns: &Namespace) -> Result<()> {
        let Some((collection, pattern)) = &self.owner else { return Ok(()) };
        Err(Error::new(
            Code::CommandNotSupported,
            format!(
                "{ns} holds documents of the pattern '{pattern}' on {collection}, which alone writes them; write to \
                 {collection}, or pass rawData: true to write the stored documents"
            ),
        ))
    }
}

/// A list of declarations, checked as a whole.
#[derive(Default)]
pub struct Declarations {
    pub layout: Option<Arc<dyn Layout>>,
    pub derived: Vec<Arc<dyn Derivation>>,
    /// With all defaults filled in, as `listCollections` shows them.
    pub listed: Vec<DocBuf>,
    /// Which of them is the layout's.
    layout_at: Option<usize>,
}

impl Declarations {
    pub fn parse<'a>(list: impl Iterator<Item = ValueRef<'a>>, collection: &str) -> Result<Declarations> {
        let mut all = Declarations::default();
        let (mut first, mut owned) = ("", Vec::<(&'static str, Path)>::new());
        for (position, declaration) in list.enumerate() {
            let (kind, parsed) = kind::parse(position, declaration, collection)?;
            let wrong = |what: String| Err(Error::new(Code::InvalidOptions, format!("patterns.{position}: {what}")));
            match parsed.role {
                Role::Layout(_) if all.layout.is_some() => {
                    return wrong(format!(
                        "'{}' and '{first}' both decide where the documents of {collection} live; declare one of them",
                        kind.name
                    ));
                }
                Role::Layout(layout) => {
                    first = kind.name;
                    all.layout = Some(layout);
                    all.layout_at = Some(position);
                }
                Role::Derivation(derivation) => all.derived.push(derivation),
            }
            for path in parsed.owned.iter().map(|path| Path::new(path)) {
                if let Some((other, _)) =
                    owned.iter().find(|(_, own)| own.is_prefix_of(&path) || path.is_prefix_of(own))
                {
                    return wrong(format!("'{}' and '{other}' would both keep the field '{path}'", kind.name));
                }
                owned.push((kind.name, path));
            }
            let mut listed = DocBuf::new();
            listed.append(kind.name, &parsed.options);
            all.listed.push(listed);
        }
        if let (Some(layout), Some(derivation)) = (&all.layout, all.derived.first())
            && layout.is_alone()
        {
            let message = format!(
                "patterns: '{}' cannot be declared beside '{first}', whose documents are written under many names",
                derivation.kind()
            );
            return Err(Error::new(Code::InvalidOptions, message));
        }
        all.check_links(&owned)?;
        all.derived = in_order(std::mem::take(&mut all.derived));
        Ok(all)
    }

    /// Refuses a link by a field that the layout keeps: it comes and goes without a change that could be followed.
    fn check_links(&self, owned: &[(&'static str, Path)]) -> Result<()> {
        let Some(layout) = self.layout_listed().first().and_then(|listed| listed.as_raw().first()) else {
            return Ok(());
        };
        for (_, kept) in owned.iter().filter(|(kind, _)| *kind == layout.name()) {
            if let Some(one) = self.derived.iter().find(|one| one.depends().contains(&kept.as_str())) {
                let message = format!(
                    "patterns: '{}' cannot be linked by '{kept}', which the pattern '{}' keeps",
                    one.kind(),
                    layout.name()
                );
                return Err(Error::new(Code::InvalidOptions, message));
            }
        }
        Ok(())
    }

    /// Those of a collection's options; none if they cannot be read.
    pub fn read(options: RawDoc<'_>, collection: &str) -> Declarations {
        match options.get("patterns") {
            Some(ValueRef::Array(list)) => Declarations::parse(list.iter(), collection).unwrap_or_default(),
            _ => Declarations::default(),
        }
    }

    /// The layout's declaration, if there is one.
    pub fn layout_listed(&self) -> &[DocBuf] {
        self.layout_at.map_or(&[], |at| &self.listed[at..=at])
    }

    /// The derivations' declarations.
    pub fn derived_listed(&self) -> Vec<DocBuf> {
        let is_layout = |at: usize| Some(at) == self.layout_at;
        self.listed.iter().enumerate().filter(|(at, _)| !is_layout(*at)).map(|(_, listed)| listed.clone()).collect()
    }
}

/// Each behind those that keep what it is linked by: a write goes through them once, in this order. Circles are refused
/// when they are declared.
fn in_order(mut left: Vec<Arc<dyn Derivation>>) -> Vec<Arc<dyn Derivation>> {
    let needs = |one: &Arc<dyn Derivation>, other: &Arc<dyn Derivation>| {
        !Arc::ptr_eq(one, other) && other.owns().iter().any(|path| one.depends().contains(&path.first()))
    };
    let mut out = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready = left.iter().position(|one| !left.iter().any(|other| needs(one, other)));
        out.push(left.remove(ready.unwrap_or(0)));
    }
    out
}
