//! One case of a conformance file.

use bson::Bson;

use crate::error::{Context, Result, err};
use crate::shell::Parser;

/// Commands that run on fresh databases, and what came back.
#[derive(Debug, Default)]
pub struct Case {
    pub title: String,
    /// Where the title is in the file.
    pub line: usize,
    /// The lines between the title and the first `---`, as written.
    pub input: Vec<String>,
    pub commands: Vec<Command>,
    pub directives: Directives,
    /// The text after `---`; in a file of differences one each after `--- mongodb` and `--- espalier`.
    pub outputs: Vec<(String, String)>,
}

/// A command of a case.
#[derive(Debug)]
pub struct Command {
    pub db: String,
    pub text: String,
    /// A set-up command: it must succeed, and its reply is not recorded.
    pub silent: bool,
}

/// What the comment lines of a case ask for.
#[derive(Clone, Debug, Default)]
pub struct Directives {
    /// The results are a bag.
    pub unordered: bool,
    /// Show the first batch and the cursor as they are, instead of all documents.
    pub raw_cursor: bool,
    /// Compare and record only these top-level fields of replies.
    pub only: Vec<String>,
    /// Leave out these fields, at any depth.
    pub ignore: Vec<String>,
    /// Why Espalier differs, in a file of differences.
    pub reason: String,
}

impl Case {
    /// The values of an output section.
    pub fn output(&self, name: &str) -> Result<Vec<Bson>> {
        let (_, text) = self
            .outputs
            .iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| err!("nothing is recorded; run `cargo xtask record`"))?;
        let mut parser = Parser::plain(text);
        let mut values = Vec::new();
        while !parser.is_at_end() {
            values.push(parser.value().context("in the recorded output")?);
        }
        Ok(values)
    }

    /// Puts a section's text in place.
    pub fn set_output(&mut self, name: &str, text: String) {
        match self.outputs.iter_mut().find(|(known, _)| known == name) {
            Some((_, output)) => *output = text,
            None => self.outputs.push((name.to_owned(), text)),
        }
    }

    /// The commands whose replies are recorded.
    pub fn recorded_commands(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| !command.silent)
    }
}
