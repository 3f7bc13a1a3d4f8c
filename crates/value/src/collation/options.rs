//! The options of a collation: read, checked, completed.

use super::locale;
use crate::doc::DocBuf;
use crate::error::{Code, Error, Result};
use crate::number::Number;
use crate::raw::{Elem, RawDoc, ValueRef};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub locale: String,
    pub case_level: bool,
    pub case_first: CaseFirst,
    /// 1 to 5.
    pub strength: i32,
    pub numeric_ordering: bool,
    /// Spaces and punctuation do not count on the first three levels.
    pub shifted: bool,
    /// Of what can be shifted, only spaces are.
    pub max_variable_space: bool,
    /// Kept to be listed: text is always compared as if it were normalized.
    pub normalization: bool,
    /// Accents count from the end of a string.
    pub backwards: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseFirst {
    Upper,
    Lower,
    Off,
}

impl Options {
    /// The options and the tag under which the rules are found; `None` for the simple collation.
    pub fn parse(doc: RawDoc<'_>, parent: &str) -> Result<Option<(Options, String)>> {
        let reader = Reader { parent };
        let mut locale = None;
        let mut version = None;
        let (mut backwards, mut case_first, mut shifted) = (None, None, None);
        let mut options = Options {
            locale: String::new(),
            case_level: false,
            case_first: CaseFirst::Off,
            strength: 3,
            numeric_ordering: false,
            shifted: false,
            max_variable_space: false,
            normalization: false,
            backwards: false,
        };
        for (at, elem) in doc.iter().enumerate() {
            if doc.iter().take(at).any(|earlier| earlier.name_bytes() == elem.name_bytes()) {
                let message = format!("BSON field '{}' is a duplicate field", reader.path(elem.name()));
                return Err(Error::new(Code(40413), message));
            }
            if elem.value().is_nullish() && KNOWN.contains(&elem.name()) {
                continue;
            }
            match elem.name() {
                "locale" => locale = Some(reader.text(elem)?),
                "caseLevel" => options.case_level = reader.flag(elem)?,
                "caseFirst" => {
                    case_first = Some(match reader.text(elem)? {
                        "upper" => CaseFirst::Upper,
                        "lower" => CaseFirst::Lower,
                        "off" => CaseFirst::Off,
                        other => return Err(reader.not_among(elem, other)),
                    });
                }
                "strength" => options.strength = reader.strength(elem)?,
                "numericOrdering" => options.numeric_ordering = reader.flag(elem)?,
                "alternate" => {
                    shifted = Some(match reader.text(elem)? {
                        "shifted" => true,
                        "non-ignorable" => false,
                        other => return Err(reader.not_among(elem, other)),
                    });
                }
                "maxVariable" => {
                    options.max_variable_space = match reader.text(elem)? {
                        "space" => true,
                        "punct" => false,
                        other => return Err(reader.not_among(elem, other)),
                    }
                }
                "normalization" => options.normalization = reader.flag(elem)?,
                "backwards" => backwards = Some(reader.flag(elem)?),
                "version" => version = Some(reader.text(elem)?),
                name => {
                    let message = format!("BSON field '{}' is an unknown field.", reader.path(name));
                    return Err(Error::new(Code(40415), message));
                }
            }
        }
        let Some(locale) = locale else {
            let message = format!("BSON field '{}' is missing but a required field", reader.path("locale"));
            return Err(Error::new(Code(40414), message));
        };
        if locale == "simple" {
            return Ok(None);
        }
        // What is not said is as the language has it.
        let habits = locale::habits(locale);
        options.backwards = backwards.unwrap_or(habits.backwards);
        options.shifted = shifted.unwrap_or(habits.shifted);
        let upper_first = if habits.upper_first { CaseFirst::Upper } else { CaseFirst::Off };
        options.case_first = case_first.unwrap_or(upper_first);
        options.complete(locale, version, case_first.is_some(), doc).map(|tag| Some((options, tag)))
    }

