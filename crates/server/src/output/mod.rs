//! Writing the results of a pipeline into a collection: `$out` and `$merge`.

mod merge;
mod out;

use std::sync::Arc;

use espalier_query::stage::output::{Output, Target};
use espalier_query::{Context, Stream};
use espalier_store::{Begin, CommitToken, Mode, Namespace, Store, Transaction};
use espalier_value::{Code, Error, Result};

use crate::call::Call;
use crate::write_batch::wait_for_writes_allowed;

/// What the command says about the writing.
pub struct Writing<'w> {
    pub context: &'w Arc<Context>,
    pub bypass_validation: bool,
}

/// The target, and an error if the output cannot be written there, before anything is read.
pub fn check(output: &Output, db: &str, context: &Context, transaction: &dyn Transaction) -> Result<Namespace> {
    match output {
        Output::Replace(target) => namespace(target, db),
        Output::Merge(merge) => {
            let ns = namespace(&merge.into, db)?;
            merge::check_unique(merge, &ns, context, transaction)?;
            Ok(ns)
        }
    }
}

/// Writes all of the stream.
pub fn write(
    output: &Output,
    ns: &Namespace,
    stream: &mut dyn Stream,
    writing: &Writing<'_>,
    call: &Call<'_>,
) -> Result<CommitToken> {
    wait_for_writes_allowed(call)?;
    let token = match output {
        Output::Replace(_) => out::write(ns, stream, writing, call)?,
        Output::Merge(merge) => merge::write(merge, ns, stream, writing, call)?,
    };
    call.server.notifier.written(ns);
    Ok(token)
}

fn namespace(target: &Target, db: &str) -> Result<Namespace> {
    Namespace::checked(target.db.as_deref().unwrap_or(db), &target.collection)
}

/// Drops what a `$out` left behind that a crash ended.
pub fn sweep(store: &dyn Store) -> Result<()> {
    let begin = Begin { mode: Mode::Auto, want_changes: false, raw: false, context: Arc::new(Context::default()) };
    let mut transaction = store.begin(begin)?;
    for database in transaction.databases()? {
        for collection in transaction.collections(&database.name)? {
            if collection.name.starts_with(out::TEMPORARY) {
                transaction.drop_collection(&Namespace::new(&database.name, &collection.name))?;
            }
        }
    }
    transaction.commit().map(|_| ())
}

/// MongoDB's words around an error while a pipeline runs.
fn while_running(error: Error) -> Error {
    error.context("PlanExecutor error during aggregation")
}

fn is_a_view(ns: &Namespace) -> Error {
    Error::new(Code::CommandNotSupportedOnView, format!("Namespace {ns} is a view, not a collection"))
}
