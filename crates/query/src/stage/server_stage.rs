//! Stages about the server itself, which only the server can answer: it does where they stand first in a command.

use super::{Definition, Parse};

const fn known(name: &'static str, doc: &'static str) -> Definition {
    Definition { name, parse: Parse::Server, doc }
}

pub(super) static CHANGE_STREAM: Definition =
    known("$changeStream", "Gives the changes of a collection, a database or everything as they happen.");
pub(super) static COLL_STATS: Definition = known("$collStats", "Gives figures about a collection.");
pub(super) static CURRENT_OP: Definition = known("$currentOp", "Lists the commands that are running.");
pub(super) static INDEX_STATS: Definition = known("$indexStats", "Tells how often each index was used.");
pub(super) static LIST_LOCAL_SESSIONS: Definition =
    known("$listLocalSessions", "Lists the sessions that this server knows.");
pub(super) static LIST_SESSIONS: Definition = known("$listSessions", "Lists the sessions of the cluster.");
