//! mongosh: the statements of pattern guides and an operator's work with users, typed in; what it prints must be what it
//! prints on MongoDB.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use bson::DateTime;

use super::{Client, folder};
use crate::error::{Context, Result, err};
use crate::fetch;
use crate::outcome::Outcome;
use crate::process::{Mongod, Secure, Server, TemporaryFolder, Topology};

pub const MONGOSH: Client = Client { name: "mongosh", run };

/// A shell on a server: what it was given on the command line, and what is typed.
struct Session<'a> {
    name: &'static str,
    shell: &'a Path,
    arguments: Vec<String>,
    script: &'static str,
}

fn run(server: &dyn Server) -> Result<Outcome> {
    let needed = fetch::node().and_then(|packages| Ok((packages, fetch::mongod()?)));
    let packages = match needed {
        Ok((packages, _)) => packages,
        Err(error) => return Ok(Outcome::Skipped(error.0)),
    };
    let reference = Mongod::start(Topology::ReplicaSet, TemporaryFolder::in_memory("mongosh")?)?;
    let shell = packages.join("node_modules/mongosh/bin/mongosh.js");
    let open = |server: &dyn Server| Session {
        name: server.name(),
        shell: &shell,
        arguments: vec![format!("mongodb://127.0.0.1:{}/seeds?directConnection=true", server.port())],
        script: "seeds.js",
    };
    let lines = match compare(&open(&reference), &open(server), 100)? {
        Ok(lines) => lines,
        Err(report) => return Ok(Outcome::Failed(report)),
    };
    let secure = |secure: &Secure| {
        let file = |name: &str| secure.certificates().join(name).display().to_string();
        let mut arguments = vec![secure.uri(), "--tlsCAFile".to_owned(), file("ca.pem")];
        arguments.extend(["--tlsCertificateKeyFile".to_owned(), file("bob.pem")]);
        Session { name: secure.name(), shell: &shell, arguments, script: "secure.js" }
    };
    let (reference, server) = (reference.secure()?, server.secure()?);
    match compare(&secure(&reference), &secure(&server), 50)? {
        Ok(more) => Ok(Outcome::Passed(format!("{} lines", lines + more))),
        Err(report) => Ok(Outcome::Failed(report)),
    }
}

/// How many lines both print, which is at least so many, or where they differ.
fn compare(
    expected: &Session<'_>,
    actual: &Session<'_>,
    lines_min: usize,
) -> Result<std::result::Result<usize, String>> {
    let (reference, name) = (expected, actual.name);
    let (expected, actual) = (expected.print()?, actual.print()?);
    if expected.len() < lines_min {
        let lines = expected.len();
        return Ok(Err(format!("mongosh printed only {lines} lines of {} on the reference", reference.script)));
    }
    match expected.iter().zip(&actual).position(|(expected, actual)| expected != actual) {
        None if expected.len() == actual.len() => Ok(Ok(expected.len())),
        at => {
            let at = at.unwrap_or(expected.len().min(actual.len()));
            let around = |lines: &[String]| {
                let from = at.saturating_sub(5).min(lines.len());
                lines[from..lines.len().min(at + 10)].join("\n    ")
            };
            Ok(Err(format!(
                "mongosh prints otherwise for {} from line {} on\n  {}:\n    {}\n  {name}:\n    {}",
                reference.script,
                at + 1,
                reference.name,
                around(&expected),
                around(&actual)
            )))
        }
    }
}

impl Session<'_> {
    fn print(&self) -> Result<Vec<String>> {
        let home = TemporaryFolder::in_memory("mongosh-home")?;
        let output = Command::new("node")
            .arg(self.shell)
            .args(["--quiet", "--norc"])
            .args(&self.arguments)
            .stdin(File::open(folder("mongosh").join(self.script))?)
            // The shell keeps a history and settings at home, which are not ours to write.
            .env("HOME", home.path())
            .output()
            .context("mongosh")?;
        if !output.status.success() {
            return Err(err!("mongosh on {}: {}", self.name, String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(normalize).collect())
    }
}

/// What stands before `>` in a prompt, which also says what kind of server it is.
const PROMPTS: [&str; 5] = ["seeds>", "test>", "admin>", "shop>", "$external>"];

/// Takes out prompts, generated ObjectIds and dates of now.
fn normalize(line: &str) -> String {
    let prompt = PROMPTS.iter().find_map(|prompt| line.split_once(prompt));
    let mut rest = prompt.map_or(line, |(_, rest)| rest).trim_start();
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
