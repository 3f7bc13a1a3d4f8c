//! Read concerns. One member: what is committed is the majority's, and every read sees the newest state, so `local`,
//! `available`, `majority` and `linearizable` are the same here. `snapshot` outside a transaction reads at a time that
//! later commands can name again.

use std::cell::Cell;

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use crate::call::Call;
use crate::commands::Command;
use crate::request::Request;
use crate::transactions;

/// Commands that can read at a snapshot outside a transaction.
static AT_SNAPSHOT: &[&str] = &["aggregate", "distinct", "find"];

/// What must hold before the command is run.
pub fn check(command: &Command, request: &Request<'_>, call: &Call<'_>) -> Result<()> {
    let Some(concern) = request.generic.read_concern else { return Ok(()) };
    let invalid = |message: String| Err(Error::new(Code::InvalidOptions, message));
    let level = concern.get_str("level");
    let joined = transactions::is_part(request);
    if let Some(level) = level
        && !joined
        && (level != "local" && !command.reads || level == "snapshot" && !AT_SNAPSHOT.contains(&command.name))
    {
        let message = format!(
            "Command {} does not support {{ readConcern: {{ level: \"{level}\" }} }} :: caused by :: read concern not \
             supported",
            command.name
        );
        return invalid(message);
    }
    let (at, after) = (time(concern, "atClusterTime"), time(concern, "afterClusterTime"));
    if at.is_some() && level != Some("snapshot") {
        return invalid("atClusterTime field can be set only if level is equal to snapshot".into());
    }
    if at.is_some() && after.is_some() {
        return invalid(
            "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See \
             https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency"
                .into(),
        );
    }
    if after.is_some() && matches!(level, Some("linearizable" | "available")) {
        let message = "afterClusterTime field can be set only if level is equal to majority, local, or snapshot";
        return invalid(message.into());
    }
    let now = call.server.clock.time();
    for (name, time) in [("atClusterTime", at), ("afterClusterTime", after)] {
        let Some(time) = time else { continue };
        if time == 0 {
            return invalid(format!("{name} cannot be a null timestamp"));
        }
        // Every read sees the newest state: a time that has been is behind it.
        if time > now {
            let shown = |time: u64| format!("{{ ts: Timestamp({}, {}) }}", time >> 32, time as u32);
            return invalid(format!(
                "readConcern {name} value must not be greater than the current clusterTime. Requested clusterTime: {}; \
                 current clusterTime: {}",
                shown(time),
                shown(now)
            ));
        }
    }
    Ok(())
}

/// The snapshot that a command outside a transaction asks for: named by its time, or to be named.
pub fn snapshot(request: &Request<'_>) -> Option<Cell<Option<u64>>> {
    let concern = request.generic.read_concern?;
    let wanted = concern.get_str("level") == Some("snapshot") && !transactions::is_part(request);
    wanted.then(|| Cell::new(time(concern, "atClusterTime")))
}

/// The time at which a transaction is to read, if its first command says so.
pub fn transaction_time(request: &Request<'_>) -> Option<u64> {
    time(request.generic.read_concern?, "atClusterTime")
}

fn time(concern: RawDoc<'_>, name: &str) -> Option<u64> {
    match concern.get(name) {
        Some(ValueRef::Timestamp(time)) => Some(time),
        _ => None,
    }
}
