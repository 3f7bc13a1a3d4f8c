//! Whether two normalised replies are the same answer.

use bson::{Bson, Document};

use super::case::Directives;
use crate::shell::{print, print_wrapped};

/// What a failed command is compared by; the message is for the reader.
const ERROR_FIELDS: [&str; 6] = ["ok", "code", "codeName", "errorLabels", "keyPattern", "keyValue"];
/// What an error of one write of a batch is compared by.
const WRITE_ERROR_FIELDS: [&str; 4] = ["index", "code", "keyPattern", "keyValue"];
/// Arrays of a reply that a case marked as unordered does not order.
const RESULT_ARRAYS: [&str; 3] = ["values", "firstBatch", "nextBatch"];

/// The lines in which the outputs differ, or none if they are the same answers.
pub fn difference(expected: &[Bson], actual: &[Bson], directives: &Directives) -> Option<String> {
    let essence = |outputs: &[Bson]| outputs.iter().map(|output| essence(output, directives)).collect::<Vec<_>>();
    let same = essence(expected).iter().map(print).eq(essence(actual).iter().map(print));
    if same {
        return None;
    }
    let mut report = String::new();
    for at in 0..expected.len().max(actual.len()) {
        let text = |outputs: &[Bson]| outputs.get(at).map(print_wrapped).unwrap_or_default();
        let reduced = |outputs: &[Bson]| outputs.get(at).map(|output| print(&self::essence(output, directives)));
        if reduced(expected) == reduced(actual) {
            continue;
        }
        report.push_str(&format!("  output {}:\n{}", at + 1, lines(&text(expected), &text(actual))));
    }
    Some(report)
}

/// What of an output is compared.
fn essence(output: &Bson, directives: &Directives) -> Bson {
    match output {
        Bson::Array(items) if directives.unordered => Bson::Array(bag(items)),
        Bson::Document(reply) => Bson::Document(reply_essence(reply, directives)),
        other => other.clone(),
    }
}

/// The fields of a reply in no particular order: no client looks at that.
fn reply_essence(reply: &Document, directives: &Directives) -> Document {
    let failed = reply.get("ok").is_some_and(|ok| print(ok) == "0.0" || print(ok) == "0");
    let mut fields: Vec<(String, Bson)> = reply
        .iter()
        .filter(|(name, _)| !failed || ERROR_FIELDS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), field_essence(name, value, directives)))
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.into_iter().collect()
}

fn field_essence(name: &str, value: &Bson, directives: &Directives) -> Bson {
    match (name, value) {
        ("cursor", Bson::Document(cursor)) => Bson::Document(reply_essence(cursor, directives)),
        ("writeErrors", Bson::Array(errors)) => {
            Bson::Array(errors.iter().map(|e| pick(e, &WRITE_ERROR_FIELDS)).collect())
        }
        ("writeConcernError", error) => pick(error, &["code"]),
        ("errorLabels", Bson::Array(labels)) => Bson::Array(bag(labels)),
        (name, Bson::Array(items)) if directives.unordered && RESULT_ARRAYS.contains(&name) => Bson::Array(bag(items)),
        (_, value) => value.clone(),
    }
}

fn pick(value: &Bson, fields: &[&str]) -> Bson {
    match value {
        Bson::Document(document) => {
            let picked = fields.iter().filter_map(|&name| Some((name.to_owned(), document.get(name)?.clone())));
            Bson::Document(picked.collect())
        }
        other => other.clone(),
    }
}

fn bag(items: &[Bson]) -> Vec<Bson> {
    let mut sorted = items.to_vec();
    sorted.sort_by_key(print);
    sorted
}

/// The two texts line by line: `-` is expected and missing, `+` is there and not expected.
fn lines(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    // The longest common subsequence by the textbook's table; outputs have tens of lines, not thousands.
    let mut common = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut report) = (0, 0, String::new());
    while i < old.len() || j < new.len() {
        let (sign, line) = if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
            (' ', old[i - 1])
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', old[i - 1])
        } else {
            j += 1;
            ('+', new[j - 1])
        };
        report.push_str(&format!("    {sign} {line}\n"));
    }
    report
}
