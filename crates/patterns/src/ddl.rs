//! What declarations mean for commands on whole collections.

use std::sync::Arc;

use espalier_store::{CollectionOptions, Mode, Namespace};
use espalier_value::{Code, Error, RawDoc, Result};

use crate::declare::{self, Direction, Step};
use crate::derive::Derivation;
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
