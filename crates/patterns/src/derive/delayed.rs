//! Derivations with a declared delay: carried out from the change log, a batch at a time, each with its checkpoint in one
//! commit, so that every change takes effect once whatever is cut off when.
//!
//! A document may be computed anew at some moment (it has just appeared, or a sum could not be taken apart); it then has
//! that moment with it, and changes up to it are no news.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_query::Context;
use espalier_store::{Begin, Change, EventKind, Mode, Namespace, Scope, Transaction, Watch};
use espalier_value::{Code, DocBuf, Error, Result, ValueRef};

use super::Derivation;
use super::gate::place;
use crate::job::begin;
use crate::patterned::Shared;
use crate::roles::Roles;
use crate::stored;
use crate::write::{Write, conflicted};

/// Changes that take effect together.
const BATCH: usize = 1_000;
/// The checkpoint moves on when nothing happens, so that it stays within what the log keeps.
const IDLE: Duration = Duration::from_secs(10);

/// A change and the time of its commit.
pub(crate) struct Happened {
    pub stamp: u64,
    pub change: Change,
}

fn id(ns: &Namespace, source: &str) -> DocBuf {
    let mut id = DocBuf::new();
    id.append("checkpoint", ns.collection()).append("from", source);
    id
}

/// How far the changes of a source have taken effect; `None` while documents are computed anew.
fn checkpoint(at: &dyn Transaction, ns: &Namespace, source: &str) -> Result<Option<u64>> {
    let doc = stored::get(at, &place(ns), ValueRef::Document(id(ns, source).as_raw()))?;
    Ok(doc.and_then(|doc| match (doc.as_raw().get("at"), doc.as_raw().get("filling")) {
        (Some(ValueRef::Timestamp(at)), None) => Some(at),
        _ => None,
    }))
}

fn set_checkpoint(tx: &mut dyn Transaction, ns: &Namespace, source: &str, at: u64, filling: bool) -> Result<()> {
    let mut doc = DocBuf::new();
    doc.append("_id", &id(ns, source)).append("at", ValueRef::Timestamp(at));
    if filling {
        doc.append("filling", true);
    }
    match stored::get(tx, &place(ns), ValueRef::Document(id(ns, source).as_raw()))? {
        Some(_) => stored::replace(tx, &place(ns), doc),
        None => stored::insert(tx, &place(ns), &[doc.as_raw()]),
    }
}

/// Changes count from now on: every document is about to be computed anew (`filling`), or there is none.
pub(crate) fn begin_now(shared: &Shared, ns: &Namespace, filling: bool, context: &Arc<Context>) -> Result<()> {
    let at = begin(shared, Mode::Auto, context)?;
    for source in sources(&*at, ns)? {
        let now = shared.below.time();
        retry(shared, context, |tx, _| set_checkpoint(tx, ns, &source, now, filling))?;
    }
    Ok(())
}

/// Every document has been computed anew since [`begin_now`].
pub(crate) fn filled(shared: &Shared, ns: &Namespace, context: &Arc<Context>) -> Result<()> {
    let at = begin(shared, Mode::Auto, context)?;
    for source in sources(&*at, ns)? {
        retry(shared, context, |tx, _| {
            let doc = stored::get(tx, &place(ns), ValueRef::Document(id(ns, &source).as_raw()))?;
            match doc.as_ref().and_then(|doc| doc.as_raw().get("at")) {
                Some(ValueRef::Timestamp(at)) => set_checkpoint(tx, ns, &source, at, false),
                _ => Ok(()),
            }
        })?;
    }
    Ok(())
}

/// The sources of a collection's delayed derivations.
fn sources(at: &dyn Transaction, ns: &Namespace) -> Result<Vec<Box<str>>> {
    let derived = Roles::of(at, ns)?.map(|roles| roles.derived.clone()).unwrap_or_default();
    let mut sources: Vec<Box<str>> =
        derived.iter().filter(|one| one.within().is_some()).map(|one| one.source().into()).collect();
    sources.sort();
    sources.dedup();
    Ok(sources)
}

/// The shortest delay declared on a collection.
pub(crate) fn within(at: &dyn Transaction, ns: &Namespace) -> Result<Option<Duration>> {
    let roles = Roles::of(at, ns)?;
    Ok(roles.and_then(|roles| roles.derived.iter().filter_map(|one| one.within()).min()))
}

