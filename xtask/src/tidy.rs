//! What every file of the project promises, checked by `cargo test`.
//!
//! File sizes, module docs, no leftovers, allowed edges between crates, and that registries, folders and conformance files
//! agree.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Above this a file is named in the test's output.
const LINES_TALK: usize = 400;
/// Above this the test fails.
const LINES_MAX: usize = 800;

/// What each crate may depend on within the project: dependencies point down only.
const EDGES: [(&str, &[&str]); 10] = [
    ("espalier-value", &[]),
    ("espalier-query", &["espalier-value"]),
    ("espalier-store", &["espalier-query", "espalier-value"]),
    ("espalier-kv", &[]),
    ("espalier-engine", &["espalier-kv", "espalier-query", "espalier-store", "espalier-value"]),
    ("espalier-patterns", &["espalier-query", "espalier-store", "espalier-value"]),
    ("espalier-wire", &["espalier-value"]),
    ("espalier-server", &["espalier-patterns", "espalier-query", "espalier-store", "espalier-value", "espalier-wire"]),
    (
        "espalier",
        &[
            "espalier-engine",
            "espalier-kv",
            "espalier-patterns",
            "espalier-query",
            "espalier-server",
            "espalier-store",
            "espalier-value",
            "espalier-wire",
        ],
    ),
    ("xtask", &["espalier-query", "espalier-server", "espalier-patterns"]),
];

/// Words that must not be committed, put together here so that this file does not contain them.
fn leftovers() -> Vec<String> {
    let with_mark = |word: &str| format!("{word}!");
    vec![with_mark("todo"), with_mark("dbg"), with_mark("unimplemented"), format!("#[{}", "ignore")]
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![crate::root().join("crates"), crate::root().join("xtask")];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 20, "the sources were not found");
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(crate::root()).unwrap_or(path).display().to_string()
}

fn fail_on(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn files_are_short() {
    let mut too_long = Vec::new();
    for path in sources() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        if lines > LINES_MAX {
            too_long.push(format!("{}: {lines} lines, more than {LINES_MAX}", shown(&path)));
        } else if lines > LINES_TALK {
            println!("{}: {lines} lines: does it have one subject?", shown(&path));
        }
    }
    fail_on(&too_long);
}

#[test]
fn files_say_what_they_are_for() {
    let silent = |path: &PathBuf| !fs::read_to_string(path).unwrap().starts_with("//! ");
    let problems: Vec<String> = sources().iter().filter(|path| silent(path)).map(|path| shown(path)).collect();
    let problems: Vec<String> = problems.into_iter().map(|path| format!("{path}: does not open with `//! `")).collect();
    fail_on(&problems);
}

#[test]
fn nothing_is_left_for_later() {
    let mut problems = Vec::new();
    for path in sources() {
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for word in leftovers().iter().filter(|word| code.contains(word.as_str())) {
                problems.push(format!("{}:{}: {word}", shown(&path), number + 1));
            }
        }
    }
    fail_on(&problems);
}

/// The project's own packages that a manifest depends on at run time.
fn edges(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" && line.starts_with("espalier") {
            found.push(line.split(['.', ' ', '=']).next().unwrap_or("").to_owned());
        }
    }
    found
}

#[test]
fn crates_depend_downwards() {
    let mut problems = Vec::new();
    let mut manifests = vec![crate::root().join("xtask/Cargo.toml")];
    for entry in fs::read_dir(crate::root().join("crates")).unwrap() {
        manifests.push(entry.unwrap().path().join("Cargo.toml"));
    }
    for path in manifests {
        let text = fs::read_to_string(&path).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"').to_owned();
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
            problems.push(format!("{name} is not in the list of crates and their allowed edges"));
            continue;
        };
        for edge in edges(&text).iter().filter(|edge| !allowed.contains(&edge.as_str())) {
            problems.push(format!("{name} must not depend on {edge}"));
        }
    }
    fail_on(&problems);
}

/// Folders of one-file-each definitions: every file is a module of its folder's `mod.rs`, and has a conformance file.
mod registries {
    use super::{crate_root, fail_on, shown};
    use std::fs;

    /// A folder of definitions and where their conformance files are.
    struct Registry {
        folder: &'static str,
        conformance: &'static str,
        /// Files that are not definitions.
        helpers: &'static [&'static str],
    }

    /// One line for each folder of definitions.
    const REGISTRIES: &[Registry] = &[];

    #[test]
    fn every_definition_is_listed_and_recorded() {
        let mut problems = Vec::new();
        for registry in REGISTRIES {
            let folder = crate_root(registry.folder);
            let list = fs::read_to_string(folder.join("mod.rs")).unwrap();
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                if path.is_dir() || name == "mod" || name == "tests" || registry.helpers.contains(&name.as_str()) {
                    continue;
                }
                if !list.lines().any(|line| line.trim_end_matches(';').ends_with(&format!("mod {name}"))) {
                    problems.push(format!("{}: not a module of its folder", shown(&path)));
                }
                let recorded = crate_root("conformance").join(registry.conformance).join(format!("{name}.test"));
                if !recorded.exists() {
                    problems.push(format!("{}: there is no {}", shown(&path), shown(&recorded)));
                }
            }
        }
        fail_on(&problems);
    }
}

fn crate_root(below: &str) -> PathBuf {
    crate::root().join(below)
}
