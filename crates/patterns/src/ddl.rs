//! What declarations mean for commands on whole collections.

use std::sync::Arc;

use espalier_store::{CollectionOptions, Mode, Namespace};
use espalier_value::{Code, Error, RawDoc, Result};

use crate::declare::{self, Direction, Step};
use crate::derive::{self, Derivation, worker};
use crate::roles::Roles;
use crate::txn::PatternedTxn;

impl PatternedTxn {
    pub(crate) fn change_patterns(
        &mut self,
        ns: &Namespace,
        old: RawDoc<'_>,
        options: &CollectionOptions,
    ) -> Result<()> {
        match self.unless_it_came(|txn| declare::change(&mut *txn.below, ns, old, options))? {
            Step::Set(options) => {
                self.below.set_options(ns, &options)?;
                self.plan_runs(ns)
            }
            Step::Migrate(options, direction) => {
                self.below.set_options(ns, &options)?;
                self.renew()?;
                self.shared.below.wait_durable(self.last)?;
                let job = self.shared.jobs.start(&self.shared, ns, direction)?;
                let done = job.wait(&self.begin.context);
                self.renew()?;
                done.and_then(|()| self.plan_runs(ns))
            }
        }
    }

    /// Brings the collections in that become parts of this one: all are marked before the first is moved, and whoever
    /// reads or writes one meanwhile notices nothing.
    pub(crate) fn take_in(&mut self, ns: &Namespace) -> Result<()> {
        let Some(layout) = self.layout(ns)? else { return Ok(()) };
        let mut marked = Vec::new();
        for (part, declaration) in layout.joining(&*self.below, ns)? {
            let Some(info) = self.below.collection(&part)? else { continue };
            if declare::pending(info.options.listed.as_raw()).is_some() {
                marked.push(part);
                continue;
            }
            let mut listed = info.options.listed.clone();
            listed.append_array("patterns", |list| {
                list.push(declaration.as_raw());
            });
            let wanted = declare::with_listed(&info.options, listed);
            let step = declare::change(&mut *self.below, &part, info.options.listed.as_raw(), &wanted)?;
            if let Step::Migrate(options, _) = step {
                self.below.set_options(&part, &options)?;
                marked.push(part);
            }
        }
        if marked.is_empty() {
            return Ok(());
        }
        self.renew()?;
        self.shared.below.wait_durable(self.last)?;
        let jobs: Result<Vec<_>> =
            marked.iter().map(|part| self.shared.jobs.start(&self.shared, part, Direction::In)).collect();
        for job in jobs? {
            job.wait(&self.begin.context)?;
        }
        self.renew()
    }

    /// Tries again with the newest state if a collection is there that was not a moment ago: a client's write may have made
    /// the source that a pattern was about to make.
    pub(crate) fn unless_it_came<T>(&mut self, mut work: impl FnMut(&mut PatternedTxn) -> Result<T>) -> Result<T> {
        for _ in 0..3 {
            match work(self) {
                Err(error) if error.code() == Code::NamespaceExists => self.renew()?,
                done => return done,
            }
        }
        work(self)
    }

    pub(crate) fn derived(&self, ns: &Namespace) -> Result<Vec<Arc<dyn Derivation>>> {
        Ok(Roles::of(&*self.below, ns)?.map(|roles| roles.derived.clone()).unwrap_or_default())
    }

    /// Refuses a rename that a pattern is in the way of.
    pub(crate) fn check_rename(&self, from: &Namespace, to: &Namespace) -> Result<()> {
        self.check_free(from)?;
        self.check_free(to)?;
        self.refuse_part(from, "a rename")?;
        self.refuse_part(to, "a rename")?;
        let refuse = |message: String| Err(Error::new(Code::CommandNotSupported, message));
        if self.below.layer(from)?.is_some_and(|layer| layer.has_names()) {
            return refuse(format!("{from} cannot be renamed: the pattern 'shared' is declared on it by its name"));
        }
        if self.is_watched(to)? {
            return refuse(format!(
                "{to} is the source of a pattern, which a rename onto it would take away; use $merge, or drop the pattern \
                 with collMod first"
            ));
        }
        let (layout, derived) = (self.layout(from)?, self.derived(from)?);
        if from.db() != to.db() && (layout.is_some() || !derived.is_empty()) {
            return refuse(format!("{from} has patterns and cannot move to another database"));
        }
        if from.db() != to.db() && self.is_watched(from)? {
            return refuse(format!("{from} is the source of a pattern and cannot move to another database"));
        }
        if self.layout(to)?.is_some() || !self.derived(to)?.is_empty() {
            return refuse(format!(
                "{to} has patterns, which a rename onto it would take away; drop it first, or use $merge"
            ));
        }
        match self.below.collection(from)? {
            Some(info) if declare::pending(info.options.listed.as_raw()).is_some() => {
                let message = format!("the patterns of {from} are being migrated; rename it when that has ended");
                Err(Error::new(Code(117), message))
            }
            _ => Ok(()),
        }
    }

    /// Renames a collection that patterns have to do with; all who know it by its name follow in the same commit.
    pub(crate) fn rename_known(
        &mut self,
        from: &Namespace,
        to: &Namespace,
        drop_target: bool,
        roles: &Roles,
    ) -> Result<()> {
        // Writes to a collection that it would take the place of may be under way, and know of no pattern.
        let drop_target = drop_target && !self.is_watched(from)?;
        // What was noted of a delay is noted under the names; without that it is computed anew.
        let mut delayed = vec![(from.clone(), to.clone(), roles.derived.clone())];
        for watcher in &roles.watchers {
            let watcher = Namespace::new(from.db(), watcher);
            let mut reading = self.derived(&watcher)?;
            reading.retain(|one| one.source() == from.collection());
            delayed.push((watcher.clone(), watcher, reading));
        }
        delayed.retain(|(_, _, derived)| derived.iter().any(|one| one.within().is_some()));
        let follow = derive::follow_rename(from.collection(), to.collection());
        self.below.rename_with(from, to, drop_target, &*follow)?;
        for (was, is, derived) in delayed {
            derive::delayed::forget(&mut *self.below, &was, &derived, &[])?;
            self.renew()?;
            worker::watch(&self.shared, &is)?;
        }
        self.plan_runs(to)
    }

    /// Whether a derivation reads this collection.
    pub(crate) fn is_watched(&self, ns: &Namespace) -> Result<bool> {
        let Some(roles) = Roles::of(&*self.below, ns)? else { return Ok(false) };
        for watcher in &roles.watchers {
            let derived = self.derived(&Namespace::new(ns.db(), watcher))?;
            if derived.iter().any(|derivation| derivation.source() == ns.collection()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for the end of writes to sources that do not know yet who watches them.
    pub(crate) fn settle_sources(&mut self, ns: &Namespace) -> Result<()> {
        for derivation in self.derived(ns)? {
            let source = Namespace::new(ns.db(), derivation.source());
            self.shared.below.settle(&source, &self.begin.context)?;
        }
        Ok(())
    }

    pub(crate) fn refuse_in_transaction(&self, what: &str) -> Result<()> {
        if self.begin.mode == Mode::Auto {
            return Ok(());
        }
        let message = format!("{what} cannot be run in a multi-document transaction");
        Err(Error::new(Code::OperationNotSupportedInTransaction, message))
    }
}
