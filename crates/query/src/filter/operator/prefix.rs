//! The literal text that every match of a regular expression starts with, which is what an index can use of it.

/// A literal prefix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub text: String,
    /// True if every string with that prefix matches.
    pub whole: bool,
}

/// `^abc` begins with `abc`. `None` if the pattern is not anchored to the start, may ignore case, or has
/// alternatives.
pub(super) fn of(pattern: &str, options: &str) -> Option<Prefix> {
    // Case, extended syntax and line starts would each need care for little gain; the rest leave the start alone.
    if options.contains(['i', 'x']) {
        return None;
    }
    let rest = match pattern.strip_prefix("\\A") {
        Some(rest) => rest,
        None if options.contains('m') => return None,
        None => pattern.strip_prefix('^')?,
    };
    if rest.contains('|') {
        return None;
    }
    let mut text = String::new();
    let mut chars = rest.chars();
    let whole = loop {
        let before = chars.as_str();
        let Some(c) = chars.next() else { break true };
        match c {
            '\\' => match chars.next() {
                // A letter or digit after a backslash is a class, an anchor or a reference; a sign is itself.
                Some(sign) if !sign.is_ascii_alphanumeric() => text.push(sign),
                _ => break false,
            },
            '*' | '?' | '{' => {
                // The last character may be absent.
                text.pop();
                break false;
            }
            '.' => break before == ".*",
            '^' | '$' | '[' | ']' | '(' | ')' | '+' | '}' => break false,
            literal => text.push(literal),
        }
    };
    // `.*` stops at a newline but need not go on: what matters is that it may match nothing.
    (!text.is_empty()).then_some(Prefix { text, whole })
}

/// The least string above all that start with `prefix`.
pub(super) fn successor(prefix: &str) -> Option<String> {
    let mut next = prefix.to_string();
    while let Some(last) = next.pop() {
        // Surrogates are no characters and are stepped over.
        if let Some(up) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            next.push(up);
            return Some(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{of, successor};

    #[test]
    fn finds_the_literal_start() {
        let find = |pattern, options| of(pattern, options).map(|p| (p.text, p.whole));
        assert_eq!(find("^abc", ""), Some(("abc".into(), true)));
        assert_eq!(find("^abc.*", ""), Some(("abc".into(), true)));
        assert_eq!(find("^abc.*d", ""), Some(("abc".into(), false)));
        assert_eq!(find("^abc", "m"), None);
        assert_eq!(find("\\Aabc", "m"), Some(("abc".into(), true)));
        assert_eq!(find("^abc", "i"), None);
        assert_eq!(find("^ab?c", ""), Some(("a".into(), false)));
        assert_eq!(find("^ab{0,2}", ""), Some(("a".into(), false)));
        assert_eq!(find("^ab+", ""), Some(("ab".into(), false)));
        assert_eq!(find("^a\\.b\\d", ""), Some(("a.b".into(), false)));
        assert_eq!(find("^a|b", ""), None);
        assert_eq!(find("abc", ""), None);
        assert_eq!(find("^(abc)", ""), None);
        assert_eq!(find("^é*", ""), None);
    }

    #[test]
    fn the_successor_is_above_every_extension() {
        assert_eq!(successor("abc").unwrap(), "abd");
        assert_eq!(successor("a\u{D7FF}").unwrap(), "a\u{E000}");
        assert_eq!(successor("a\u{10FFFF}").unwrap(), "b");
        assert_eq!(successor("\u{10FFFF}"), None);
    }
}
