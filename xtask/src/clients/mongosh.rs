//! mongosh: the statements of pattern guides, typed in; what it prints must be what it prints on MongoDB.

use std::fs::File;
use std::process::Command;

use bson::DateTime;

use super::{Client, folder};
use crate::error::{Context, Result, err};
use crate::fetch;
use crate::outcome::Outcome;
use crate::process::{Mongod, Server, TemporaryFolder, Topology};

pub const MONGOSH: Client = Client { name: "mongosh", run };

fn run(server: &dyn Server) -> Result<Outcome> {
    let needed = fetch::node().and_then(|packages| Ok((packages, fetch::mongod()?)));
    let packages = match needed {
        Ok((packages, _)) => packages,
        Err(error) => return Ok(Outcome::Skipped(error.0)),
    };
    let reference = Mongod::start(Topology::ReplicaSet, TemporaryFolder::in_memory("mongosh")?)?;
    let shell = packages.join("node_modules/mongosh/bin/mongosh.js");
    let print = |server: &dyn Server| -> Result<Vec<String>> {
        let home = TemporaryFolder::in_memory("mongosh-home")?;
        let output = Command::new("node")
            .arg(&shell)
            .args(["--quiet", "--norc"])
            .arg(format!("mongodb://127.0.0.1:{}/seeds?directConnection=true", server.port()))
            .stdin(File::open(folder("mongosh").join("seeds.js"))?)
            // The shell keeps a history and settings at home, which are not ours to write.
            .env("HOME", home.path())
            .output()
            .context("mongosh")?;
        if !output.status.success() {
            return Err(err!("mongosh on {}: {}", server.name(), String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(normalize).collect())
    };
    let (expected, actual) = (print(&reference)?, print(server)?);
    if expected.len() < 100 {
        return Ok(Outcome::Failed(format!("mongosh printed only {} lines on the reference", expected.len())));
    }
    match expected.iter().zip(&actual).position(|(expected, actual)| expected != actual) {
        None if expected.len() == actual.len() => Ok(Outcome::Passed(format!("{} lines", expected.len()))),
        at => {
            let at = at.unwrap_or(expected.len().min(actual.len()));
            let around = |lines: &[String]| {
                let from = at.saturating_sub(5).min(lines.len());
                lines[from..lines.len().min(at + 10)].join("\n    ")
            };
            Ok(Outcome::Failed(format!(
                "mongosh prints otherwise from line {} on\n  mongod:\n    {}\n  {}:\n    {}",
                at + 1,
                around(&expected),
                server.name(),
                around(&actual)
            )))
        }
    }
}

/// Takes out prompts, generated ObjectIds and dates of now.
fn normalize(line: &str) -> String {
    let mut rest = line.split_once("seeds>").map_or(line, |(_, rest)| rest).trim_start();
    while let Some(after) = rest.strip_prefix("...") {
        rest = after.trim_start();
    }
    let indent = if rest.len() == line.trim_start().len() { &line[..line.len() - rest.len()] } else { "" };
    let ids = replace(rest, "ObjectId('", |hex| {
        let id = bson::oid::ObjectId::parse_str(hex).ok()?;
        is_now(id.timestamp()).then(|| "<oid>".to_owned())
    });
    let dates =
        replace(&ids, "ISODate('", |text| is_now(DateTime::parse_rfc3339_str(text).ok()?).then(|| "<now>".to_owned()));
    format!("{indent}{dates}")
}

fn is_now(date: DateTime) -> bool {
    (date.timestamp_millis() - DateTime::now().timestamp_millis()).abs() < 600_000
}

/// Replaces `<start>…')` by what `with` makes of the inside, where it makes something.
fn replace(line: &str, start: &str, with: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(start) {
        result.push_str(before);
        match after.split_once("')") {
            Some((inside, tail)) => {
                result.push_str(&with(inside).unwrap_or_else(|| format!("{start}{inside}')")));
                rest = tail;
            }
            None => {
                result.push_str(start);
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn prompts_and_what_is_new_are_taken_out() {
        assert_eq!(normalize("rs0 [direct: primary] seeds> ... ... {"), "{");
        assert_eq!(
            normalize("    _id: ObjectId('ccc100030000000000000000'),"),
            "    _id: ObjectId('ccc100030000000000000000'),"
        );
        let fresh = format!("  '0': ObjectId('{}')", bson::oid::ObjectId::new());
        assert_eq!(normalize(&fresh), "  '0': <oid>");
    }
}
