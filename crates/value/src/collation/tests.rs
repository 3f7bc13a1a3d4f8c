//! Keys and comparisons agree, and stay as indexes on disk hold them.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::doc::DocBuf;

/// `en strength=1 caseLevel=true`.
fn collation(text: &str) -> Arc<Collation> {
    let mut words = text.split(' ');
    let mut doc = DocBuf::new();
    doc.append("locale", words.next().unwrap());
    for (name, value) in words.map(|word| word.split_once('=').unwrap()) {
        match value {
            "true" | "false" => doc.append(name, value == "true"),
            _ => match value.parse::<i32>() {
                Ok(number) => doc.append(name, number),
                Err(_) => doc.append(name, value),
            },
        };
    }
    Collation::parse(doc.as_raw(), "").unwrap().unwrap()
}

const WORDS: &[&str] = &[
    "",
    " ",
    "-",
    "a",
    "A",
    "á",
    "Á",
    "a\u{301}",
    "ab",
    "aB",
    "a b",
    "a-b",
    "b",
    "B",
    "c",
    "ch",
    "cz",
    "d",
    "10",
    "2",
    "02",
    "1a",
    "ä",
    "ae",
    "æ",
    "ö",
    "o",
    "ø",
    "z",
    "å",
    "ñ",
    "n",
    "nz",
    "cote",
    "coté",
    "côte",
    "côté",
    "ß",
    "ss",
    "И",
    "и",
    "й",
    "I",
    "ı",
    "i",
    "İ",
    "あ",
    "ア",
    "ｱ",
    "中",
    "文",
    "\u{0}",
    "a\u{0}b",
    "😀",
    "e\u{323}\u{302}",
    "e\u{302}\u{323}",
];

const COLLATIONS: &[&str] = &[
    "en",
    "en strength=1",
    "en strength=1 caseLevel=true",
    "en strength=2",
    "en strength=5",
    "en alternate=shifted",
    "en alternate=shifted maxVariable=space strength=4",
    "en numericOrdering=true",
    "en caseFirst=upper",
    "sv backwards=true",
    "fr_CA",
    "fr_CA backwards=false",
    "es@collation=traditional",
    "ja strength=4",
    "zh",
    "tr",
    "de@collation=phonebook",
];

#[test]
fn keys_compare_as_the_strings_do() {
    for text in COLLATIONS {
        let collation = collation(text);
        let collator = Collator::new(Some(&collation));
        for a in WORDS {
            for b in WORDS {
                let (x, y) = (ValueRef::String(a), ValueRef::String(b));
                let by_key = collator.key(x).cmp(&collator.key(y));
                assert_eq!(collator.compare(x, y), by_key, "{a:?} and {b:?} under {text}");
            }
        }
    }
}

/// An index keeps keys on disk: if this fails, the rules have changed, and `RULES` has to be raised.
#[test]
fn the_keys_are_those_that_indexes_hold() {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for text in COLLATIONS {
        let collation = collation(text);
        for word in WORDS {
            let key = collation.key(word);
            let bytes = key.bytes().chain([0]);
            hash = bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
        }
    }
    assert_eq!((RULES, hash), (1, 6_070_560_298_195_208_365));
}

#[test]
fn accents_count_from_the_end_where_asked() {
    let order = |text: &str| {
        let collation = collation(text);
        let mut words = vec!["cote", "coté", "côte", "côté"];
        words.sort_by(|a, b| collation.compare(a, b));
        words
    };
    assert_eq!(order("fr"), ["cote", "coté", "côte", "côté"]);
    assert_eq!(order("fr_CA"), ["cote", "côte", "coté", "côté"]);
    assert_eq!(order("fr_CA backwards=false"), ["cote", "coté", "côte", "côté"]);
    assert_eq!(order("es backwards=true"), ["cote", "côte", "coté", "côté"]);
}

#[test]
fn collated_strings_inside_documents_and_arrays() {
    let collation = collation("en strength=2");
    let collator = Collator::new(Some(&collation));
    let pair = |x: &str, y: &str| {
        let mut doc = DocBuf::new();
        doc.append_array("a", |array| {
            array.push(ValueRef::String(x));
            array.push_doc(|inner| {
                inner.append("b", y);
            });
        });
        doc
    };
    let (a, b) = (pair("x", "Y"), pair("X", "y"));
    assert!(collator.equal((&a).into(), (&b).into()));
    assert_eq!(collator.key((&a).into()), collator.key((&b).into()));
    let translated = collator.translate((&a).into());
    assert_eq!(collator.key((&a).into()), key::of(translated.or_null()), "an index holds what its bounds say");
    let (mut a, mut b) = (DocBuf::new(), DocBuf::new());
    a.append("a", 1);
    b.append("A", 1);
    assert!(!collator.equal((&a).into(), (&b).into()), "names are no values");
}

#[test]
fn every_locale_has_rules() {
    for locale in locale::all() {
        let mut doc = DocBuf::new();
        doc.append("locale", locale.as_str());
        match Collation::parse(doc.as_raw(), "") {
            Ok(collation) => assert!(collation.is_some()),
            Err(error) => assert_eq!(error.code(), crate::Code::CommandNotSupported, "{locale}: {error}"),
        }
    }
}
