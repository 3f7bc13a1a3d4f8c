//! Declaring patterns: what `create` and `collMod` do with `patterns`.

use std::sync::Arc;

use espalier_store::{CollectionOptions, Layer, Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use crate::bson::without;
use crate::derive::{self, Derivation};
use crate::layout::Layout;
use crate::roles::{Declarations, Roles};

/// Which way a migration goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Documents go into a layout.
    In,
    /// They come out of it.
    Out,
    /// They get what derivations keep in them.
    Fill,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Fill => "fill",
        }
    }
}

/// The migration that a collection's options ask for.
pub fn pending(listed: RawDoc<'_>) -> Option<Direction> {
    match listed.get_doc("patternJob")?.get_str("direction")? {
        "in" => Some(Direction::In),
        "out" => Some(Direction::Out),
        "fill" => Some(Direction::Fill),
        _ => None,
    }
}

/// The declarations in a collection's options; an empty list is none.
pub fn declared(listed: RawDoc<'_>) -> Result<Option<RawArray<'_>>> {
    match listed.get("patterns") {
        None => Ok(None),
        Some(ValueRef::Array(list)) => Ok(Some(list).filter(|list| !list.is_empty())),
        Some(other) => {
            let message = format!("patterns: must be an array, not {}", other.ty().name());
            Err(Error::new(Code::InvalidOptions, message))
        }
    }
}

/// `create` with patterns: everything that the patterns need is made before the collection.
pub fn create(tx: &mut dyn Transaction, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
    let listed = options.listed.as_raw();
    let Some(list) = declared(listed)? else {
        return tx.create(ns, &with_listed(options, without(listed, &["patterns"])));
    };
    let declarations = Declarations::parse(list.iter(), ns.collection())?;
    refuse_kinds(options)?;
    or_take_back(tx, ns, declarations.layout.as_ref(), &declarations.derived, &[], |tx| {
        prepare(tx, ns, &declarations.derived)?;
        if let Some(layout) = &declarations.layout {
            layout.prepare(tx, ns)?;
        }
        tx.create(ns, &with_listed(options, relist(listed, &declarations.listed, None, None)))
    })?;
    if let Some(layout) = &declarations.layout {
        layout.after_create(tx, ns)?;
    }
    // Now that it is there, its own indexes can be made.
    prepare_indexes(tx, ns, &declarations.derived)
}

/// Does what comes before patterns are declared. What was made for them goes again if they cannot be; a source stays.
fn or_take_back(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    layout: Option<&Arc<dyn Layout>>,
    new: &[Arc<dyn Derivation>],
    left: &[Arc<dyn Derivation>],
    work: impl FnOnce(&mut dyn Transaction) -> Result<()>,
) -> Result<()> {
    let mut made = layout.map(|layout| layout.beside(ns)).unwrap_or_default();
    for at in (0..made.len()).rev() {
        if tx.collection(&made[at])?.is_some() {
            made.remove(at);
        }
    }
    let Err(error) = work(tx) else { return Ok(()) };
    for beside in &made {
        tx.drop_collection(beside)?;
    }
    derive::unregister(tx, ns, new, left)?;
    Err(error)
}

/// What derivations need before they are declared.
fn prepare(tx: &mut dyn Transaction, ns: &Namespace, derived: &[Arc<dyn Derivation>]) -> Result<()> {
    derive::check_cycles(tx, ns, derived)?;
    derive::register(tx, ns, derived)?;
    prepare_indexes(tx, ns, derived)
}

/// Makes the indexes that derivations need, the widest first: it may do for the others too.
fn prepare_indexes(tx: &mut dyn Transaction, ns: &Namespace, derived: &[Arc<dyn Derivation>]) -> Result<()> {
    let mut derived = derived.to_vec();
    derived.sort_by_key(|derivation| std::cmp::Reverse(derivation.index_width()));
    derived.iter().try_for_each(|derivation| derivation.prepare(tx, ns))
}

/// What a change of options asks for.
pub enum Step {
    /// Only the options change.
    Set(CollectionOptions),
    /// A migration begins with these options.
    Migrate(CollectionOptions, Direction),
}

/// `collMod`: what to do to get from the patterns there are to those that are asked for.
pub fn change(tx: &mut dyn Transaction, ns: &Namespace, old: RawDoc<'_>, options: &CollectionOptions) -> Result<Step> {
    if pending(old).is_some() {
        return Err(Error::new(
            Code(117),
            format!("the patterns of {ns} are being migrated; currentOp shows how far it is"),
        ));
    }
    let listed = options.listed.as_raw();
    let parse = |list: Option<RawArray<'_>>| match list {
        Some(list) => Declarations::parse(list.iter(), ns.collection()),
        None => Ok(Declarations::default()),
    };
    let (now, new) = (parse(declared(old)?)?, parse(declared(listed)?)?);
    if !new.listed.is_empty() && now.listed.is_empty() {
        refuse_kinds(options)?;
    }
    let same_layout = same_layout(now.layout_listed(), new.layout_listed());
    if !same_layout {
        check_beside(tx, ns, &now, &new)?;
    }
    if now.derived_listed() != new.derived_listed() {
        or_take_back(tx, ns, None, &new.derived, &now.derived, |tx| prepare(tx, ns, &new.derived))?;
        // The layout there is stays for the time being.
        let mut list = if same_layout { new.layout_listed().to_vec() } else { now.layout_listed().to_vec() };
        list.extend(new.derived_listed());
        let next = (!same_layout).then_some(&new.listed[..]);
        let listed = with_before(&relist(listed, &list, Some(Direction::Fill), next), &self::list(&now.listed));
        return Ok(Step::Migrate(with_listed(options, listed), Direction::Fill));
    }
    if same_layout {
        return Ok(Step::Set(with_listed(options, relist(listed, &new.listed, None, None))));
    }
    if now.layout.is_none() {
        if let Some(layout) = &new.layout {
            or_take_back(tx, ns, Some(layout), &[], &[], |tx| layout.prepare(tx, ns))?;
        }
        let listed = relist(listed, &new.listed, Some(Direction::In), None);
        return Ok(Step::Migrate(with_listed(options, listed), Direction::In));
    }
    if let Some(layout) = &now.layout {
        layout.check_leaving(tx, ns)?;
    }
    let next = (!new.listed.is_empty()).then_some(&new.listed[..]);
    let listed = relist(listed, &now.listed, Some(Direction::Out), next);
    Ok(Step::Migrate(with_listed(options, listed), Direction::Out))
}

