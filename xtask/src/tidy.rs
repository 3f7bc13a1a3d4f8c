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
const EDGES: [(&str, &[&str]); 11] = [
    ("espalier-value", &[]),
    ("espalier-query", &["espalier-value"]),
    ("espalier-store", &["espalier-query", "espalier-value"]),
    ("espalier-store-contract", &["espalier-query", "espalier-store", "espalier-value"]),
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

/// Folders of one-file-each definitions and where their conformance files are.
fn recorded_folders() -> Vec<(PathBuf, PathBuf)> {
    let query = crate::root().join("crates/query/src");
    let plain = [
        ("filter/operator", "query"),
        ("update/operator", "update"),
        ("stage", "stage"),
        ("accumulator", "accumulator"),
        ("window", "window"),
    ];
    let mut folders: Vec<(PathBuf, PathBuf)> = plain.map(|(from, to)| (query.join(from), PathBuf::from(to))).into();
    for entry in fs::read_dir(query.join("expression")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            folders.push((path.clone(), Path::new("expression").join(path.file_name().unwrap())));
        }
    }
    assert!(folders.len() > 10, "the folders of expressions were not found");
    folders.push((crate::root().join("crates/server/src/commands"), PathBuf::from("command")));
    folders
}

/// Modules whose definitions only say that something is not supported, or end the server, or that MongoDB does not have:
/// there is nothing to record.
const NOT_RECORDED: &[&str] = &["function", "javascript", "meta", "run_pattern", "shutdown", "unsupported"];

/// The entries of the sorted list `ALL` in a folder's `mod.rs`, each as module and constant.
fn definitions(list: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = list.split_once("static ALL: &[") else { return Vec::new() };
    let Some((_, rest)) = rest.split_once("= &[") else { return Vec::new() };
    let body = rest.split("];").next().unwrap_or("");
    body.split(',')
        .filter_map(|entry| entry.trim().trim_start_matches('&').split_once("::"))
        .map(|(module, constant)| (module.trim_start_matches("r#").to_owned(), constant.to_owned()))
        .collect()
}

/// The name that a constant stands for: `STR_LEN_CP` is `strLenCp`.
fn camel(constant: &str) -> String {
    let mut name = String::new();
    for (at, word) in constant.to_lowercase().split('_').enumerate() {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(&if at == 0 { first.to_owned() } else { first.to_uppercase() });
        name.push_str(rest);
    }
    name
}

#[test]
fn registries_are_sorted_and_their_files_are_theirs() {
    let mut problems = Vec::new();
    let mut lists = 0;
    for path in sources().into_iter().filter(|path| path.ends_with("mod.rs")) {
        let definitions = definitions(&fs::read_to_string(&path).unwrap());
        if definitions.is_empty() {
            continue;
        }
        lists += 1;
        for pair in definitions.windows(2).filter(|pair| camel(&pair[0].1) > camel(&pair[1].1)) {
            problems.push(format!("{}: {} comes before {}", shown(&path), pair[0].1, pair[1].1));
        }
        let folder = path.parent().unwrap();
        for (module, _) in &definitions {
            if !folder.join(format!("{module}.rs")).exists() && !folder.join(module).is_dir() {
                problems.push(format!("{}: {module} is not a file beside it", shown(&path)));
            }
        }
    }
    assert!(lists >= 5, "only {lists} registries were found");
    fail_on(&problems);
}

#[test]
fn definitions_are_recorded() {
    let mut problems = Vec::new();
    for (folder, conformance) in recorded_folders() {
        let definitions = definitions(&fs::read_to_string(folder.join("mod.rs")).unwrap());
        assert!(!definitions.is_empty(), "{} has no list `ALL`", shown(&folder));
        for (module, _) in definitions.iter().filter(|(module, _)| !NOT_RECORDED.contains(&module.as_str())) {
            let recorded = crate::root().join("conformance").join(&conformance).join(format!("{module}.test"));
            if !recorded.exists() {
                problems.push(format!("{}/{module}.rs: there is no {}", shown(&folder), shown(&recorded)));
            }
        }
    }
    fail_on(&problems);
}

#[test]
fn the_list_of_a_registry_is_read() {
    let list = "static ALL: &[&Definition] = &[\n    &r#match::MATCH,\n    set::SET,\n];\nfn other() {}";
    let expected = [("match", "MATCH"), ("set", "SET")].map(|(module, name)| (module.to_owned(), name.to_owned()));
    assert_eq!(definitions(list), expected);
}
