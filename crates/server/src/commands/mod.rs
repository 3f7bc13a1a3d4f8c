//! The commands: one file each, one line each in [`ALL`].

use std::sync::LazyLock;

use espalier_query::registry::{Entry, State};
use espalier_value::{Code, Error, Result};

use crate::auth::{Action, Rights};
use crate::call::Call;
use crate::request::Request;

mod abort_transaction;
mod aggregate;
mod asked;
mod authenticate;
mod build_info;
mod coll_mod;
mod coll_stats;
mod commit_transaction;
mod configure_fail_point;
mod conn_pool_stats;
mod connection_status;
mod count;
mod create;
mod create_indexes;
mod create_role;
mod create_user;
mod current_op;
mod data_size;
mod db_stats;
mod delete;
mod distinct;
mod drop;
mod drop_all_roles_from_database;
mod drop_all_users_from_database;
mod drop_database;
mod drop_indexes;
mod drop_role;
mod drop_user;
mod end_sessions;
mod explain;
mod explain_run;
mod explain_stage;
mod features;
mod find;
mod find_and_modify;
mod fsync;
mod fsync_unlock;
mod get_cmd_line_opts;
mod get_default_rw_concern;
mod get_diagnostic_data;
mod get_free_monitoring_status;
mod get_last_error;
mod get_log;
mod get_more;
mod get_parameter;
mod grant_privileges_to_role;
mod grant_roles_to_role;
mod grant_roles_to_user;
mod hello;
mod host_info;
mod insert;
mod invalidate_user_cache;
mod is_master;
mod kill_all_sessions;
mod kill_cursors;
mod kill_op;
mod kill_sessions;
mod list_collections;
mod list_commands;
mod list_databases;
mod list_indexes;
mod list_sessions;
mod logout;
mod ping;
mod plan_cache_clear;
mod plan_cache_list_filters;
mod prelude;
mod profile;
mod re_index;
mod refresh_sessions;
mod rename_collection;
mod repl_set_get_config;
mod repl_set_get_status;
mod revoke_privileges_from_role;
mod revoke_roles_from_role;
mod revoke_roles_from_user;
mod roles_info;
mod run_pattern;
mod sasl_continue;
mod sasl_start;
mod server_stage;
mod server_status;
mod set_parameter;
mod shutdown;
mod start_session;
mod top;
mod unsupported;
mod update;
mod update_role;
mod update_user;
mod users_info;
mod validate;
mod whatsmyuri;

pub(crate) use hello::ELECTION_ID;

/// A command of the MongoDB protocol.
pub struct Command {
    pub name: &'static str,
    /// Older spellings.
    pub aliases: &'static [&'static str],
    /// One sentence.
    pub doc: &'static str,
    /// What a user will have to be allowed to do.
    pub privilege: Privilege,
    pub place: Place,
    /// Takes a `readConcern` other than `local`.
    pub reads: bool,
    /// Takes `writeConcern`.
    pub writes: bool,
    /// May carry a `txnNumber` outside a transaction.
    pub retryable: bool,
    /// In MongoDB's API version 1, and so allowed with `apiStrict`.
    pub stable: bool,
    /// May be sent as OP_QUERY, before the client knows what the server speaks.
    pub before_handshake: bool,
    /// Its reply is never compressed: the client may not know how to read it yet, or it holds secrets.
    pub plain: bool,
    /// Gives `maxTimeMS` a meaning of its own.
    pub own_max_time: bool,
    pub state: State,
    pub run: fn(&Request<'_>, &mut Call<'_>) -> Result<()>,
}

/// What a user must be allowed to do to run a command.
#[derive(Clone, Copy)]
pub enum Privilege {
    /// Nothing was said, which does not compile.
    Undeclared,
    /// Anyone, also before authentication.
    Public,
    /// Anyone who is authenticated.
    Authenticated,
    /// These actions on the collection that the command's argument names.
    Collection(&'static [Action]),
    /// These actions on the database the command is run on.
    Database(&'static [Action]),
    /// These actions on the server as a whole.
    Cluster(&'static [Action]),
    /// It depends on the request. `doc` says how, for the table of privileges.
    Asked { doc: &'static str, may: fn(&Request<'_>, &Rights) -> bool },
}

impl Privilege {
    /// As the table of privileges shows it.
    pub fn describe(&self) -> String {
        let on = |actions: &[Action], what: &str| {
            let names: Vec<&str> = actions.iter().map(|action| action.name()).collect();
            format!("`{}` on {what}", names.join("`, `"))
        };
        match self {
            Privilege::Undeclared => "nobody".into(),
            Privilege::Public => "anyone, also before authentication".into(),
            Privilege::Authenticated => "any user".into(),
            Privilege::Collection(actions) => on(actions, "the collection"),
            Privilege::Database(actions) => on(actions, "the database"),
            Privilege::Cluster(actions) => on(actions, "the cluster"),
            Privilege::Asked { doc, .. } => (*doc).into(),
        }
    }
}

/// Which databases a command may be run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Anywhere,
    Admin,
}

impl Command {
    /// What most commands have in common.
    pub const BASE: Command = Command {
        name: "",
        aliases: &[],
        doc: "",
        privilege: Privilege::Undeclared,
        place: Place::Anywhere,
        reads: false,
        writes: false,
        retryable: false,
        stable: false,
        before_handshake: false,
        plain: false,
        own_max_time: false,
        state: State::Supported,
        run: unsupported,
    };