/// Refuses a layout whose names are taken before anything is done: it may be the last of several steps.
fn check_beside(tx: &dyn Transaction, ns: &Namespace, now: &Declarations, new: &Declarations) -> Result<()> {
    let beside = |of: &Declarations| of.layout.as_ref().map(|layout| layout.beside(ns)).unwrap_or_default();
    let leaving = beside(now);
    let Some(kind) = new.layout_listed().first().and_then(|listed| listed.as_raw().first()) else { return Ok(()) };
    let mut coming = beside(new).into_iter().filter(|beside| !leaving.contains(beside));
    coming.try_for_each(|beside| owned_by(tx, &beside, ns, kind.name()).map(drop))
}

/// After a migration has ended: the options without it, and the declarations that are to come next.
pub fn after(
    options: &CollectionOptions,
    collection: &str,
    direction: Direction,
) -> (CollectionOptions, Option<ArrayBuf>) {
    let listed = options.listed.as_raw();
    let next = match listed.get_doc("patternJob").and_then(|job| job.get("next")) {
        Some(ValueRef::Array(next)) => Some(ArrayBuf::from_raw(next)),
        _ => None,
    };
    let mut out = without(listed, &["patternJob"]);
    if direction == Direction::Out {
        // The layout goes; what is derived stays.
        let left = match declared(listed) {
            Ok(Some(list)) => Declarations::parse(list.iter(), collection).map(|all| all.derived_listed()),
            _ => Ok(Vec::new()),
        };
        out = relist(out.as_raw(), &left.unwrap_or_default(), None, None);
    }
    (with_listed(options, out), next)
}

/// The options of a collection whose documents go back to where they came from.
pub fn turned_back(options: &CollectionOptions, back: Direction) -> CollectionOptions {
    let before = before(options);
    let mut listed = without(options.listed.as_raw(), &["patternJob"]);
    listed.append_doc("patternJob", |job| {
        job.append("direction", back.name());
        // Steps that were done before this one are taken back, too.
        if let Some(before) = &before {
            job.append("next", before);
        }
    });
    with_listed(options, listed)
}

/// The declarations to go back to if a migration of several steps fails.
pub fn before(options: &CollectionOptions) -> Option<ArrayBuf> {
    match options.listed.as_raw().get_doc("patternJob").and_then(|job| job.get("before")) {
        Some(ValueRef::Array(before)) => Some(ArrayBuf::from_raw(before)),
        _ => None,
    }
}

/// The options of a further step, with what to go back to.
pub fn carrying(options: &CollectionOptions, before: &ArrayBuf) -> CollectionOptions {
    with_listed(options, with_before(&options.listed, before))
}

/// The options with the patterns that were there before some that cannot be carried out, or are not to be; with whether
/// documents have to be brought in line with them again. `None` if that is what is under way.
pub fn taken_back(options: &CollectionOptions, collection: &str) -> Result<Option<(CollectionOptions, bool)>> {
    let listed = options.listed.as_raw();
    let Some(ValueRef::Array(before)) = listed.get_doc("patternJob").and_then(|job| job.get("before")) else {
        return Ok(None);
    };
    let declarations = Declarations::parse(before.iter(), collection)?;
    let refill = !declarations.derived.is_empty();
    let listed = relist(listed, &declarations.listed, refill.then_some(Direction::Fill), None);
    Ok(Some((with_listed(options, listed), refill)))
}