    /// What depends on several options at once.
    fn complete(
        &mut self,
        locale: &str,
        version: Option<&str>,
        asks_case_first: bool,
        doc: RawDoc<'_>,
    ) -> Result<String> {
        if locale.is_empty() {
            return Err(Error::bad_value(format!("Field 'locale' cannot be the empty string in: {doc}")));
        }
        if locale.contains('\0') {
            return Err(Error::bad_value(format!("Field 'locale' cannot contain null byte. Collation spec: {doc}")));
        }
        let tag = locale::tag(locale, &doc)?;
        self.locale = locale.to_string();
        if let Some(version) = version.filter(|version| *version != super::VERSION) {
            return Err(Error::new(
                Code::IncompatibleCollationVersion,
                format!(
                    "Requested collation version {version} but the only available collator version was {}. Requested \
                     collation spec: {doc}",
                    super::VERSION
                ),
            ));
        }
        if self.backwards && self.strength == 1 {
            return Err(Error::bad_value(format!("'backwards' is invalid with 'strength' of 1 in: {doc}")));
        }
        if asks_case_first && self.case_first != CaseFirst::Off && !self.case_level && self.strength < 3 {
            return Err(Error::bad_value(format!(
                "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: {doc}"
            )));
        }
        Ok(tag)
    }

    /// In MongoDB's order.
    pub fn listed(&self) -> DocBuf {
        let mut out = DocBuf::new();
        out.append("locale", &self.locale)
            .append("caseLevel", self.case_level)
            .append(
                "caseFirst",
                match self.case_first {
                    CaseFirst::Upper => "upper",
                    CaseFirst::Lower => "lower",
                    CaseFirst::Off => "off",
                },
            )
            .append("strength", self.strength)
            .append("numericOrdering", self.numeric_ordering)
            .append("alternate", if self.shifted { "shifted" } else { "non-ignorable" })
            .append("maxVariable", if self.max_variable_space { "space" } else { "punct" })
            .append("normalization", self.normalization)
            .append("backwards", self.backwards);
        out
    }
}

const KNOWN: &[&str] = &[
    "locale",
    "caseLevel",
    "caseFirst",
    "strength",
    "numericOrdering",
    "alternate",
    "maxVariable",
    "normalization",
    "backwards",
    "version",
];

/// Typed fields, with MongoDB's words for what is wrong with them.
struct Reader<'p> {
    parent: &'p str,
}

impl Reader<'_> {
    fn path(&self, name: &str) -> String {
        match self.parent {
            "" => format!("collation.{name}"),
            parent => format!("{parent}.collation.{name}"),
        }
    }

    fn wrong_type(&self, elem: Elem<'_>, expected: &str) -> Error {
        Error::type_mismatch(format!(
            "BSON field '{}' is the wrong type '{}', expected {expected}",
            self.path(elem.name()),
            elem.value().ty().name()
        ))
    }

    fn not_among(&self, elem: Elem<'_>, value: &str) -> Error {
        let path = self.path(elem.name());
        Error::bad_value(format!("Enumeration value '{value}' for field '{path}' is not a valid value."))
    }

    fn text<'a>(&self, elem: Elem<'a>) -> Result<&'a str> {
        match elem.value() {
            ValueRef::String(text) => Ok(text),
            _ => Err(self.wrong_type(elem, "type 'string'")),
        }
    }

    fn flag(&self, elem: Elem<'_>) -> Result<bool> {
        match elem.value() {
            ValueRef::Bool(on) => Ok(on),
            _ => Err(self.wrong_type(elem, "type 'bool'")),
        }
    }

    fn strength(&self, elem: Elem<'_>) -> Result<i32> {
        let Some(number) = Number::of(elem.value()) else {
            return Err(self.wrong_type(elem, "types '[long, int, decimal, double']"));
        };
        let value = number.to_i64_clamped().clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        match value {
            ..0 => Err(Error::new(
                Code(51024),
                format!("BSON field 'strength' value must be >= 0, actual value '{value}'"),
            )),
            0 => Err(Error::bad_value("Enumeration value '0' for field 'collation.strength' is not a valid value.")),
            1..=5 => Ok(value),
            6.. => Err(Error::new(
                Code(51024),
                format!("BSON field 'strength' value must be <= 5, actual value '{value}'"),
            )),
        }
    }
}