/// Does `work` in a transaction at a known time until it commits without a conflict.
fn retry<T>(
    shared: &Shared,
    context: &Arc<Context>,
    work: impl Fn(&mut dyn Transaction, u64) -> Result<T>,
) -> Result<T> {
    loop {
        context.interrupt.check()?;
        let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: true, context: context.clone() };
        let (mut tx, time) = shared.below.begin_at(begin, None)?;
        tx.set_silent(true);
        match work(&mut *tx, time) {
            Ok(done) => match tx.commit() {
                Ok(_) => return Ok(done),
                Err(error) if conflicted(&error) => std::thread::yield_now(),
                Err(error) => return Err(error),
            },
            Err(error) if conflicted(&error) => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}

/// What came of one look at the log.
pub(crate) enum Caught {
    /// Everything that had happened has taken effect.
    Up,
    /// There is more.
    Behind,
    /// What has happened is no longer known: everything has to be computed anew.
    Lost,
}

/// Lets the next changes of all sources of a collection take effect.
pub(crate) fn catch_up(shared: &Shared, ns: &Namespace, context: &Arc<Context>) -> Result<Caught> {
    let mut caught = Caught::Up;
    let at = begin(shared, Mode::Auto, context)?;
    let sources = sources(&*at, ns)?;
    drop(at);
    for source in sources {
        match batch(shared, ns, &source, context)? {
            Caught::Up => {}
            Caught::Behind => caught = Caught::Behind,
            Caught::Lost => return Ok(Caught::Lost),
        }
    }
    Ok(caught)
}

fn batch(shared: &Shared, ns: &Namespace, source: &str, context: &Arc<Context>) -> Result<Caught> {
    let at = begin(shared, Mode::Auto, context)?;
    let Some(from) = checkpoint(&*at, ns, source)? else { return Ok(Caught::Lost) };
    let (happened, upto, more) = match read(shared, ns, source, from, BATCH, context) {
        Err(error) if error.code() == Code::ChangeStreamHistoryLost => return Ok(Caught::Lost),
        read => read?,
    };
    let idle = Duration::from_secs((upto >> 32).saturating_sub(from >> 32));
    if happened.is_empty() && idle < IDLE {
        return Ok(Caught::Up);
    }
    retry(shared, context, |tx, time| {
        // Somebody may have begun anew, and then these changes are none of ours.
        if checkpoint(tx, ns, source)? != Some(from) {
            return Ok(());
        }
        let roles = Roles::of(tx, ns)?.unwrap_or_default();
        let mut write = Write::new(tx, context.clone());
        for derivation in roles.derived.iter().filter(|one| one.within().is_some() && one.source() == source) {
            derivation.catch_up(&mut write, ns, &happened, time)?;
        }
        set_checkpoint(write.tx, ns, source, upto, false)
    })?;
    Ok(if more { Caught::Behind } else { Caught::Up })
}

/// The changes of a source after a time, about as many as asked for and whole commits only; the time up to which these
/// are all; and whether there are more.
fn read(
    shared: &Shared,
    ns: &Namespace,
    source: &str,
    after: u64,
    most: usize,
    context: &Context,
) -> Result<(Vec<Happened>, u64, bool)> {
    let source = Namespace::new(ns.db(), source);
    let watch = Watch { scope: Scope::Collection(source.clone()), raw: false, after };
    let mut feed = shared.below.changes(watch)?;
    let mut happened: Vec<Happened> = Vec::new();
    // What is read takes time; what happens meanwhile is for the next look.
    let until = Instant::now() + Duration::from_secs(1);
    while let Some(event) = feed.next_event(&context.interrupt, Some(until))? {
        let last = happened.last().map(|last| last.stamp);
        if happened.len() >= most && last.is_some_and(|last| last < event.stamp) {
            return Ok((happened, last.unwrap_or(after), true));
        }
        let (before, after) = match event.what.kind {
            EventKind::Insert => (None, event.what.document),
            EventKind::Update | EventKind::Replace => (event.what.before, event.what.document),
            EventKind::Delete => (event.what.before, None),
            _ => continue,
        };
        let whole = match event.what.kind {
            EventKind::Insert => after.is_some(),
            EventKind::Delete => before.is_some(),
            _ => before.is_some() && after.is_some(),
        };
        if !whole {
            let message = format!("the log does not tell what a document of {source} was before it changed");
            return Err(Error::new(Code::ChangeStreamHistoryLost, message));
        }
        happened.push(Happened { stamp: event.stamp, change: Change { collection: source.clone(), before, after } });
    }
    let upto = feed.stamp().max(after);
    Ok((happened, upto, false))
}

/// The keys of documents that are behind because changes have not taken effect yet; `None` if all may be.
pub(crate) fn dirty(
    shared: &Shared,
    at: &dyn Transaction,
    ns: &Namespace,
    derivation: &dyn Derivation,
    context: &Context,
) -> Result<Option<HashSet<Vec<u8>>>> {
    let mut keys = HashSet::new();
    // The log tells only what would survive a power cut.
    shared.below.wait_durable(Default::default())?;
    let Some(mut from) = checkpoint(at, ns, derivation.source())? else { return Ok(None) };
    loop {
        context.interrupt.check()?;
        let (happened, upto, more) = match read(shared, ns, derivation.source(), from, BATCH, context) {
            Err(error) if error.code() == Code::ChangeStreamHistoryLost => return Ok(None),
            read => read?,
        };
        for one in &happened {
            for doc in [&one.change.before, &one.change.after].into_iter().flatten() {
                keys.extend(derivation.source_key(doc.as_raw()).map(|key| key.bytes));
            }
        }
        if !more {
            return Ok(Some(keys));
        }
        from = upto;
    }
}

/// Forgets how far a collection was whose patterns are gone.
pub(crate) fn forget(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    gone: &[Arc<dyn Derivation>],
    left: &[Arc<dyn Derivation>],
) -> Result<()> {
    let is_left = |source: &str| left.iter().any(|one| one.within().is_some() && one.source() == source);
    for derivation in gone.iter().filter(|one| one.within().is_some() && !is_left(one.source())) {
        stored::remove(tx, &place(ns), ValueRef::Document(id(ns, derivation.source()).as_raw()))?;
    }
    Ok(())
}