/// The options after all writes that did not know of the pattern have ended.
pub fn settled(options: &CollectionOptions) -> CollectionOptions {
    let listed = options.listed.as_raw();
    let mut out = without(listed, &["patternJob"]);
    if let Some(job) = listed.get_doc("patternJob") {
        out.append("patternJob", &without(job, &["settling"]));
    }
    with_listed(options, out)
}

/// The options while writers are held off.
pub fn settling(options: &CollectionOptions) -> CollectionOptions {
    let listed = options.listed.as_raw();
    let mut out = without(listed, &["patternJob"]);
    let mut job = DocBuf::from_raw(listed.get_doc("patternJob").unwrap_or(RawDoc::EMPTY));
    job.append("settling", true);
    out.append("patternJob", &job);
    with_listed(options, out)
}

/// As [`after`] a way out, with the declarations that are to come next still to come.
pub fn parted(options: &CollectionOptions, collection: &str) -> CollectionOptions {
    let (after, next) = after(options, collection, Direction::Out);
    let Some(next) = next else { return after };
    let mut listed = after.listed.clone();
    listed.append_doc("patternJob", |job| {
        job.append("direction", Direction::Out.name()).append("next", &next);
    });
    with_listed(&after, listed)
}

/// Options that say nothing about what is stored already.
fn soft(kind: &str) -> &'static [&'static str] {
    match kind {
        "approximate" => &["flush", "stamp", "read", "durable"],
        "archive" => &["when", "every", "batch", "read", "write"],
        _ => &["read"],
    }
}

/// Options that differ only in how documents are read need no migration.
fn same_layout(now: &[DocBuf], new: &[DocBuf]) -> bool {
    let stored = |list: &[DocBuf]| -> Vec<DocBuf> {
        let strip = |doc: &DocBuf| {
            let mut out = DocBuf::new();
            for elem in doc.as_raw() {
                match elem.value() {
                    ValueRef::Document(options) => out.append(elem.name(), &without(options, soft(elem.name()))),
                    _ => out.append_elem(elem),
                };
            }
            out
        };
        list.iter().map(strip).collect()
    };
    stored(now) == stored(new)
}

fn refuse_kinds(options: &CollectionOptions) -> Result<()> {
    let what = if options.capped.is_some() {
        "a capped collection"
    } else if options.view.is_some() {
        "a view"
    } else if options.listed.as_raw().elem("collation").is_some() {
        "a collection with a default collation"
    } else {
        return Ok(());
    };
    Err(Error::new(Code::InvalidOptions, format!("patterns: {what} cannot have patterns")))
}

/// The options with these declarations, and the migration that is under way.
fn relist(listed: RawDoc<'_>, patterns: &[DocBuf], direction: Option<Direction>, next: Option<&[DocBuf]>) -> DocBuf {
    let mut out = without(listed, &["patterns", "patternJob"]);
    if !patterns.is_empty() {
        out.append("patterns", &list(patterns));
    }
    if let Some(direction) = direction {
        out.append_doc("patternJob", |job| {
            job.append("direction", direction.name());
            if direction == Direction::In {
                job.append("settling", true);
            }
            if let Some(next) = next {
                job.append("next", &list(next));
            }
        });
    }
    out
}

/// With the declarations to go back to if the migration fails.
fn with_before(listed: &DocBuf, before: &ArrayBuf) -> DocBuf {
    let mut job = DocBuf::from_raw(listed.as_raw().get_doc("patternJob").unwrap_or(RawDoc::EMPTY));
    job.append("before", before);
    let mut out = without(listed.as_raw(), &["patternJob"]);
    out.append("patternJob", &job);
    out
}

fn list(docs: &[DocBuf]) -> ArrayBuf {
    docs.iter().map(|doc| ValueRef::Document(doc.as_raw())).collect()
}

pub fn with_listed(options: &CollectionOptions, listed: DocBuf) -> CollectionOptions {
    CollectionOptions { layer: Layer::of(listed.as_raw()), listed, ..options.clone() }
}

/// The options of a collection that holds documents of a pattern; an error if something else has that name.
pub fn owned_by(tx: &dyn Transaction, ns: &Namespace, of: &Namespace, pattern: &str) -> Result<CollectionOptions> {
    let mut listed = DocBuf::new();
    listed.append_doc("patternOwner", |owner| {
        owner.append("collection", of.collection()).append("pattern", pattern);
    });
    let options = with_listed(&CollectionOptions::default(), listed);
    let Some(there) = tx.collection(ns)? else { return Ok(options) };
    let owner = Roles::of(tx, ns)?.and_then(|roles| roles.owner.clone());
    if owner.is_some_and(|(collection, kind)| *collection == *of.collection() && *kind == *pattern) {
        return Ok(there.options);
    }
    Err(Error::new(
        Code::NamespaceExists,
        format!("patterns: {pattern}.into: the collection {ns} exists already; choose another name, or drop it first"),
    ))
}
