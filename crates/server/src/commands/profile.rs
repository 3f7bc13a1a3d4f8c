//! `profile`: which commands on a database are written into its `system.profile`, and what counts as slow.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_value::number::Number;

use super::prelude::*;
use crate::fields;
use crate::observe::{self, PROFILE, Setting};

pub(super) static COMMAND: Command = Command {
    name: "profile",
    doc: "Sets and shows which commands are profiled and which are slow.",
    privilege: Privilege::Asked { doc: "`enableProfiler` on the database; to look, `find` on `system.profile`", may },
    run: profile,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let only_look = Number::of(request.argument).is_some_and(|level| level.to_i64_clamped() < 0)
        && ["slowms", "sampleRate", "filter"].into_iter().all(|option| request.body.get(option).is_none());
    rights.on_database(request.db, Action::EnableProfiler)
        || only_look && rights.on_namespace(request.db, PROFILE, Action::Find)
}

/// What is to become of the filter.
enum Change {
    Keep,
    Unset,
    Set(Arc<Filter>),
}

fn profile(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut slow_ms, mut sample_rate, mut change) = (None, None, Change::Keep);
    for field in request.fields("profile") {
        match field.name() {
            "slowms" => slow_ms = field.long()?,
            "sampleRate" => sample_rate = parse_rate(&field)?,
            "filter" => change = parse_filter(&field)?,
            _ => return Err(field.unknown()),
        }
    }
    let level = match Number::of(request.argument) {
        Some(level) => level.to_i64_clamped(),
        None if request.argument.is_nullish() => return Err(fields::missing("profile", "profile")),
        None => {
            let found = request.argument.ty().name();
            let expected = "[long, int, decimal, double']";
            let message =
                format!("BSON field 'profile.profile' is the wrong type '{found}', expected types '{expected}");
            return Err(Error::type_mismatch(message));
        }
    };
    let profiler = &call.server.profiler;
    let before = profiler.setting(request.db);
    let (slow_before, rate_before) = (profiler.slow_ms(), profiler.sample_rate());
    let mut after = Setting::clone(&before);
    // Any other level is a question.
    if let Ok(level @ 0..=2) = u8::try_from(level) {
        after.level = level;
    }
    let has_filter = !matches!(change, Change::Keep);
    match change {
        Change::Keep => {}
        Change::Unset => after.filter = None,
        Change::Set(filter) => after.filter = Some(filter),
    }
    if after.level > 0 {
        observe::create_profile(call.server, request.db)?;
    }
    profiler.set(request.db, after);
    if let Some(ms) = slow_ms {
        profiler.set_slow_ms(ms);
    }
    if let Some(rate) = sample_rate {
        profiler.set_sample_rate(rate);
    }
    let reply = &mut call.reply;
    reply.append("was", i32::from(before.level));
    match i32::try_from(slow_before) {
        Ok(ms) => reply.append("slowms", ms),
        Err(_) => reply.append("slowms", slow_before),
    };
    reply.append("sampleRate", rate_before);
    if let Some(filter) = &before.filter {
        reply.append("filter", filter.source());
    }
    if has_filter || before.filter.is_some() {
        let note = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query \
                    log lines.";
        reply.append("note", note);
    }
    Ok(())
}

fn parse_rate(field: &fields::Field<'_, '_>) -> Result<Option<f64>> {
    // Reports a value that is no number.
    if field.long()?.is_none() {
        return Ok(None);
    }
    let rate = Number::of(field.value()).map_or(1.0, |rate| rate.to_f64());
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive"));
    }
    Ok(Some(rate))
}

fn parse_filter(field: &fields::Field<'_, '_>) -> Result<Change> {
    match field.value() {
        ValueRef::Document(filter) => Ok(Change::Set(Arc::new(Filter::parse(filter, &Default::default())?))),
        ValueRef::String("unset") => Ok(Change::Unset),
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}
