//! `espalier tour` as a user runs it: every chapter, on a small shop.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

fn tour(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
    command.arg("tour").args(["--scale", "0.02"]).args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The chapters there are, as the help text names them.
fn chapters() -> Vec<String> {
    let output = tour(&["--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("one chapter alone: ")).unwrap();
    line.1.split(", ").map(str::to_owned).collect()
}

/// Where the text says that the server is, and its folder.
fn place(text: &str) -> (String, String) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let address = words.iter().find_map(|word| word.strip_prefix("mongodb://")).unwrap().trim_end_matches('/');
    let folder = words.iter().find(|word| word.contains("espalier-tour-")).unwrap().trim_end_matches('.');
    (address.to_owned(), folder.to_owned())
}

/// The figures of a line of a table, before and after; `None` if it is no such line.
fn figures(line: &str) -> Option<(f64, f64)> {
    let (rest, _) = ["times less", "times more", "the same"].iter().find_map(|end| line.rsplit_once(end))?;
    // Behind the name come two numbers with a unit each or none, and for a ratio one more.
    let mut numbers = Vec::new();
    for word in rest.get(50..)?.split_whitespace() {
        if let Ok(number) = word.replace(',', "").parse::<f64>() {
            numbers.push(number);
        }
    }
    Some((*numbers.first()?, *numbers.get(1)?))
}

#[test]
fn every_chapter_measures_what_it_shows_and_leaves_nothing_behind() {
    let chapters = chapters();
    assert!(chapters.len() >= 7, "{chapters:?}");
    for chapter in &chapters {
        let output = tour(&["--pattern", chapter]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{chapter}: {errors}\n{text}");
        assert!(errors.is_empty(), "{chapter}: {errors}");
        assert!(text.contains(&format!("{chapter}: {{")), "{chapter} is not declared:\n{text}");
        let rows: Vec<(f64, f64)> = text.lines().filter_map(figures).collect();
        assert!(rows.len() >= 4, "{chapter}: {rows:?}\n{text}");
        assert!(rows.iter().all(|(before, after)| *before > 0.0 && *after > 0.0), "{chapter}: {rows:?}");
        // No colours where there is no terminal.
        assert!(!text.contains('\u{1b}'), "{chapter}");
        let (address, folder) = place(&text);
        assert!(TcpStream::connect(&address).is_err(), "{chapter}: {address} still listens");
        assert!(!Path::new(&folder).exists(), "{chapter}: {folder} is still there");
    }
}

#[test]
fn the_same_seed_makes_the_same_shop() {
    let counts = |seed: &str| {
        let output = tour(&["--pattern", "reference", "--seed", seed]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find(|line| line.contains("This customer, the best there is")).unwrap().to_owned()
    };
    assert_eq!(counts("5"), counts("5"));
    assert_ne!(counts("5"), counts("6"));
}

#[test]
fn a_kept_server_runs_until_it_is_interrupted() {
    let mut child = tour(&["--pattern", "subset", "--keep"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("mongosh \"mongodb://") {
        assert!(out.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let (address, folder) = place(&text);
    assert!(TcpStream::connect(&address).is_ok() && Path::new(&folder).exists());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    out.read_to_string(&mut text).unwrap();
    assert!(TcpStream::connect(&address).is_err() && !Path::new(&folder).exists());
}

#[test]
fn an_interrupted_tour_cleans_up() {
    let mut child = tour(&["--scale", "1"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("db.riders.updateOne") {
        assert!(out.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let (address, folder) = place(&text);
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(TcpStream::connect(&address).is_err() && !Path::new(&folder).exists());
}
