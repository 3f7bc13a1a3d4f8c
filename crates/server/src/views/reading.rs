//! `find`, `count` and `distinct` on a view, as the pipelines that do the same.

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Code, Error, RawArray, RawDoc, Result, ValueRef};

use super::Resolved;

/// What a pipeline has no stage for.
const NOT_IN_PIPELINES: &[&str] =
    &["min", "max", "returnKey", "showRecordId", "singleBatch", "noCursorTimeout", "allowPartialResults", "readOnce"];

/// The view's stages and then these.
pub fn with(view: &Resolved, stages: RawArray<'_>) -> ArrayBuf {
    let mut all = view.stages.clone();
    stages.iter().for_each(|stage| {
        all.push(stage);
    });
    all
}

/// The stages of a `find`.
pub fn find_stages(view: &Resolved, body: RawDoc<'_>) -> Result<ArrayBuf> {
    let given = |name: &str| match body.get(name) {
        None | Some(ValueRef::Bool(false) | ValueRef::Null) => false,
        Some(ValueRef::Document(doc)) => !doc.is_empty(),
        Some(_) => true,
    };
    if let Some(option) = NOT_IN_PIPELINES.iter().find(|name| given(name)) {
        return Err(Error::new(
            Code::InvalidPipelineOperator,
            format!("Option {option} not supported in aggregation."),
        ));
    }
    if given("tailable") {
        let message = "Tailable cursors are not supported in aggregation.";
        return Err(Error::new(Code::InvalidPipelineOperator, message));
    }
    let mut stages = view.stages.clone();
    push_doc(&mut stages, "$match", body.get_doc("filter"));
    push_doc(&mut stages, "$sort", body.get_doc("sort").filter(|sort| sort.get("$natural").is_none()));
    push_number(&mut stages, "$skip", body.get("skip"));
    push_number(&mut stages, "$limit", body.get("limit"));
    push_doc(&mut stages, "$project", body.get_doc("projection"));
    Ok(stages)
}

/// The stages of a `count`.
pub fn count_stages(view: &Resolved, body: RawDoc<'_>) -> ArrayBuf {
    let mut stages = view.stages.clone();
    push_doc(&mut stages, "$match", body.get_doc("query"));
    push_number(&mut stages, "$skip", body.get("skip"));
    push_number(&mut stages, "$limit", body.get("limit"));
    stages.push_doc(|stage| {
        stage.append("$count", "count");
    });
    stages
}

/// The stages of a `distinct`, whose one result has the values in an array.
pub fn distinct_stages(view: &Resolved, body: RawDoc<'_>, key: &str) -> ArrayBuf {
    let mut stages = view.stages.clone();
    push_doc(&mut stages, "$match", body.get_doc("query"));
    // The elements of every array on the way, one level each.
    let ends = key.match_indices('.').map(|(at, _)| at).chain([key.len()]);
    for end in ends {
        stages.push_doc(|stage| {
            stage.append_doc("$unwind", |unwind| {
                unwind.append("path", &format!("${}", &key[..end])).append("preserveNullAndEmptyArrays", true);
            });
        });
    }
    stages.push_doc(|stage| {
        stage.append_doc("$group", |group| {
            group.append("_id", ValueRef::Null).append_doc("distinct", |distinct| {
                distinct.append("$addToSet", &format!("${key}"));
            });
        });
    });
    stages
}

fn push_doc(stages: &mut ArrayBuf, name: &str, argument: Option<RawDoc<'_>>) {
    if let Some(argument) = argument.filter(|argument| !argument.is_empty()) {
        stages.push_doc(|stage| {
            stage.append(name, argument);
        });
    }
}

/// A number that is not zero; a negative limit means the same as a positive one.
fn push_number(stages: &mut ArrayBuf, name: &str, argument: Option<ValueRef<'_>>) {
    let number = argument.and_then(Number::of).map_or(0, Number::to_i64_clamped).saturating_abs();
    if number != 0 {
        stages.push_doc(|stage| {
            stage.append(name, number);
        });
    }
}
