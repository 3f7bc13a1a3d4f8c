//! The text format of a conformance file: read into cases and written back with everything people wrote kept.

use std::fmt::Write;

use super::case::{Case, Command, Directives};
use crate::error::{Result, err};

/// A conformance file.
#[derive(Debug, Default)]
pub struct TestFile {
    /// The comment lines before the first case.
    pub header: Vec<String>,
    pub cases: Vec<Case>,
}

impl TestFile {
    /// Reads a file; the error names the line.
    pub fn parse(text: &str) -> Result<TestFile> {
        let mut file = TestFile::default();
        let mut section: Option<String> = None;
        for (at, line) in text.lines().enumerate() {
            let wrong = |what: &str| err!("line {}: {what}", at + 1);
            if let Some(title) = line.strip_prefix("## ") {
                let title = title.trim().to_owned();
                if file.cases.iter().any(|case| case.title == title) {
                    return Err(wrong("another case of this file has the same title"));
                }
                file.cases.push(Case { title, line: at + 1, ..Case::default() });
                section = None;
                continue;
            }
            let Some(case) = file.cases.last_mut() else {
                if !line.trim().is_empty() && !line.starts_with('#') {
                    return Err(wrong("before the first case (`## title`) there are only comments (`# …`)"));
                }
                file.header.push(line.to_owned());
                continue;
            };
            if let Some(name) = line.strip_prefix("---") {
                let name = name.trim().to_owned();
                if case.outputs.iter().any(|(known, _)| *known == name) {
                    return Err(wrong("a second output of the same case"));
                }
                case.outputs.push((name.clone(), String::new()));
                section = Some(name);
            } else if section.is_some() {
                if let Some((_, output)) = case.outputs.last_mut() {
                    output.push_str(line);
                    output.push('\n');
                }
            } else {
                parse_input_line(case, line).map_err(|what| wrong(&what.0))?;
            }
        }
        trim(&mut file);
        Ok(file)
    }

    /// The file as text.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for line in &self.header {
            // Writing to a string cannot fail.
            writeln!(text, "{line}").ok();
        }
        for case in &self.cases {
            write!(text, "\n## {}\n", case.title).ok();
            for line in &case.input {
                writeln!(text, "{line}").ok();
            }
            for (name, output) in &case.outputs {
                let rule = if name.is_empty() { "---".to_owned() } else { format!("--- {name}") };
                writeln!(text, "{rule}\n{}", output.trim_end()).ok();
            }
        }
        text
    }
}

fn parse_input_line(case: &mut Case, line: &str) -> Result<()> {
    case.input.push(line.to_owned());
    if let Some(rest) = line.strip_prefix(">> ") {
        case.commands.push(command(rest, true)?);
    } else if let Some(rest) = line.strip_prefix("> ") {
        case.commands.push(command(rest, false)?);
    } else if let Some(comment) = line.strip_prefix('#') {
        case.directives.read(comment.trim())?;
    } else if line.starts_with("  ") {
        let command = case.commands.last_mut().ok_or_else(|| err!("a continued line without a command before it"))?;
        command.text.push('\n');
        command.text.push_str(line);
    } else if !line.trim().is_empty() {
        return Err(err!("neither a command (`> `, `>> `), its continuation (two spaces), a comment (`# `) nor `---`"));
    }
    Ok(())
}

fn command(text: &str, silent: bool) -> Result<Command> {
    let (db, text) = match text.trim_start().strip_prefix('@') {
        Some(rest) => rest.split_once(' ').ok_or_else(|| err!("a command is missing after the database"))?,
        None => ("test", text),
    };
    Ok(Command { db: db.to_owned(), text: text.to_owned(), silent })
}

/// Blank lines between cases belong to nobody: printing puts exactly one.
fn trim(file: &mut TestFile) {
    let trim_lines = |lines: &mut Vec<String>| {
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
    };
    trim_lines(&mut file.header);
    for case in &mut file.cases {
        trim_lines(&mut case.input);
        for (_, output) in &mut case.outputs {
            output.truncate(output.trim_end().len());
        }
    }
}

impl Directives {
    /// Takes a comment that is a directive; any other comment is for readers.
    fn read(&mut self, comment: &str) -> Result<()> {
        let names = |list: &str| list.split(',').map(|name| name.trim().to_owned()).collect();
        match comment.split_once(':') {
            None => match comment {
                "unordered" => self.unordered = true,
                "raw-cursor" => self.raw_cursor = true,
                _ => {}
            },
            Some(("only", list)) => self.only = names(list),
            Some(("ignore", list)) => self.ignore = names(list),
            Some(("reason", reason)) => self.reason = reason.trim().to_owned(),
            Some((word, _)) if !word.contains(' ') && ["Only", "Ignore", "Reason"].contains(&word) => {
                return Err(err!("directives are written in small letters"));
            }
            Some(_) => {}
        }
        Ok(())
    }
}
