//! Reads values written in mongosh's syntax.

use bson::{Bson, Document};

use super::placeholder::placeholder_named;
use crate::error::{Error, Result, err};

/// What names in a text mean while a case runs: earlier replies, sessions, the index of `repeat`.
pub trait Environment {
    /// The reply of the nth command of the case, counted from one.
    fn reply(&self, number: usize) -> Option<Bson>;
    /// The nth session of the case: `{id: UUID}`, fresh for each run.
    fn session(&self, number: usize) -> Option<Bson>;
}

/// No case is running.
struct Nothing;

impl Environment for Nothing {
    fn reply(&self, _: usize) -> Option<Bson> {
        None
    }
    fn session(&self, _: usize) -> Option<Bson> {
        None
    }
}

/// Reads one value that is the whole text.
#[cfg(test)]
pub fn parse(text: &str) -> Result<Bson> {
    let mut parser = Parser::new(text, &Nothing);
    let value = parser.value()?;
    parser.end()?;
    Ok(value)
}

/// A cursor over a text that reads values one after another.
pub struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) environment: &'a dyn Environment,
    /// The index of the innermost `repeat`.
    pub(super) index: Option<i32>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, environment: &'a dyn Environment) -> Self {
        Parser { text, at: 0, environment, index: None }
    }

    /// A parser for a text that refers to nothing outside itself.
    pub fn plain(text: &'a str) -> Self {
        Parser::new(text, &Nothing)
    }

    /// Whether only space and comments are left.
    pub fn is_at_end(&mut self) -> bool {
        self.space();
        self.at == self.text.len()
    }

    /// Fails unless only space and comments are left.
    pub fn end(&mut self) -> Result<()> {
        if self.is_at_end() { Ok(()) } else { Err(self.error("something is left after the value")) }
    }

    /// Reads the next value.
    pub fn value(&mut self) -> Result<Bson> {
        self.space();
        match self.peek() {
            None => Err(self.error("a value is missing")),
            Some('{') => Ok(Bson::Document(self.document()?)),
            Some('[') => self.array(),
            Some('"' | '\'') => {
                let text = self.string()?;
                self.repeated(text)
            }
            Some('/') => self.regex(),
            Some('<') => self.placeholder(),
            Some('+' | '-' | '.' | '0'..='9') => self.number(),
            Some(_) => self.word(),
        }
    }

    fn document(&mut self) -> Result<Document> {
        self.expect('{')?;
        let mut document = Document::new();
        loop {
            self.space();
            if self.take('}') {
                return Ok(document);
            }
            let key = self.key()?;
            self.space();
            self.expect(':')?;
            let value = self.value()?;
            if document.insert(key.clone(), value).is_some() {
                return Err(self.error(&format!("the key {key:?} comes twice")));
            }
            self.space();
            if !self.take(',') {
                self.expect('}')?;
                return Ok(document);
            }
        }
    }

    fn key(&mut self) -> Result<String> {
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.string();
        }
        let key = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '$');
        if key.is_empty() { Err(self.error("a key is missing")) } else { Ok(key.to_owned()) }
    }

    fn array(&mut self) -> Result<Bson> {
        self.expect('[')?;
        let mut items = Vec::new();
        loop {
            self.space();
            if self.take(']') {
                return Ok(Bson::Array(items));
            }
            items.push(self.value()?);
            self.space();
            if !self.take(',') {
                self.expect(']')?;
                return Ok(Bson::Array(items));
            }
        }
    }

    /// A string in either quote, with JSON's escapes and `\x41`, `\'`, `\0`.
    pub(super) fn string(&mut self) -> Result<String> {
        let quote = self.next().ok_or_else(|| self.error("a string is missing"))?;
        let mut text = String::new();
        loop {
            let c = self.next().ok_or_else(|| self.error("the string does not end"))?;
            if c == quote {
                return Ok(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let escaped = self.next().ok_or_else(|| self.error("the string does not end"))?;
            match escaped {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'v' => text.push('\u{b}'),
                '0' => text.push('\0'),
                'x' => text.push(self.escaped_code(2)?),
                'u' => text.push(self.escaped_code(4)?),
                other => text.push(other),
            }
        }
    }

    fn escaped_code(&mut self, digits: usize) -> Result<char> {
        let code = self.hex(digits)?;
        if !(0xD800..0xDC00).contains(&code) {
            return char::from_u32(code).ok_or_else(|| self.error("the escape is not a character"));
        }
        // A surrogate pair, as JSON writes characters beyond the first plane.
        if !(self.take('\\') && self.take('u')) {
            return Err(self.error("half a surrogate pair"));
        }
        let low = self.hex(4)?;
        let code = 0x10000 + ((code - 0xD800) << 10) + (low.wrapping_sub(0xDC00) & 0x3FF);
        char::from_u32(code).ok_or_else(|| self.error("the escape is not a character"))
    }

    fn hex(&mut self, digits: usize) -> Result<u32> {
        let text = self.text.get(self.at..self.at + digits).ok_or_else(|| self.error("the escape is cut off"))?;
        self.at += digits;
        u32::from_str_radix(text, 16).map_err(|_| self.error("the escape is not hexadecimal"))
    }

    /// `"x".repeat(1000)`, for strings too long to write out.
    fn repeated(&mut self, text: String) -> Result<Bson> {
        if !self.text[self.at..].starts_with(".repeat(") {
            return Ok(Bson::String(text));
        }
        self.at += ".repeat(".len();
        let times = self.integer()?;
        self.space();
        self.expect(')')?;
        let times = usize::try_from(times).map_err(|_| self.error("a negative number of times"))?;
        Ok(Bson::String(text.repeat(times)))
    }

    fn regex(&mut self) -> Result<Bson> {
        self.expect('/')?;
        let mut pattern = String::new();
        let mut in_class = false;
        loop {
            match self.next() {
                None | Some('\n') => return Err(self.error("the regular expression does not end")),
                Some('/') if !in_class => break,
                Some('\\') => {
                    let escaped = self.next().ok_or_else(|| self.error("the regular expression does not end"))?;
                    if escaped != '/' {
                        pattern.push('\\');
                    }
                    pattern.push(escaped);
                }
                Some(c) => {
                    in_class = (in_class || c == '[') && c != ']';
                    pattern.push(c);
                }
            }
        }
        let options = self.take_while(|c| c.is_ascii_alphabetic()).to_owned();
        super::constructor::regex(&pattern, &options)
    }

    fn placeholder(&mut self) -> Result<Bson> {
        self.expect('<')?;
        let name = self.take_while(|c| c.is_ascii_lowercase());
        let value = placeholder_named(name).ok_or_else(|| self.error(&format!("there is no placeholder <{name}>")))?;
        self.expect('>')?;
        Ok(value)
    }

    /// Integers are int32 when they fit and else int64; a dot or an exponent makes a double.
    fn number(&mut self) -> Result<Bson> {
        let start = self.at;
        if matches!(self.peek(), Some('+' | '-')) {
            self.at += 1;
        }
        if self.text[self.at..].starts_with("Infinity") {
            self.at += "Infinity".len();
            let negative = self.text[start..].starts_with('-');
            return Ok(Bson::Double(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
        }
        let mut last = ' ';
        self.take_while(|c| {
            let goes_on = c.is_ascii_digit()
                || matches!(c, '.' | 'e' | 'E')
                || (matches!(last, 'e' | 'E') && matches!(c, '+' | '-'));
            last = c;
            goes_on
        });
        let text = &self.text[start..self.at];
        if text.contains(['.', 'e', 'E']) {
            return text.parse().map(Bson::Double).map_err(|_| self.error(&format!("{text} is not a number")));
        }
        let number: i64 = text.parse().map_err(|_| self.error(&format!("{text} is not a 64-bit integer")))?;
        Ok(i32::try_from(number).map_or(Bson::Int64(number), Bson::Int32))
    }

    pub(super) fn integer(&mut self) -> Result<i64> {
        match self.value()? {
            Bson::Int32(number) => Ok(number.into()),
            Bson::Int64(number) => Ok(number),
            _ => Err(self.error("an integer is missing")),
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    pub(super) fn take_while(&mut self, mut goes_on: impl FnMut(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    pub(super) fn expect(&mut self, wanted: char) -> Result<()> {
        if self.take(wanted) { Ok(()) } else { Err(self.error(&format!("`{wanted}` is missing"))) }
    }

    /// Skips space and comments.
    pub(super) fn space(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    pub(super) fn error(&self, what: &str) -> Error {
        let before = &self.text[..self.at.min(self.text.len())];
        let line = before.lines().count().max(1);
        let rest: String = self.text[before.len()..].chars().take(30).collect();
        err!("line {line}: {what}, at `{}`", rest.lines().next().unwrap_or(""))
    }
}