    /// A command that MongoDB has and Espalier has not.
    pub const fn unsupported(name: &'static str, doc: &'static str) -> Command {
        Command {
            name,
            doc,
            privilege: Privilege::Authenticated,
            state: State::KnownUnsupported,
            writes: true,
            ..Command::BASE
        }
    }
}

fn unsupported(request: &Request<'_>, _: &mut Call<'_>) -> Result<()> {
    let message = format!("the command '{}' is not supported by Espalier yet", request.name);
    Err(Error::new(Code::CommandNotSupported, message))
}

/// The commands that work, sorted by name.
pub static ALL: &[&Command] = &[
    &abort_transaction::COMMAND,
    &aggregate::COMMAND,
    &authenticate::COMMAND,
    &build_info::COMMAND,
    &coll_mod::COMMAND,
    &coll_stats::COMMAND,
    &commit_transaction::COMMAND,
    &configure_fail_point::COMMAND,
    &conn_pool_stats::COMMAND,
    &connection_status::COMMAND,
    &count::COMMAND,
    &create::COMMAND,
    &create_indexes::COMMAND,
    &create_role::COMMAND,
    &create_user::COMMAND,
    &current_op::COMMAND,
    &data_size::COMMAND,
    &db_stats::COMMAND,
    &delete::COMMAND,
    &distinct::COMMAND,
    &drop::COMMAND,
    &drop_all_roles_from_database::COMMAND,
    &drop_all_users_from_database::COMMAND,
    &drop_database::COMMAND,
    &drop_indexes::COMMAND,
    &drop_role::COMMAND,
    &drop_user::COMMAND,
    &end_sessions::COMMAND,
    &explain::COMMAND,
    &features::COMMAND,
    &find::COMMAND,
    &find_and_modify::COMMAND,
    &fsync::COMMAND,
    &fsync_unlock::COMMAND,
    &get_cmd_line_opts::COMMAND,
    &get_default_rw_concern::COMMAND,
    &get_diagnostic_data::COMMAND,
    &get_free_monitoring_status::COMMAND,
    &get_last_error::COMMAND,
    &get_log::COMMAND,
    &get_more::COMMAND,
    &get_parameter::COMMAND,
    &grant_privileges_to_role::COMMAND,
    &grant_roles_to_role::COMMAND,
    &grant_roles_to_user::COMMAND,
    &hello::COMMAND,
    &host_info::COMMAND,
    &insert::COMMAND,
    &invalidate_user_cache::COMMAND,
    &is_master::COMMAND,
    &kill_all_sessions::COMMAND,
    &kill_cursors::COMMAND,
    &kill_op::COMMAND,
    &kill_sessions::COMMAND,
    &list_collections::COMMAND,
    &list_commands::COMMAND,
    &list_databases::COMMAND,
    &list_indexes::COMMAND,
    &logout::COMMAND,
    &ping::COMMAND,
    &plan_cache_clear::COMMAND,
    &plan_cache_list_filters::COMMAND,
    &profile::COMMAND,
    &re_index::COMMAND,
    &refresh_sessions::COMMAND,
    &rename_collection::COMMAND,
    &repl_set_get_config::COMMAND,
    &repl_set_get_status::COMMAND,
    &revoke_privileges_from_role::COMMAND,
    &revoke_roles_from_role::COMMAND,
    &revoke_roles_from_user::COMMAND,
    &roles_info::COMMAND,
    &run_pattern::COMMAND,
    &sasl_continue::COMMAND,
    &sasl_start::COMMAND,
    &server_status::COMMAND,
    &set_parameter::COMMAND,
    &shutdown::COMMAND,
    &start_session::COMMAND,
    &top::COMMAND,
    &update::COMMAND,
    &update_role::COMMAND,
    &update_user::COMMAND,
    &users_info::COMMAND,
    &validate::COMMAND,
    &whatsmyuri::COMMAND,
];

// No command is open by omission: one that does not say what it needs does not compile.
const _: () = {
    let mut at = 0;
    while at < ALL.len() {
        assert!(!matches!(ALL[at].privilege, Privilege::Undeclared), "a command declares no privilege");
        at += 1;
    }
};

/// Every command that MongoDB 6.0 knows: first those that work.
pub fn known() -> impl Iterator<Item = &'static Command> {
    ALL.iter().copied().chain(unsupported::ALL)
}

/// One line for each command, for the compatibility table.
pub fn registry() -> impl Iterator<Item = Entry> {
    known().map(|command| Entry { name: command.name, state: command.state, doc: command.doc })
}

/// Names and aliases, sorted, with the command's place among [`known`].
static NAMES: LazyLock<Vec<(&'static str, usize, &'static Command)>> = LazyLock::new(|| {
    let names = known().enumerate().flat_map(|(index, command)| {
        std::iter::once(command.name).chain(command.aliases.iter().copied()).map(move |name| (name, index, command))
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable_by_key(|(name, ..)| *name);
    names
});

/// A command by name or alias, with its place among [`known`].
pub fn find(name: &str) -> Option<(usize, &'static Command)> {
    let at = NAMES.binary_search_by_key(&name, |(name, ..)| name).ok()?;
    let (_, index, command) = NAMES[at];
    Some((index, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_no_name_stands_for_two_commands() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(unsupported::ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(known().all(|command| !command.doc.is_empty()));
    }

    #[test]
    fn every_name_and_alias_is_found() {
        for (index, command) in known().enumerate() {
            for name in std::iter::once(&command.name).chain(command.aliases) {
                assert_eq!(find(name).map(|(at, found)| (at, found.name)), Some((index, command.name)));
            }
        }
        assert!(find("nonsense").is_none());
    }
}
