//! The locales that MongoDB 6.0 knows, and what they are called where the rules come from.

use crate::error::{Code, Error, Result};

/// Every locale without a keyword.
static LOCALES: &[&str] = &[
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bg",
    "bn",
    "bo",
    "bs",
    "bs_Cyrl",
    "ca",
    "chr",
    "cs",
    "cy",
    "da",
    "de",
    "de_AT",
    "dsb",
    "dz",
    "ee",
    "el",
    "en",
    "en_US",
    "en_US_POSIX",
    "eo",
    "es",
    "et",
    "fa",
    "fa_AF",
    "fi",
    "fil",
    "fo",
    "fr",
    "fr_CA",
    "ga",
    "gl",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hsb",
    "hu",
    "hy",
    "id",
    "ig",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "kl",
    "km",
    "kn",
    "ko",
    "kok",
    "ky",
    "lb",
    "lkt",
    "ln",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "nn",
    "om",
    "or",
    "pa",
    "pl",
    "ps",
    "pt",
    "ro",
    "ru",
    "se",
    "si",
    "sk",
    "sl",
    "smn",
    "sq",
    "sr",
    "sr_Latn",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "wae",
    "yi",
    "yo",
    "zh",
    "zh_Hant",
    "zu",
];

/// Which locales have a `@collation=` of their own beside those that all have.
static KINDS: &[(&str, &[&str])] = &[
    ("compat", &["ar"]),
    ("traditional", &["bn", "es", "fi", "kn", "vi"]),
    ("phonebook", &["de", "de_AT"]),
    ("unihan", &["ja", "ko", "zh", "zh_Hant"]),
    ("dictionary", &["si"]),
    ("standard", &["sv", "zh", "zh_Hant"]),
    ("stroke", &["zh"]),
    ("pinyin", &["zh_Hant"]),
    ("zhuyin", &["zh", "zh_Hant"]),
    ("big5han", &["zh", "zh_Hant"]),
    ("gb2312han", &["zh", "zh_Hant"]),
    ("phonetic", &["ln"]),
    ("searchjl", &["ko"]),
];

/// Kinds that every locale has.
const COMMON: &[&str] = &["search", "eor", "emoji"];

/// Kinds whose rules are not among those that the crates bring along.
const WITHOUT_RULES: &[&str] = &["search", "searchjl", "big5han", "gb2312han", "phonetic"];

/// What a language does unless told otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Accents count from the end of a string.
    pub backwards: bool,
    /// Capitals stand before small letters.
    pub upper_first: bool,
    /// Spaces and punctuation do not count.
    pub shifted: bool,
}

pub(super) fn habits(locale: &str) -> Habits {
    let base = locale.split('@').next().unwrap_or_default();
    Habits { backwards: base == "fr_CA", upper_first: matches!(base, "da" | "mt"), shifted: base == "th" }
}

/// The BCP 47 tag of a MongoDB locale. `spec` is the whole document, for the error.
pub(super) fn tag(locale: &str, spec: &dyn std::fmt::Display) -> Result<String> {
    let (base, kind) = match locale.split_once("@collation=") {
        Some((base, kind)) => (base, Some(kind)),
        None => (locale, None),
    };
    let has = |kind: &str| {
        COMMON.contains(&kind) || KINDS.iter().any(|(name, locales)| *name == kind && locales.contains(&base))
    };
    if !LOCALES.contains(&base) || kind.is_some_and(|kind| !has(kind)) {
        return Err(unknown(locale, spec));
    }
    if let Some(kind) = kind.filter(|kind| WITHOUT_RULES.contains(kind)) {
        return Err(Error::new(
            Code::CommandNotSupported,
            format!("the collation '{kind}' of a locale is not supported; leave out '@collation={kind}'"),
        ));
    }
    let base = match base {
        "en_US_POSIX" => "en-US-posix".to_string(),
        // Both are written by the same rules, kept under the language's common name.
        "nb" | "nn" => "no".to_string(),
        // Its own rules are gone from the data; these differ from them in "aa" alone.
        "kl" => "no".to_string(),
        // Without a script the rules are those of the script a language is mostly written in.
        base => base.replace('_', "-"),
    };
    Ok(match (base.as_str(), kind) {
        (base, None) => base.to_string(),
        // What MongoDB's rules call standard is called traditional by now, and its reformed kind is the standard.
        ("sv", Some("standard")) => "sv-u-co-trad".to_string(),
        // Chinese without an order of its own characters.
        ("zh" | "zh-Hant", Some("standard")) => "und".to_string(),
        (base, Some("phonebook")) => format!("{base}-u-co-phonebk"),
        (base, Some("traditional")) => format!("{base}-u-co-trad"),
        (base, Some("dictionary")) => format!("{base}-u-co-dict"),
        (base, Some(kind)) => format!("{base}-u-co-{kind}"),
    })
}

fn unknown(locale: &str, spec: &dyn std::fmt::Display) -> Error {
    let plain = locale.split(['@', '-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let hint = match LOCALES.iter().find(|known| **known == locale.replace('-', "_") || **known == plain) {
        Some(known) => format!(". Did you mean '{known}'?"),
        None => String::new(),
    };
    Error::bad_value(format!("Field 'locale' is invalid in: {spec}{hint}"))
}

/// Every locale with every keyword.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = String> {
    let common = LOCALES.iter().flat_map(|base| COMMON.iter().map(move |kind| format!("{base}@collation={kind}")));
    let special =
        KINDS.iter().flat_map(|(kind, bases)| bases.iter().map(move |base| format!("{base}@collation={kind}")));
    LOCALES.iter().map(|base| base.to_string()).chain(common).chain(special)
}
