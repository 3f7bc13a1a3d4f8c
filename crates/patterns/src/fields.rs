//! Reading the options of a declaration: every field is asked for once, with its type; what nobody asked for is an
//! error, and every error names the path of what is wrong.

use espalier_value::number::Number;
use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

/// The options of one declaration.
pub struct Fields<'a> {
    path: String,
    doc: RawDoc<'a>,
    asked: std::cell::RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    /// `path` is where the declaration stands: `patterns.0.outlier`.
    pub fn new(path: String, doc: RawDoc<'a>) -> Fields<'a> {
        Fields { path, doc, asked: Default::default() }
    }

    fn get(&self, name: &'static str) -> Option<ValueRef<'a>> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&name) {
            asked.push(name);
        }
        self.doc.get(name)
    }

    pub fn error(&self, name: &str, what: impl std::fmt::Display) -> Error {
        Error::new(Code::InvalidOptions, format!("{}.{name}: {what}", self.path))
    }

    /// Where an option stands.
    pub fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    pub fn str(&self, name: &'static str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(ValueRef::String(_)) => Err(self.error(name, "must not be empty")),
            Some(other) => Err(self.error(name, format!("must be a string, not {}", other.ty().name()))),
        }
    }

    pub fn required_str(&self, name: &'static str) -> Result<&'a str> {
        self.str(name)?.ok_or_else(|| self.error(name, "is required"))
    }

    pub fn doc(&self, name: &'static str) -> Result<Option<RawDoc<'a>>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::Document(doc)) => Ok(Some(doc)),
            Some(other) => Err(self.error(name, format!("must be an object, not {}", other.ty().name()))),
        }
    }

    pub fn bool(&self, name: &'static str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(self.error(name, format!("must be true or false, not {}", other.ty().name()))),
        }
    }

    /// The name of a field at the top of a document.
    pub fn field_name(&self, name: &'static str, default: impl FnOnce() -> String) -> Result<Box<str>> {
        let text = self.str(name)?.map_or_else(default, str::to_string);
        match text.as_str() {
            "_id" => Err(self.error(name, "must not be _id")),
            text if text.starts_with('$') => Err(self.error(name, "must not begin with '$'")),
            text if text.contains('.') => Err(self.error(name, "must be a field at the top of the document")),
            text if text.contains('\0') => Err(self.error(name, "must not have a NUL")),
            _ => Ok(text.into()),
        }
    }

    /// A list of paths, none of which lies in another; missing is empty.
    pub fn paths(&self, name: &'static str) -> Result<Vec<espalier_value::Path>> {
        let list = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(ValueRef::Array(list)) => list,
            Some(other) => return Err(self.error(name, format!("must be an array, not {}", other.ty().name()))),
        };
        let mut paths: Vec<espalier_value::Path> = Vec::new();
        for (position, value) in list.iter().enumerate() {
            let at = format!("{name}.{position}");
            let Some(text) = value.as_str() else {
                return Err(self.error(&at, format!("must be a string, not {}", value.ty().name())));
            };
            let path = self.checked_path(&at, text)?;
            if let Some(other) = paths.iter().find(|other| other.is_prefix_of(&path) || path.is_prefix_of(other)) {
                return Err(self.error(&at, format!("'{path}' and '{other}' overlap")));
            }
            paths.push(path);
        }
        Ok(paths)
    }

    /// The path of a field.
    pub fn path(&self, name: &'static str) -> Result<espalier_value::Path> {
        self.checked_path(name, self.required_str(name)?)
    }

    /// A text that must be the path of a field.
    pub fn checked_path(&self, name: &str, text: &str) -> Result<espalier_value::Path> {
        let bad = text.split('.').any(|part| part.is_empty() || part.starts_with('$') || part.contains('\0'));
        if bad || text.split('.').any(|part| part.bytes().all(|b| b.is_ascii_digit())) {
            return Err(self.error(name, format!("'{text}' is not the path of a field")));
        }
        if text.split('.').next() == Some("_id") {
            return Err(self.error(name, "must not be _id"));
        }
        Ok(espalier_value::Path::new(text))
    }

    /// A text that must be able to be the name of a collection.
    pub fn checked_collection(&self, name: &str, text: &str) -> Result<Box<str>> {
        if text.starts_with("system.") || text.starts_with('.') || text.contains('$') || text.contains('\0') {
            return Err(self.error(name, format!("'{text}' cannot be the name of a collection")));
        }
        Ok(text.into())
    }

    /// The name of the collection in which a pattern keeps what it owns.
    pub fn into(&self, default: impl FnOnce() -> String) -> Result<Box<str>> {
        let text = self.str("into")?.map_or_else(default, str::to_string);
        self.checked_collection("into", &text)
    }

    /// Whether the option is given at all.
    pub fn has(&self, name: &str) -> bool {
        self.doc.elem(name).is_some()
    }

    /// A whole number from 1 on.
    pub fn count(&self, name: &'static str, default: u64, most: u64) -> Result<u64> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = Number::of(value).and_then(Number::as_exact_i64);
        match number.and_then(|n| u64::try_from(n).ok()) {
            Some(n) if n >= 1 && n <= most => Ok(n),
            _ => Err(self.error(name, format!("must be a whole number from 1 to {most}, not {value}"))),
        }
    }

    /// One of a few words; the first is the default.
    pub fn choice<T: Copy>(&self, name: &'static str, choices: &[(&'static str, T)]) -> Result<T> {
        let Some(text) = self.str(name)? else { return Ok(choices[0].1) };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let words: Vec<String> = choices.iter().map(|(word, _)| format!("'{word}'")).collect();
                Err(self.error(name, format!("must be {}, not '{text}'", words.join(" or "))))
            }
        }
    }

    /// After all options were asked for: any other is an error.
    pub fn finish(&self) -> Result<()> {
        let asked = self.asked.borrow();
        match self.doc.iter().find(|elem| !asked.contains(&elem.name())) {
            None => Ok(()),
            Some(elem) => Err(self.error(elem.name(), format!("unknown option; known are {}", asked.join(", ")))),
        }
    }
}
