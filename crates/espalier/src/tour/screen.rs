//! What the tour looks like: colours and short pauses on a terminal, plain text elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use espalier_value::ValueRef;

const WIDTH: usize = 100;
/// Long enough to see that something new has come.
const PAUSE: Duration = Duration::from_millis(700);

#[derive(Clone, Copy)]
pub enum Colour {
    Bold,
    Dim,
    Green,
    Red,
    Cyan,
}

#[derive(Clone, Copy)]
pub struct Screen {
    colours: bool,
    pauses: bool,
}

impl Screen {
    pub fn new() -> Screen {
        let terminal = std::io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Screen { colours: terminal && !plain, pauses: terminal }
    }

    pub fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => "1",
            Colour::Dim => "2",
            Colour::Green => "32",
            Colour::Red => "31",
            Colour::Cyan => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    pub fn line(&self, text: &str) {
        // Whoever reads may have gone; then nobody misses it.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    pub fn pause(&self) {
        if self.pauses {
            let _ = std::io::stdout().flush();
            std::thread::sleep(PAUSE);
        }
    }

    pub fn heading(&self, text: &str) {
        let rule = "─".repeat(WIDTH.saturating_sub(text.chars().count() + 4));
        self.line("");
        self.line(&self.paint(Colour::Bold, &format!("── {text} {rule}")));
        self.pause();
    }

    /// A paragraph.
    pub fn text(&self, text: &str) {
        self.line("");
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&line);
        self.pause();
    }

    /// Something to type.
    pub fn code(&self, text: &str) {
        for line in text.lines() {
            self.line(&self.paint(Colour::Cyan, &format!("    {line}")));
        }
    }
}

/// A value as it would be typed into mongosh, over several lines if it is long.
pub fn typed(value: ValueRef<'_>, indent: usize) -> String {
    let inline = value.to_string();
    if indent + inline.chars().count() <= WIDTH - 8 {
        return inline;
    }
    let pad = " ".repeat(indent + 2);
    let (open, close, items): (&str, &str, Vec<String>) = match value {
        ValueRef::Document(doc) => {
            let item = |elem: espalier_value::Elem<'_>| format!("{}: {}", elem.name(), typed(elem.value(), indent + 2));
            ("{", "}", doc.iter().map(item).collect())
        }
        ValueRef::Array(list) => ("[", "]", list.iter().map(|value| typed(value, indent + 2)).collect()),
        _ => return inline,
    };
    format!("{open}\n{pad}{}\n{}{close}", items.join(&format!(",\n{pad}")), " ".repeat(indent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use espalier_value::doc;

    #[test]
    fn long_values_are_broken_where_a_person_would() {
        let short = doc! { "a": 1 };
        assert_eq!(typed(ValueRef::Document(short.as_raw()), 0), "{ a: 1 }");
        let text = "x".repeat(60);
        let long = doc! { "a": &text, "b": &doc! { "c": &text } };
        let typed = typed(ValueRef::Document(long.as_raw()), 0);
        assert_eq!(typed, format!("{{\n  a: \"{text}\",\n  b: {{ c: \"{text}\" }}\n}}"));
    }

    #[test]
    fn without_a_terminal_nothing_is_painted() {
        let screen = Screen { colours: false, pauses: false };
        assert_eq!(screen.paint(Colour::Red, "x"), "x");
        assert!(Screen { colours: true, pauses: false }.paint(Colour::Red, "x").contains("\x1b[31m"));
    }
}
